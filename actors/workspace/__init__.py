"""The workspace room."""
