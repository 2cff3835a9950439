"""Where a class stands, from its log alone: what its edits have become after so many phases. Pure.

A stopped run reads its logged pairs and comes to the same counts and the same drops, without a
number of its own that could have been added twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from actors.gate.factorial.coins import PairCoins
from actors.gate.factorial.drop import drop_harmful
from actors.gate.factorial.states import FactorialEdit
from actors.gate.factorial.tally import Outcome, tally

__all__ = ["LoggedPair", "OpenPairs", "course"]


class OpenPairs(Exception):
    """A phase that is not whole was asked about; its pairs must be drawn first."""

    def __init__(self, task_type: str, phase: int, indices: Sequence[int]) -> None:
        shown = ", ".join(str(index) for index in indices[:5])
        more = "" if len(indices) <= 5 else f" and {len(indices) - 5} more"
        super().__init__(f"{task_type}, phase {phase}: pairs {shown}{more} have no outcome yet")
        self.indices = tuple(indices)


class LoggedPair(msgspec.Struct, frozen=True):
    """A pair of the log. drawn: its outcome is known; ``outcome`` None is then a void pair."""

    coins: PairCoins
    outcome: Outcome = None
    drawn: bool = False


def course(
    edits: Sequence[FactorialEdit],
    log: Iterable[LoggedPair],
    drop_harm: Fraction,
    *,
    until: int,
    n_epochs: int,
) -> tuple[FactorialEdit, ...]:
    """The edits after the phases 1 to ``until``, drops of the epochs among them included.

    edits: all that the class has ever had, as they were born (live, nothing counted), in canonical
    order. log: pairs of these and later phases, in any order.

    Raises OpenPairs if a pair of these phases has no outcome, ValueError for an edit that has
    counts already, or as of ``tally``.
    """
    if counted := [edit.edit_id for edit in edits if edit.state != "live" or edit.pairs]:
        raise ValueError(f"must come as they were born: {', '.join(counted)}")
    logged = sorted(log, key=lambda pair: pair.coins.pair.index)
    now = tuple(edits)
    for phase in range(1, until + 1):
        own = [pair for pair in logged if pair.coins.pair.phase == phase]
        if waiting := [pair.coins.pair for pair in own if not pair.drawn]:
            raise OpenPairs(waiting[0].task_type, phase, [pair.index for pair in waiting])
        now = tally(now, [(pair.coins, pair.outcome) for pair in own])
        if phase <= n_epochs:
            now = drop_harmful(now, drop_harm)
    return now
