"""What the outcomes of pairs say about every edit: W, L and D_seen. Pure.

A function of the logged coins and the outcomes alone, in any order: a stopped run counts again
from its first pair and comes to the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from actors.gate.factorial.coins import PairCoins
from actors.gate.factorial.states import FactorialEdit

__all__ = ["Outcome", "outcome", "tally"]

Outcome: TypeAlias = Literal[-1, 0, 1] | None
"""o of a pair: 1 arm a did better, -1 arm b, 0 a tie; None: void, counted for nobody."""


def outcome(a: Sequence[bool | None], b: Sequence[bool | None]) -> Outcome:
    """o = sign(a - b) of a unit with one or more questions.

    a, b: right or wrong per question, in the same order; no answer in time is wrong, None is what
    infrastructure lost after all retries. One loss in either arm voids the pair: leaving out one
    question of it would compare the arms on questions that an outcome has chosen.

    Raises ValueError if the arms differ in length, or have no question.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"arms of {len(a)} and {len(b)} questions")
    right = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if len(right) < len(a):
        return None
    difference = sum(x for x, _ in right) - sum(y for _, y in right)
    return 0 if difference == 0 else 1 if difference > 0 else -1


def tally(
    edits: Sequence[FactorialEdit], pairs: Iterable[tuple[PairCoins, Outcome]]
) -> tuple[FactorialEdit, ...]:
    """The edits with these pairs counted in.

    edits: as they were when the coins were drawn, so that who is virtual agrees.

    Raises ValueError for a pair that comes twice, a coin of an unknown edit, or one that says
    live of an edit that is not.
    """
    by_id = {edit.edit_id: edit for edit in edits}
    met: set[tuple[str, int]] = set()
    wins: defaultdict[str, int] = defaultdict(int)
    losses: defaultdict[str, int] = defaultdict(int)
    seen: defaultdict[str, int] = defaultdict(int)
    valid: defaultdict[str, int] = defaultdict(int)
    for drawn, o in pairs:
        pair = drawn.pair
        if (pair.task_type, pair.index) in met:
            raise ValueError(f"{pair.task_type}: pair {pair.index} is counted twice")
        met.add((pair.task_type, pair.index))
        for coin in drawn.coins:
            edit = by_id.get(coin.edit_id)
            if edit is None or coin.virtual != (edit.state == "dropped"):
                raise ValueError(
                    f"{pair.task_type}, pair {pair.index}: the coin of {coin.edit_id} was drawn "
                    "for another state of the edits"
                )
            if o is None:
                continue
            valid[coin.edit_id] += not coin.virtual
            if o != 0:
                seen[coin.edit_id] += 1
                if not coin.virtual:
                    (wins if coin.sign * o > 0 else losses)[coin.edit_id] += 1
    return tuple(
        msgspec.structs.replace(
            edit,
            wins=edit.wins + wins[edit.edit_id],
            losses=edit.losses + losses[edit.edit_id],
            seen=edit.seen + seen[edit.edit_id],
            pairs=edit.pairs + valid[edit.edit_id],
        )
        for edit in edits
    )
