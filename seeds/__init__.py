"""Where training starts: seed folders, and the builder of the one that we ship."""
