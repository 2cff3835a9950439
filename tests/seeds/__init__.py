"""The demo benchmark and its builder."""
