"""Mailboxes, addresses, actors, supervision. Knows nothing of training."""
