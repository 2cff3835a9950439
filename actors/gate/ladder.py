"""Which unit is tested when: the blind order, and the ladder with its baseline.

Pure. The order may know difficulty from earlier epochs, and must never know an outcome of the
current snapshot: given the true accuracies it is independent of it, which is what the level
rests on (study T1). ``build_ladder`` is the only place where order and snapshot meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from actors.gate.decide import LadderUnit
from protocol.baseline import Draws
from protocol.dataset import Unit

__all__ = ["UncoveredUnit", "blind_order", "build_ladder", "tier"]

_TIER_BOUNDS = (1 / 3, 2 / 3)


class UncoveredUnit(Exception):
    """The snapshot has no entry for a question of the ladder (row fail-loud)."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(f"the baseline snapshot does not cover {len(missing)} question(s)")
        self.missing = tuple(missing)


def tier(ema: float | None) -> int:
    """0 hard, 1 middle or unknown, 2 easy."""
    return 1 if ema is None else sum(ema > bound for bound in _TIER_BOUNDS)


def blind_order(
    units: Sequence[Unit], seed: int, epoch: int, ema: Mapping[tuple[str, str], float]
) -> tuple[Unit, ...]:
    """A random order by keyed hash in which every stretch has each tier's share.

    Within a tier by SHA-256 of (seed, epoch, class, unit); the i-th of a tier's n units stands
    at (i + 1/2) / n, so that any prefix, hence any block, is tier-proportional to within a unit.
    """
    tiers: dict[int, list[tuple[str, Unit]]] = {}
    for unit in units:
        key = f"{seed}|{epoch}|{unit.task_type}|{unit.unit_id}"
        digest = hashlib.sha256(key.encode()).hexdigest()
        level = tier(ema.get((unit.task_type, unit.video_id)))
        tiers.setdefault(level, []).append((digest, unit))
    placed: list[tuple[float, str, Unit]] = []
    for members in tiers.values():
        members.sort(key=lambda member: (member[0], member[1].unit_id))
        placed.extend(
            ((i + 0.5) / len(members), digest, unit) for i, (digest, unit) in enumerate(members)
        )
    placed.sort(key=lambda entry: (entry[0], entry[1], entry[2].unit_id))
    return tuple(unit for _, _, unit in placed)


def build_ladder(
    ordered: Sequence[Unit], snapshot: Sequence[Draws], ema: Mapping[tuple[str, str], float]
) -> tuple[LadderUnit, ...]:
    """Join units, in the order given, with their baseline draws.

    ordered: from ``blind_order``; any other order must be blind to the snapshot too.
    snapshot: one entry per question; an entry without draws is missing, an absent one an error.

    Raises UncoveredUnit naming every question without an entry (row fail-loud), ValueError for
    a unit without questions.
    """
    draws = {(entry.unit_id, entry.question_id): entry.right for entry in snapshot}
    absent = [
        question.question_id
        for unit in ordered
        for question in unit.questions
        if (unit.unit_id, question.question_id) not in draws
    ]
    if absent:
        raise UncoveredUnit(absent)
    if empty := [unit.unit_id for unit in ordered if not unit.questions]:
        raise ValueError(f"units without questions: {', '.join(empty)}")
    return tuple(
        LadderUnit(
            unit_id=unit.unit_id,
            draws=tuple(draws[unit.unit_id, question.question_id] for question in unit.questions),
            ema=ema.get((unit.task_type, unit.video_id)),
        )
        for unit in ordered
    )
