"""The rooms of the house; see ARCHITECTURE in the README."""
