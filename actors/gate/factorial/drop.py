"""Which edits are turned off at an epoch's end, because they seem to harm. Pure.

Dropping only saves draws from what harms. It cannot raise the error: a dropped edit counts with
p = 1, which is no smaller than what it would have come to (study T7).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from actors.gate.factorial.binomial import tail
from actors.gate.factorial.states import FactorialEdit

__all__ = ["drop_harmful", "seems_harmful"]


def seems_harmful(edit: FactorialEdit, drop_harm: Fraction) -> bool:
    """L > 0 and P(Bin(W + L, 1/2) >= L) <= drop_harm."""
    return edit.losses > 0 and tail(edit.discordant, edit.losses) <= drop_harm


def drop_harmful(edits: Iterable[FactorialEdit], drop_harm: Fraction) -> tuple[FactorialEdit, ...]:
    """Every live edit that seems harmful becomes dropped.

    Sentinels stay: a sentinel that stopped at its losses would no longer look like a coin.
    """
    return tuple(
        msgspec.structs.replace(edit, state="dropped")
        if edit.state == "live" and not edit.sentinel and seems_harmful(edit, drop_harm)
        else edit
        for edit in edits
    )
