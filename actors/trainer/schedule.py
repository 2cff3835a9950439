"""The learning rate: how many edits a step may apply. Pure."""

from __future__ import annotations

import math

from protocol.settings import EvolverSettings

__all__ = ["edit_budget"]


def edit_budget(settings: EvolverSettings, position: int, total: int) -> int:
    """Edits allowed at the ``position``-th of ``total`` steps of a class, from 0.

    ``cosine``: end + (start - end) (1 + cos(pi t)) / 2, rounded half up, with t from 0 at
    the first step to 1 at the last (ALGORITHM.md section 4). At least 1.
    """
    start, end = settings.edit_budget_start, settings.edit_budget_end
    if settings.schedule == "constant" or total <= 1:
        return start
    t = min(position, total - 1) / (total - 1)
    weight = (1 + math.cos(math.pi * t)) / 2 if settings.schedule == "cosine" else 1 - t
    return max(1, math.floor(end + (start - end) * weight + 0.5))
