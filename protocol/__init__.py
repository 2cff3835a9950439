"""What crosses a channel: frozen msgspec structs, one file per topic.

This package imports the standard library and msgspec, and nothing of the project.
"""
