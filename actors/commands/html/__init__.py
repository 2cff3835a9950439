"""The HTML report of a run: ``gather`` reads it, ``page`` writes it. Everything between is pure."""
