"""Classes that would train, had val not taken their videos from diag (row split). Pure.

Step 2 of the split moves videos with wrong answers from diag to val until val holds
``val_wrong_min`` of them. Where trainval is small, that can be most of diag, and the classes in it
are left with too few units. Then fewer moves mend it, not only more videos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from actors.dataset.errors import InfeasibleSplitError
from actors.dataset.preflight import preflight
from actors.dataset.split import BaselineOutcome, VideoGroup, assign_tiered, group_videos
from protocol.dataset import Question
from protocol.seed import SplitParameters

__all__ = ["Emptied", "emptied_classes"]


class Emptied(msgspec.Struct, frozen=True, kw_only=True):
    """A class that does not train. val_wrong_min: the largest under which it would."""

    task_type: str
    val_wrong_min: int


def emptied_classes(
    diag: Sequence[Question],
    val: Sequence[Question],
    outcomes: Mapping[str, BaselineOutcome],
    parameters: SplitParameters,
    *,
    eval_min_per_class: int,
    trainable_min_units: int,
) -> tuple[Emptied, ...]:
    """Every class that does not train but would after fewer moves, the fewest undone first.

    diag, val: as frozen. None is named of pools that are not what these outcomes and parameters
    give, or where an outcome is lacking: nobody knows what was moved there.
    """
    questions = (*diag, *val)

    def trained(in_diag: frozenset[str]) -> set[str]:
        counts = preflight(
            [question for question in questions if question.video_id in in_diag],
            [question for question in questions if question.video_id not in in_diag],
            (),
            eval_min_per_class=eval_min_per_class,
            trainable_min_units=trainable_min_units,
        )
        return {count.task_type for count in counts if count.trainable}

    if any(question.question_id not in outcomes for question in questions):
        return ()
    there = frozenset(question.video_id for question in diag)
    untrained = {question.task_type for question in questions} - trained(there)
    groups = group_videos(questions, outcomes)
    moved = _moved(groups, there, parameters) if untrained else ()
    wrong_of = {group.video_id: group.wrong_count for group in groups}
    wrong = sum(count for video_id, count in wrong_of.items() if video_id not in there)
    emptied: list[Emptied] = []
    for video_id in reversed(moved):
        there |= {video_id}
        wrong -= wrong_of[video_id]
        won = sorted(untrained & trained(there))
        emptied += [Emptied(task_type=name, val_wrong_min=wrong) for name in won]
        untrained -= set(won)
    return tuple(emptied)


def _moved(
    groups: Sequence[VideoGroup], there: frozenset[str], parameters: SplitParameters
) -> tuple[str, ...]:
    """The videos that went from diag to val, in that order; none of a split made otherwise."""
    try:
        assigned = assign_tiered(
            groups, val_ratio=parameters.val_ratio, val_wrong_min=parameters.val_wrong_min
        )
    except InfeasibleSplitError:
        return ()
    return assigned.moved if frozenset(assigned.diag) == there else ()
