"""Faults and kills: what a run must survive."""
