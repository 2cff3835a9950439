"""The gate room."""
