"""The trainer room."""
