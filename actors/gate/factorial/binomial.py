"""What a fair coin does: exact upper tails of Bin(n, 1/2), as integers over 2**n. Pure."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

__all__ = ["tail", "tails"]


@lru_cache(maxsize=4096)
def tails(n: int) -> tuple[int, ...]:
    """2**n P(Bin(n, 1/2) >= w) for w = n, n - 1, ..., 0.

    Strictly ascending, from 1 to 2**n: the values that a one-sided p-value can take with n
    discordant pairs. Entry ``n - w`` belongs to w wins.
    """
    values, total, ways = [], 0, 1
    for successes in range(n, -1, -1):
        total += ways
        values.append(total)
        ways = ways * successes // (n - successes + 1)
    return tuple(values)


def tail(n: int, at_least: int) -> Fraction:
    """P(Bin(n, 1/2) >= at_least), exact; 1 for n = 0. Raises ValueError outside 0..n."""
    if not 0 <= at_least <= n:
        raise ValueError(f"{at_least} of {n} coins")
    return Fraction(tails(n)[n - at_least], 1 << n)
