"""What ``bin/trm`` can do beside training, a command and what it needs at a time."""
