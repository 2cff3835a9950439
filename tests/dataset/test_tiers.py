"""Diagnoses belong to questions by fingerprint; what fits none is told (row split)."""

from __future__ import annotations

import msgspec
import pytest

from actors.dataset.errors import SplitError
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.tiers import tiered_outcomes
from protocol.dataset import Question
from protocol.seed import BaselineDiagnosis, BaselinePrediction
from tests.dataset.material import question

ASKED = tuple(question(video) for video in range(1, 7))


def answer(item: Question, *, right: bool = False) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=item.question_id,
        video_id=item.video_id,
        task_type=item.task_type,
        letter="B" if right else "A",
        right=right,
        confidence=0.5,
    )


def verdict(item: Question, cause: str | None, *, degraded: bool = False) -> BaselineDiagnosis:
    return BaselineDiagnosis(
        fingerprint=question_fingerprint(item),
        question_id=item.question_id,
        error_type="mixed",
        cause=cause,
        degraded=degraded,
        finding="so it was",
    )


def test_tiers_by_fingerprint() -> None:
    """Row split: T2, T1, and T0 for uncertain, degraded, a failed judge or none."""
    reworded = msgspec.structs.replace(ASKED[5], question="How few?")
    found = tiered_outcomes(
        reversed(ASKED),
        [answer(item) for item in ASKED],
        [
            verdict(ASKED[0], "defect"),
            verdict(ASKED[1], "lapse"),
            verdict(ASKED[2], "uncertain"),
            verdict(ASKED[3], "defect", degraded=True),
            verdict(ASKED[4], None),
            verdict(reworded, "defect"),
        ],
    )
    assert [outcome.tier for outcome in found.outcomes] == [2, 1, 0, 0, 0, 0]
    assert found.undiagnosed == ("005-1", "006-1")
    assert found.stray_diagnoses == ("006-1",)


def test_answers_of_other_questions_are_told() -> None:
    """And a question without an answer has no outcome: it is not wrong."""
    found = tiered_outcomes(ASKED[:2], [answer(ASKED[0], right=True), answer(ASKED[5])], [])
    assert [outcome.question_id for outcome in found.outcomes] == ["001-1"]
    assert found.unknown == ("006-1",)
    assert found.undiagnosed == ()


def test_an_unknown_cause_is_an_error() -> None:
    """fail-loud: it is not counted as anything."""
    with pytest.raises(SplitError, match="'defekt'"):
        tiered_outcomes(ASKED, [answer(ASKED[0])], [verdict(ASKED[0], "defekt")])
