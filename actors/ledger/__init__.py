"""``run.db``: what happened in a run. One writer, group commits, read-only readers."""
