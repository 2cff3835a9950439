"""The twin room."""
