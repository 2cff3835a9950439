"""Mixture bets: the harm verdict and the confidence bound of a gain.

Pure functions. Both integrate a product of bets over the size of the bet, by Gauss-Legendre
quadrature, which is exact for the polynomials that appear with one baseline draw. Neither can
raise the gate's error: harm only stops, the bound only reports (study, sections 1.4 and 1.6).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from actors.gate.eprocess import UnitResult

__all__ = ["gauss_legendre", "harm_e", "lower_bound"]

_FEWEST_NODES = 24


@lru_cache(maxsize=256)
def gauss_legendre(n: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights on [0, 1]; exact for polynomials of degree 2 n - 1.

    Newton's iteration on the Legendre polynomial from the usual cosine start.
    """
    points = []
    for i in range(n):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        slope = 1.0
        for _ in range(100):
            low, high = 1.0, x
            for degree in range(2, n + 1):
                low, high = high, ((2 * degree - 1) * x * high - (degree - 1) * low) / degree
            slope = n * (x * high - low) / (x * x - 1.0)
            step = high / slope
            x -= step
            if abs(step) < 1e-15:
                break
        points.append(((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope)))
    return tuple(points)


def harm_e(results: Iterable[UnitResult]) -> float:
    """E-value against "no harm": the uniform mixture with wins and losses swapped.

    With one draw INT_0^1 (1+l)^L (1-l)^W dl. With more the matched bet at the odds ratio
    (1-l) / (1+l), which is the same at one draw. At least 10 is level .1 against true no-harm.
    """
    counts = Counter((r.sign, r.above, r.off) for r in results if r.sign)
    n = sum(counts.values())
    if n == 0:
        return 1.0
    total = 0.0
    for size, weight in gauss_legendre(max(_FEWEST_NODES, n // 2 + 1)):
        product = weight
        for (sign, above, off), times in counts.items():
            # theta * above + (off - above) with theta = (1 - l) / (1 + l), times (1 + l)
            scale = (1.0 - size) * above + (1.0 + size) * (off - above)
            pays = (1.0 - size) if sign > 0 else (1.0 + size)
            product *= (pays * off / scale) ** times
        total += product
    return total


def _k_plus(counts: Sequence[tuple[float, int]], m: float, n: int) -> float:
    """INT_0^1 PROD(1 + u/(1+m) (X - m)) du: e-value against "the mean gain is at most m"."""
    total = 0.0
    for u, weight in gauss_legendre(max(_FEWEST_NODES, n // 2 + 1)):
        log = math.log(weight)
        for x, times in counts:
            log += times * math.log1p(u * (x - m) / (1.0 + m))
        total += math.exp(min(log, 700.0))  # beyond, only "very large" matters
    return total


def lower_bound(gains: Sequence[float], alpha: float) -> float:
    """One-sided lower confidence bound of the mean gain, level 1 - alpha at any stop.

    gains: X_u in [-1, 1], one per evaluated unit. Returns inf{m: K+(m) < 1/alpha}, in [-1, 1];
    K+ falls in m, so that bisection finds it (study, section 1.6).
    """
    counts = sorted(Counter(gains).items())
    low, high = -1.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2.0
        if _k_plus(counts, middle, len(gains)) < 1.0 / alpha:
            high = middle
        else:
            low = middle
    return high
