"""What a run says of each edit when it has decided. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from actors.gate.factorial.binomial import tail
from actors.gate.factorial.states import FactorialEdit, State
from actors.gate.mixture import lower_bound

__all__ = ["EditResult", "edit_results", "effect_interval"]

_MISS = 0.05
"""How often the interval of an edit misses its mean effect, both sides together."""


class EditResult(msgspec.Struct, frozen=True, kw_only=True):
    """One edit. discordant: D of its p-value, for a dropped edit D_seen.

    p: exact, as a float; 1 for a dropped edit. effect: (W - L) / valid pairs, the mean gain over
    random backgrounds of the other edits; None without a pair. low, high: its 95 % interval.
    selected: it was adopted because W was high, so that effect is too large on average.
    """

    edit_id: str
    task_type: str
    born: int
    state: State
    sentinel: bool
    wins: int
    losses: int
    discordant: int
    pairs: int
    p: float
    effect: float | None
    low: float
    high: float
    selected: bool


@lru_cache(maxsize=16384)
def effect_interval(wins: int, losses: int, pairs: int) -> tuple[float, float]:
    """95 % interval of the mean of s o over the pairs, exact at any stop (study 1, 1.6)."""
    ties = pairs - wins - losses
    gains = [1.0] * wins + [-1.0] * losses + [0.0] * ties
    high = -lower_bound([-gain for gain in gains], _MISS / 2)
    return lower_bound(gains, _MISS / 2), high


def edit_results(edits: Sequence[FactorialEdit]) -> tuple[EditResult, ...]:
    """One row per edit, in the order given; sentinels have theirs."""
    return tuple(_result(edit) for edit in edits)


def _result(edit: FactorialEdit) -> EditResult:
    dropped = edit.state == "dropped"
    low, high = effect_interval(edit.wins, edit.losses, edit.pairs) if edit.pairs else (-1.0, 1.0)
    return EditResult(
        edit_id=edit.edit_id,
        task_type=edit.task_type,
        born=edit.born,
        state=edit.state,
        sentinel=edit.sentinel,
        wins=edit.wins,
        losses=edit.losses,
        discordant=edit.seen if dropped else edit.discordant,
        pairs=edit.pairs,
        p=1.0 if dropped else float(tail(edit.discordant, edit.wins)),
        effect=(edit.wins - edit.losses) / edit.pairs if edit.pairs else None,
        low=low,
        high=high,
        selected=edit.state == "adopted",
    )
