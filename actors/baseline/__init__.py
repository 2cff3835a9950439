"""The baseline room."""
