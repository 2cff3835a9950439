"""When the gate looks: evaluation blocks and accept looks (GATE.md, The decision).

Pure arithmetic of the ladder's size, fixed before any outcome is seen. A look that depended on
outcomes would break the endgame's level.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["accept_looks", "accept_rule", "block_ends"]

_SHARE_MEDIUM = Fraction(2, 5)
_SHARES_LARGE = (Fraction(27, 100), Fraction(3, 5))


def block_ends(n_units: int) -> tuple[int, ...]:
    """Units seen after each block: blocks of 4, 4, 4, 4, then 8; the last is what remains."""
    ends: list[int] = []
    while (done := ends[-1] if ends else 0) < n_units:
        ends.append(min(done + (4 if len(ends) < 4 else 8), n_units))
    return tuple(ends)


def accept_looks(n_units: int) -> tuple[int, ...]:
    """The block ends at which the gate may accept; the last is the endgame.

    At most 20 units: one look, at the end (any order is then valid, study T4). 21 to 50:
    max(12, .4 N). More: .27 N and .6 N. Rounded up to block ends.
    """
    if n_units == 0:
        return ()
    if n_units <= 20:
        return (n_units,)
    if n_units <= 50:
        wanted = [max(12, math.ceil(_SHARE_MEDIUM * n_units))]
    else:
        wanted = [math.ceil(share * n_units) for share in _SHARES_LARGE]
    ends = block_ends(n_units)
    looks = {min(end for end in ends if end >= units) for units in wanted}
    return tuple(sorted(looks | {n_units}))


def accept_rule(units: int, n_units: int) -> str:
    """By which rule the look after so many units may accept.

    ``core``: an e-value of 1 / alpha; ``endgame``: the exact test of the last look; ``none``: the
    test may only go on or end without an accept. A guardrail may hold back what either lets in.
    """
    looks = accept_looks(n_units)
    if units not in looks:
        return "none"
    return "endgame" if units == looks[-1] else "core"
