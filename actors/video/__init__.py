"""The video room."""
