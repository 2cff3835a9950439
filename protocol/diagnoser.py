"""Why a wrong answer was wrong: backward."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request
from protocol.dataset import Question
from protocol.documents import Skill

__all__ = ["Cause", "Diagnose", "Diagnosis", "ErrorType"]

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
