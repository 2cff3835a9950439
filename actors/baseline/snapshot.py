"""Which draws of a snapshot are there, which are still to be made, which may be kept.

Pure. A snapshot is keyed (class, skill, prompts version, generation, unit); its draws are made
once and never again (row P1-1a). A result that infrastructure lost is no draw:
it must never become a row (row P1-4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from protocol.baseline import Draws
from protocol.dataset import Question, Unit
from protocol.rollout import Answered, Missed
from protocol.rows import BaselineRow

__all__ = [
    "MAX_OUTAGE_SHARE",
    "SnapshotKey",
    "WantedDraw",
    "assemble",
    "from_seed",
    "incomplete",
    "storable",
    "wanted_draws",
]

MAX_OUTAGE_SHARE = 0.5
"""Of one pass: where more is missing the endpoint is down, and nothing of the pass is kept."""


class SnapshotKey(msgspec.Struct, frozen=True, kw_only=True):
    """Whose outcomes these are. generation, confirms: as of ``GetSnapshot``."""

    task_type: str
    skill_hash: str
    prompts_version: str
    generation: int = 0
    confirms: str = ""

    @property
    def first(self) -> bool:
        """Whether it is the skill's first snapshot, the only one that the seed may begin."""
        return self.generation == 0 and not self.confirms


class WantedDraw(msgspec.Struct, frozen=True, kw_only=True):
    """A draw that is not there. draw: from 0, the oldest."""

    unit_id: str
    question: Question
    draw: int


def wanted_draws(
    units: Sequence[Unit], rows: Iterable[BaselineRow], n_draws: int
) -> tuple[WantedDraw, ...]:
    """What has to be drawn, by draw and then in the order of the units."""
    have = {(row.unit_id, row.question_id, row.draw) for row in rows}
    return tuple(
        WantedDraw(unit_id=unit.unit_id, question=question, draw=draw)
        for draw in range(n_draws)
        for unit in units
        for question in unit.questions
        if (unit.unit_id, question.question_id, draw) not in have
    )


def from_seed(
    key: SnapshotKey, wanted: Iterable[WantedDraw], predictions: Mapping[str, bool]
) -> tuple[BaselineRow, ...]:
    """The seed's own predictions as the first draw: no call is made for them."""
    return tuple(
        _row(key, draw, right=predictions[draw.question.question_id], source="seed")
        for draw in wanted
        if draw.draw == 0 and draw.question.question_id in predictions
    )


def storable(
    key: SnapshotKey, results: Sequence[tuple[WantedDraw, Answered | Missed]]
) -> tuple[BaselineRow, ...]:
    """The rows to write for a pass, decided before anything is written (row P1-4).

    Missing results give no row. A pass that lost more than half is an outage, and what came
    through it is not kept either: it is asked again, and the cache still has it.
    """
    missing = sum(isinstance(reply, Missed) for _, reply in results)
    if missing > MAX_OUTAGE_SHARE * len(results):
        return ()
    return tuple(
        _row(key, draw, right=reply.right, source="rollout")
        for draw, reply in results
        if isinstance(reply, Answered)
    )


def assemble(units: Sequence[Unit], rows: Iterable[BaselineRow], n_draws: int) -> tuple[Draws, ...]:
    """One entry per question, in the order of the units; draws oldest first."""
    right: dict[tuple[str, str], dict[int, bool]] = {}
    for row in rows:
        right.setdefault((row.unit_id, row.question_id), {})[row.draw] = row.right
    return tuple(
        Draws(
            unit_id=unit.unit_id,
            question_id=question.question_id,
            right=_in_order(right.get((unit.unit_id, question.question_id)), n_draws),
        )
        for unit in units
        for question in unit.questions
    )


def incomplete(draws: Iterable[Draws], n_draws: int) -> tuple[str, ...]:
    """Question ids with fewer draws than asked."""
    return tuple(entry.question_id for entry in draws if len(entry.right) < n_draws)


def _in_order(by_draw: Mapping[int, bool] | None, n_draws: int) -> tuple[bool, ...]:
    if by_draw is None:
        return ()
    return tuple(by_draw[draw] for draw in sorted(by_draw) if draw < n_draws)


def _row(key: SnapshotKey, draw: WantedDraw, *, right: bool, source: str) -> BaselineRow:
    return BaselineRow(
        task_type=key.task_type,
        skill_hash=key.skill_hash,
        prompts_version=key.prompts_version,
        unit_id=draw.unit_id,
        question_id=draw.question.question_id,
        draw=draw.draw,
        right=right,
        source=source,
        video_id=draw.question.video_id,
        generation=key.generation,
        confirms=key.confirms,
    )
