"""Stored rows put together as answered questions, and one of them as a case. Pure.

Rows belong together by run key *and* question id: the same question is answered in many
passes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from actors.diagnoser.metrics import Metrics, describe, measure
from prompts.trajectory import EmptyTrajectory, read_steps, render_steps
from prompts.withhold import cleaned, fitted, without_answer
from protocol.dataset import Question
from protocol.diagnoser import CallGrade, Cause, ErrorType, PackCase
from protocol.rollout import Step
from protocol.rows import DiagnosisRow, OutcomeRow, TraceRow

__all__ = ["Answer", "Gathered", "case_of", "cleaned", "gather"]

Key = tuple[str, str]
_CAUSES: frozenset[str] = frozenset(get_args(Cause))
_ERROR_TYPES: frozenset[str] = frozenset(get_args(ErrorType))


class Answer(msgspec.Struct, frozen=True):
    """One answered question of one pass. diagnosis: of a wrong answer that was judged."""

    question: Question
    outcome: OutcomeRow
    steps: tuple[Step, ...]
    metrics: Metrics
    diagnosis: DiagnosisRow | None

    @property
    def right(self) -> bool:
        """Whether the answer was right."""
        return self.outcome.outcome == "right"

    @property
    def key(self) -> tuple[str, str]:
        """Sorts answers; two of one question are told apart by their pass."""
        return (self.question.question_id, self.outcome.run_key)

    @property
    def cause(self) -> Cause | None:
        """As judged; None without a judgement."""
        said = self.diagnosis.cause if self.diagnosis else None
        return msgspec.convert(said, Cause) if said in _CAUSES else None

    @property
    def error_type(self) -> ErrorType | None:
        """As judged; None without a judgement."""
        said = self.diagnosis.error_type if self.diagnosis else None
        return msgspec.convert(said, ErrorType) if said in _ERROR_TYPES else None

    @property
    def degraded(self) -> bool:
        """Whether the judge's reply could not be used."""
        return self.diagnosis is not None and self.diagnosis.degraded

    @property
    def grades(self) -> tuple[CallGrade, ...]:
        """The judge's grades of the calls."""
        if self.diagnosis is None:
            return ()
        return msgspec.json.decode(self.diagnosis.grades, type=tuple[CallGrade, ...])


class Gathered(msgspec.Struct, frozen=True):
    """All answers, in the order of their keys. missing: outcomes that infrastructure lost."""

    answers: tuple[Answer, ...]
    missing: int


def gather(
    questions: Iterable[Question],
    outcomes: Iterable[OutcomeRow],
    traces: Iterable[TraceRow],
    diagnoses: Iterable[DiagnosisRow],
    *,
    max_calls: int | None,
) -> Gathered:
    """The answers to these questions; rows of any other question are left out.

    max_calls: as of ``measure``. Raises EmptyTrajectory naming every answer without steps (P0-2).
    """
    wanted = {question.question_id: question for question in questions}
    steps: defaultdict[Key, list[TraceRow]] = defaultdict(list)
    for trace in traces:
        steps[_key(trace)].append(trace)
    judged = {_key(row): row for row in diagnoses}
    rows = sorted((row for row in outcomes if row.question_id in wanted), key=_key)
    answered = [row for row in rows if row.outcome != "missing"]
    empty = [f"{row.question_id} in {row.run_key}" for row in answered if not steps[_key(row)]]
    if empty:
        raise EmptyTrajectory(f"answered, but no steps are stored: {', '.join(empty)}")
    answers = [
        _answer(wanted[row.question_id], row, steps[_key(row)], judged.get(_key(row)), max_calls)
        for row in answered
    ]
    return Gathered(tuple(sorted(answers, key=lambda a: a.key)), len(rows) - len(answered))


def case_of(answer: Answer, reason: str, *, options: bool, max_chars: int) -> PackCase:
    """The answer as an editor may read it. options: whether they are shown."""
    question, diagnosis = answer.question, answer.diagnosis
    return PackCase(
        run_key=answer.outcome.run_key,
        question_id=question.question_id,
        task_type=question.task_type,
        question=question.question,
        options=question.options if options else (),
        right=answer.right,
        reason=reason,
        error_type=answer.error_type,
        subtype=diagnosis.subtype if diagnosis else None,
        cause=answer.cause,
        degraded=answer.degraded,
        finding=without_answer(diagnosis.finding, question) if diagnosis else "",
        rule=diagnosis.rule if diagnosis else "",
        facts=describe(answer.metrics),
        trace=fitted(
            render_steps([cleaned(step, question) for step in answer.steps], max_chars),
            question,
            max_chars,
        ),
    )


def _key(row: OutcomeRow | TraceRow | DiagnosisRow) -> Key:
    return (row.run_key, row.question_id)


def _answer(
    question: Question,
    outcome: OutcomeRow,
    traces: Sequence[TraceRow],
    diagnosis: DiagnosisRow | None,
    max_calls: int | None,
) -> Answer:
    steps = read_steps(traces)
    right = outcome.outcome == "right"
    return Answer(
        question=question,
        outcome=outcome,
        steps=steps,
        metrics=measure(steps, right=right, max_calls=max_calls),
        diagnosis=None if right else diagnosis,
    )
