"""Questions to units: all questions of one class in one video, the gate's atom. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from protocol.dataset import Question, Unit

__all__ = ["make_units"]


def make_units(questions: Iterable[Question]) -> tuple[Unit, ...]:
    """Units ordered by class and video, the questions of each by id (ALGORITHM.md, Terms).

    ``unit_id`` is ``<class>/<video>``: a video's id holds no slash, so it is unique.
    """
    groups: defaultdict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in questions:
        groups[question.task_type, question.video_id].append(question)
    return tuple(
        Unit(
            unit_id=f"{task_type}/{video_id}",
            video_id=video_id,
            task_type=task_type,
            questions=tuple(sorted(members, key=lambda question: question.question_id)),
        )
        for (task_type, video_id), members in sorted(groups.items())
    )
