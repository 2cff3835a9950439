"""Whether an edit stays: e-process, ladder, EMA, decision."""
