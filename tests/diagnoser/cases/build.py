"""The calibration cases: scenarios under a skill that is silent, was ignored, or misleads.

Skill and cause agree with the demo's planted world, so that the simulator's judge, whose
truth that world is, can be measured with the same cases as a real one:

    silent     a skill that says nothing of the lesson that the question needs   defect
    ignored    the same skill with every lesson of the class                     lapse
    slip       a skill whose rule was broken; the question needs no lesson       lapse
    misled     a skill with a rule that misleads, which was obeyed               defect
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal

import msgspec

from actors.diagnoser.waterfall import ReasoningFailure
from actors.twin.catalog import Entry
from actors.twin.world import SKILL
from protocol.dataset import Question
from protocol.diagnoser import Cause, Diagnose, ErrorType
from protocol.documents import Skill
from protocol.rollout import Step
from protocol.rows import TraceRow
from tests.diagnoser.cases import scenarios as s
from tests.diagnoser.cases.notes import notes_of
from tests.diagnoser.cases.skills import base_skill
from tests.twin.conversations import demo

__all__ = ["CalibrationCase", "Planted", "calibration_cases", "trace_rows"]

Variant = Literal["silent", "ignored", "slip", "misled"]
_CAUSES: dict[Variant, Cause] = {
    "silent": "defect",
    "ignored": "lapse",
    "slip": "lapse",
    "misled": "defect",
}
_PER_PLAN = 2


class Planted(msgspec.Struct, frozen=True):
    """The truth about a case."""

    cause: Cause
    error_type: ErrorType
    subtype: ReasoningFailure | None


class CalibrationCase(msgspec.Struct, frozen=True):
    """A wrong answer with its truth. name: scenario, variant and question."""

    name: str
    request: Diagnose
    steps: tuple[Step, ...]
    planted: Planted


class _Plan(msgspec.Struct, frozen=True):
    """needs: the lesson that the question needs, empty for none. trap: words of the trap."""

    scenario: s.Scenario
    variant: Variant
    task_type: str
    error_type: ErrorType
    subtype: ReasoningFailure | None = None
    needs: str = ""
    trap: str = ""


_COUNT, _TIME, _LOOKS = "Counting Problem", "Temporal Reasoning", "Attribute Perception"
_TEXT, _ACT = "OCR Problems", "Action Recognition"

_PLANS = (
    _Plan(s.first_number, "silent", _COUNT, "search_failure", needs="sum"),
    _Plan(s.first_number, "ignored", _COUNT, "search_failure", needs="sum"),
    _Plan(s.first_number, "misled", _COUNT, "search_failure", needs="sum", trap="stop at the"),
    _Plan(s.spoken_number, "silent", _COUNT, "reasoning_failure", "weighing_error", "spoken"),
    _Plan(s.spoken_number, "ignored", _COUNT, "reasoning_failure", "weighing_error", "spoken"),
    _Plan(s.misread_number, "slip", _COUNT, "reasoning_failure", "evidence_misread"),
    _Plan(s.nothing_found, "slip", _COUNT, "mixed"),
    _Plan(s.list_from_the_top, "silent", _TIME, "reasoning_failure", "logic_error", "list"),
    _Plan(s.list_from_the_top, "ignored", _TIME, "reasoning_failure", "logic_error", "list"),
    _Plan(s.bells_by_guess, "silent", _TIME, "mixed", needs="bell"),
    _Plan(s.bells_by_guess, "ignored", _TIME, "reasoning_failure", "logic_error", "bell"),
    _Plan(s.not_the_next, "slip", _TIME, "reasoning_failure", "logic_error"),
    _Plan(s.first_coat, "silent", _LOOKS, "reasoning_failure", "evidence_ignored", "last"),
    _Plan(s.first_coat, "ignored", _LOOKS, "reasoning_failure", "evidence_ignored", "last"),
    _Plan(s.wrong_owner, "ignored", _LOOKS, "reasoning_failure", "evidence_misread", "owner"),
    _Plan(s.closed_close_view, "ignored", _LOOKS, "search_failure", needs="detail"),
    _Plan(s.made_up, "slip", _LOOKS, "extraction_failure"),
    _Plan(s.at_once, "slip", _LOOKS, "no_search"),
    _Plan(s.corrected_spelling, "ignored", _TEXT, "reasoning_failure", "weighing_error", "speech"),
    _Plan(
        s.corrected_spelling,
        "misled",
        _TEXT,
        "reasoning_failure",
        "weighing_error",
        "speech",
        "correct the spelling",
    ),
    _Plan(s.half_a_notice, "ignored", _TEXT, "search_failure", needs="split"),
    _Plan(s.unknown_word, "silent", _ACT, "mixed", needs="velk"),
    _Plan(s.at_once, "misled", _ACT, "no_search", trap="decide from the scene summary"),
)


@cache
def calibration_cases() -> tuple[CalibrationCase, ...]:
    """All cases, those of one plan together.

    Raises LookupError naming a plan for which the demo has too few questions.
    """
    return tuple(case for plan in _PLANS for case in _cases(plan))


def trace_rows(case: CalibrationCase) -> tuple[TraceRow, ...]:
    """The trajectory as the ledger would hold it."""
    return tuple(
        TraceRow(
            run_key=case.request.run_key,
            question_id=case.request.question.question_id,
            step=step.index,
            thought=step.thought,
            tool=step.tool,
            arguments=step.arguments,
            observation=step.observation,
            raw=step.raw,
            node_ids=msgspec.json.encode(step.node_ids).decode(),
            prompt_tokens=step.prompt_tokens,
            completion_tokens=step.completion_tokens,
            seconds=step.seconds,
        )
        for step in case.steps
    )


def _cases(plan: _Plan) -> list[CalibrationCase]:
    found = list(_fitting(plan))[:_PER_PLAN]
    if len(found) < _PER_PLAN:
        raise LookupError(f"too few questions for {_name(plan)}: {len(found)}")
    return found


def _name(plan: _Plan) -> str:
    return f"{getattr(plan.scenario, '__name__', '')}/{plan.variant}"


def _fitting(plan: _Plan) -> Iterator[CalibrationCase]:
    skill = _skill(plan)
    for entry in demo().entries:
        # Of its class: the judge is shown no prompt, so what a prompt lacks is no cause for it.
        lessons = [demo().lessons[name] for name in entry.planted.needs]
        needs = {x.lesson_id.rpartition("/")[2] for x in lessons if x.document == SKILL}
        wanted = {plan.needs} if plan.needs else set()
        if entry.row.task_type != plan.task_type or needs != wanted:
            continue
        question = _question(entry)
        went = plan.scenario(question, notes_of(question.video_id))
        if went is None:
            continue
        letter, steps = went
        name = f"{_name(plan)}/{question.question_id}"
        yield CalibrationCase(
            name=name,
            request=Diagnose(run_key=name, question=question, skill=skill, letter=letter),
            steps=steps,
            planted=Planted(_CAUSES[plan.variant], plan.error_type, plan.subtype),
        )


def _skill(plan: _Plan) -> Skill:
    lines: list[str] = []
    if plan.variant == "ignored":
        lines = [lesson.text for lesson in demo().lessons_of(plan.task_type)]
    if plan.variant == "misled":
        lines = [t.text for t in demo().traps_of(plan.task_type) if plan.trap in t.text]
        assert len(lines) == 1, f"{plan.trap!r} names {len(lines)} traps"
    return base_skill(plan.task_type, *lines)


def _question(entry: Entry) -> Question:
    row = entry.row
    return Question(
        question_id=row.question_id,
        video_id=row.video_id,
        task_type=row.task_type,
        question=row.question,
        options=row.options,
        answer=row.answer,
    )
