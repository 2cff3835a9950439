"""Documents, manifests, checkpoints, seeds, workspaces: files that are whole or not at all."""
