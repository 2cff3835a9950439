"""The exact chance that a ladder with one draw per unit still accepts.

Pure functions. The state before a look is (wins, losses), so that the whole future is a grid of
probabilities that every unit to come spreads by one step. On arrays that costs n steps of n^2
cells for a ladder of n units; state by state over dictionaries it would be the fourth power, a
minute at 300 units, with everything else of the run waiting.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["lattice_power"]

Grid: TypeAlias = NDArray[np.float64]
"""Probability per (wins, losses)."""

_LOG_WIN, _LOG_LOSS = log(1.5), log(0.5)
_SLACK = 1e-12
"""Relative, as a bound that is met exactly must count as met in floating point too."""


@lru_cache(maxsize=8192)
def lattice_power(
    seen: tuple[tuple[int, int], ...],
    to_come: tuple[tuple[tuple[float, float, int], ...], ...],
    alpha: float,
    passed: int,
) -> float:
    """Probability of an accept with one draw per unit, exact up to floating point.

    seen: (wins, losses) per group between looks. to_come: per group the units not yet seen as
    (win probability, loss probability, how many). The first ``passed`` looks have gone by without
    an accept; the last group is the endgame.
    """
    before = np.ones((1, 1))
    accepted = 0.0
    for index, ((won, lost), ahead) in enumerate(zip(seen[:-1], to_come[:-1], strict=True)):
        before = _after(before, won, lost, ahead)
        if index >= passed:
            enough = _log_stakes(before) + log(alpha) >= -_SLACK
            accepted += float(before[enough].sum())
            before[enough] = 0.0
    return accepted + _endgame(before, _after(np.ones((1, 1)), *seen[-1], to_come[-1]), alpha)


def _after(grid: Grid, won: int, lost: int, ahead: tuple[tuple[float, float, int], ...]) -> Grid:
    """The grid after a group: what is there already, then what may come, unit by unit."""
    n = sum(count for _, _, count in ahead)
    rows, columns = grid.shape
    spread = np.zeros((rows + won + n, columns + lost + n))
    spread[won : won + rows, lost : lost + columns] = grid
    for win, loss, count in ahead:
        for _ in range(count):
            moved = (1.0 - win - loss) * spread
            moved[1:] += win * spread[:-1]
            moved[:, 1:] += loss * spread[:, :-1]
            spread = moved
    return spread


def _log_stakes(grid: Grid) -> Grid:
    """log E of every state: 1.5^wins 0.5^losses."""
    wins, losses = np.indices(grid.shape)
    return np.asarray(wins * _LOG_WIN + losses * _LOG_LOSS)


def _endgame(before: Grid, last: Grid, alpha: float) -> float:
    """The mass that the last look accepts: some win, and a tail of at most alpha times E."""
    reached = np.argwhere(last > 0.0)
    reached = reached[reached[:, 0] > 0]
    if not len(reached):
        return 0.0
    tails = np.array([_tails(int(w + lost))[w] for w, lost in reached])
    order = np.argsort(tails, kind="stable")
    up_to = np.concatenate([[0.0], np.cumsum(last[reached[:, 0], reached[:, 1]][order])])
    alive = before > 0.0
    bounds = alpha * np.exp(_log_stakes(before)[alive]) * (1.0 + _SLACK)
    return float(before[alive] @ up_to[np.searchsorted(tails[order], bounds, side="right")])


@lru_cache(maxsize=2048)
def _tails(n: int) -> tuple[float, ...]:
    """P(Bin(n, 1/2) >= w) for w = 0 .. n; integers until the last division."""
    sums, total = [], 0
    for w in range(n, -1, -1):
        total += comb(n, w)
        sums.append(total / 2**n)
    return tuple(reversed(sums))
