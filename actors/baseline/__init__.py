"""Fixed baseline outcomes per unit: the control arm of the gate."""
