"""The cache room."""
