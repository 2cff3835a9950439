"""The evolver room."""
