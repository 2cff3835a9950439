"""The diagnoser room."""
