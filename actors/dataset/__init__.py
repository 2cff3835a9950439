"""The dataset room."""
