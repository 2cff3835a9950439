"""A baseline's rows as outcomes with tiers (row split). Pure.

A diagnosis belongs to the question whose *fingerprint* it carries: one that was made of another
wording, or of another gold answer, says nothing about this question. What fits nothing is told,
never taken for something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import msgspec

from actors.dataset.errors import SplitError
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.split import BaselineOutcome
from protocol.dataset import Question
from protocol.diagnoser import Cause
from protocol.seed import BaselineDiagnosis, BaselinePrediction

__all__ = ["Tiered", "tiered_outcomes"]

_CAUSES: frozenset[str] = frozenset(get_args(Cause))


class Tiered(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes, and what did not fit; every tuple is sorted.

    undiagnosed: questions answered wrong without a diagnosis that says something (T0 for lack
    of one: no row, or a judge that failed). stray_diagnoses: question ids of diagnoses whose
    fingerprint no question has. unknown: ids of predictions that no question has.
    """

    outcomes: tuple[BaselineOutcome, ...]
    undiagnosed: tuple[str, ...]
    stray_diagnoses: tuple[str, ...]
    unknown: tuple[str, ...]


def tiered_outcomes(
    questions: Iterable[Question],
    predictions: Iterable[BaselinePrediction],
    diagnoses: Iterable[BaselineDiagnosis],
) -> Tiered:
    """One outcome per question that was answered, ordered by question id.

    Raises SplitError naming every diagnosis whose cause is none that there is.
    """
    diagnoses = tuple(diagnoses)
    foreign = sorted({d.cause for d in diagnoses if d.cause is not None} - _CAUSES)
    if foreign:
        raise SplitError(
            f"baseline_diagnosis: cause is {', '.join(map(repr, foreign))}, must be one of "
            f"{', '.join(sorted(_CAUSES))} or nothing; diagnose these answers anew"
        )
    answered = {row.question_id: row for row in predictions}
    found = {row.fingerprint: row for row in diagnoses}
    outcomes: list[BaselineOutcome] = []
    undiagnosed: list[str] = []
    for question in sorted(questions, key=lambda question: question.question_id):
        row = answered.pop(question.question_id, None)
        diagnosis = found.pop(question_fingerprint(question), None)
        if row is None:
            continue
        if not row.right and (diagnosis is None or diagnosis.cause is None):
            undiagnosed.append(row.question_id)
        outcomes.append(_outcome(row, diagnosis))
    return Tiered(
        outcomes=tuple(outcomes),
        undiagnosed=tuple(undiagnosed),
        stray_diagnoses=tuple(sorted(row.question_id for row in found.values())),
        unknown=tuple(sorted(answered)),
    )


def _outcome(row: BaselinePrediction, diagnosis: BaselineDiagnosis | None) -> BaselineOutcome:
    if diagnosis is None:
        return BaselineOutcome(question_id=row.question_id, right=row.right)
    return BaselineOutcome(
        question_id=row.question_id,
        right=row.right,
        cause=msgspec.convert(diagnosis.cause, Cause | None),
        degraded=diagnosis.degraded,
    )
