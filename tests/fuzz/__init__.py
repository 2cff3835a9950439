"""Coverage-guided fuzzing, outside bin/test: each module says how to run it."""
