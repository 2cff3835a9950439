"""A unit's difficulty: an exponential mean of what candidates answered there.

Pure. Fed by candidate-arm outcomes and by snapshots that are out of force, once per epoch. What
orders a ladder is the EMA as it stood before the ladder's snapshot was drawn (``state``): an EMA
that held the current snapshot would let the order see it, and a null edit then passes up to seven
times in ten (study, section 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from protocol.keys import baseline_key
from protocol.rows import BaselineRow, OutcomeRow

__all__ = ["START", "UnitEma", "fold", "is_candidate_arm", "lookup"]

START = 0.5
"""Before anything is known. Five right answers in a row make a solid record at decay .7."""

_CANDIDATE_ARM = re.compile(r"/(gate|confirm)/b\d+$")


class UnitEma(msgspec.Struct, frozen=True, kw_only=True):
    """One unit, named by class and video. value in [0, 1], high is easy."""

    task_type: str
    video_id: str
    value: float


def is_candidate_arm(run_key: str) -> bool:
    """Whether a pass is a gate block of a candidate; the baseline's passes are not."""
    return _CANDIDATE_ARM.search(run_key) is not None


def lookup(known: Iterable[UnitEma]) -> dict[tuple[str, str], float]:
    """By (class, video)."""
    return {(unit.task_type, unit.video_id): unit.value for unit in known}


def fold(
    known: Iterable[UnitEma],
    outcomes: Iterable[OutcomeRow],
    decay: float,
    retired: Iterable[BaselineRow] = (),
) -> tuple[tuple[UnitEma, ...], int]:
    """The EMA after these outcomes, and how many units moved.

    retired: the draws of snapshots that are out of force.

    A pass over a unit counts once, by its share of right answers; missing ones say nothing.
    Passes are folded in the order of their names, so that the result depends on the set of rows
    only and not on when they were written; the snapshots' names come first.
    """
    passes: dict[tuple[str, str, str], list[bool]] = {}
    for row in outcomes:
        if row.outcome != "missing" and is_candidate_arm(row.run_key):
            key = (row.task_type, row.video_id, row.run_key)
            passes.setdefault(key, []).append(row.outcome == "right")
    for draw in retired:
        name = baseline_key(
            draw.task_type, draw.skill_hash, draw.prompts_version, draw.draw, draw.generation
        )
        passes.setdefault((draw.task_type, draw.video_id, name), []).append(draw.right)
    values: dict[tuple[str, str], float] = dict(lookup(known))
    moved = {(task_type, video_id) for task_type, video_id, _ in passes}
    for (task_type, video_id, _), right in sorted(passes.items()):
        before = values.get((task_type, video_id), START)
        values[task_type, video_id] = decay * before + (1.0 - decay) * sum(right) / len(right)
    return _listed(values), len(moved)


def _listed(values: Mapping[tuple[str, str], float]) -> tuple[UnitEma, ...]:
    return tuple(
        UnitEma(task_type=task_type, video_id=video_id, value=value)
        for (task_type, video_id), value in sorted(values.items())
    )
