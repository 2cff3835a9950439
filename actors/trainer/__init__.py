"""The training loop: epochs, steps, evaluation, early stop, resume."""
