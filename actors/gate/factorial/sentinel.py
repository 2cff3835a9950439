"""Whether the edits that change nothing look like coins. Pure.

A sentinel has no effect by construction, so that W against L is a fair coin whatever the endpoint
does. If it is not, arms were mixed up, coins were not fair or a pair was counted by how it came
out: no claim of the run stands then.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from actors.gate.factorial.binomial import tail
from actors.gate.factorial.states import FactorialEdit

__all__ = ["LEVEL", "SentinelCheck", "check_sentinels", "two_sided"]

LEVEL = Fraction(1, 100)
"""How often the check fails though all is well, over all classes together."""


class SentinelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """p: of all classes together, corrected for having looked at each. failing: sentinel ids;
    empty although not ``ok`` where only the sum over all classes is off."""

    ok: bool
    wins: int
    losses: int
    p: Fraction
    failing: tuple[str, ...]


def two_sided(wins: int, losses: int) -> Fraction:
    """Exact two-sided p-value of a fair coin; 1 without data."""
    return min(Fraction(1), 2 * tail(wins + losses, max(wins, losses)))


def check_sentinels(edits: Iterable[FactorialEdit], level: Fraction = LEVEL) -> SentinelCheck:
    """Every sentinel and their sum, each at an equal share of the level (Bonferroni)."""
    sentinels = [edit for edit in edits if edit.sentinel]
    wins = sum(edit.wins for edit in sentinels)
    losses = sum(edit.losses for edit in sentinels)
    n_looks = len(sentinels) + 1
    each = [(edit.edit_id, two_sided(edit.wins, edit.losses)) for edit in sentinels]
    smallest = min([two_sided(wins, losses), *(p for _, p in each)])
    return SentinelCheck(
        ok=smallest * n_looks > level,
        wins=wins,
        losses=losses,
        p=min(Fraction(1), smallest * n_looks),
        failing=tuple(edit_id for edit_id, p in each if p * n_looks <= level),
    )
