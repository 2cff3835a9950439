"""Why a wrong answer was wrong: backward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request
from protocol.dataset import Question
from protocol.documents import Skill

__all__ = ["Cause", "Diagnose", "Diagnosis", "ErrorType", "degraded_share", "route"]

ErrorType = Literal[
    "no_search", "extraction_failure", "search_failure", "reasoning_failure", "mixed"
]
Cause = Literal["defect", "lapse", "uncertain"]


class Diagnosis(Message, frozen=True, kw_only=True, tag=True):
    """The judge's finding.

    cause: None when the judge's infrastructure failed (row P1-5).
    degraded: the judge answered, but not in a form that could be read.
    finding: what went wrong, one or two sentences.
    """

    question_id: str
    error_type: ErrorType
    subtype: str | None
    cause: Cause | None
    degraded: bool
    finding: str


class Diagnose(Request[Diagnosis | Refused], frozen=True, kw_only=True, tag=True):
    """Diagnose a wrong answer from its stored steps (row P0-2).

    Refused: the answered question has no stored steps. Stored under ``run_key``.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    question: Question
    skill: Skill
    letter: str | None


def route(
    diagnoses: Iterable[Diagnosis],
) -> tuple[tuple[Diagnosis, ...], tuple[Diagnosis, ...]]:
    """Defects, which are evidence for edits, and lapses, which become notes (row P1-5).

    Only a diagnosis that was read and says ``defect`` is one; ``lapse``, ``uncertain``,
    a judge that failed (cause None) and a degraded diagnosis go the lapse way.
    """
    defects: list[Diagnosis] = []
    lapses: list[Diagnosis] = []
    for diagnosis in diagnoses:
        is_defect = diagnosis.cause == "defect" and not diagnosis.degraded
        (defects if is_defect else lapses).append(diagnosis)
    return tuple(defects), tuple(lapses)


def degraded_share(diagnoses: Iterable[Diagnosis]) -> float:
    """Share of diagnoses that say nothing: degraded, or the judge failed; 0 of none (row P1-5).

    A step is aborted when it is greater than ``max_degraded_share``.
    """
    silent = [diagnosis.degraded or diagnosis.cause is None for diagnosis in diagnoses]
    return sum(silent) / len(silent) if silent else 0.0
