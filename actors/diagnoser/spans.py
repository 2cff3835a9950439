"""Single calls of a tool, those that went badly and those that went well. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from actors.diagnoser.cases import Answer, cleaned
from actors.diagnoser.metrics import CONFIDENT, is_look
from actors.diagnoser.waterfall import THRESHOLD
from prompts.trajectory import SUBMIT, neutral, submission_of
from prompts.withhold import fitted
from protocol.diagnoser import CallGrade, ToolPack, ToolSpan
from protocol.rollout import Step

__all__ = ["tool_pack"]

MOST_SPANS = 4
MOST_PER_REASON = 2
WELL_READ = 0.9

_INVENTED = "claims about it that its text does not support"
_LOST = "most of what mattered was lost"
_REFUSED = "it was refused"
_EMPTY = "it showed nothing"
_NO_LETTER = "no valid letter"
_SURE_AND_WRONG = "sure and wrong"
# The telling ones first.
_FAILING = (_INVENTED, _LOST, _NO_LETTER, _SURE_AND_WRONG, _REFUSED, _EMPTY)
_READ_WELL = "read completely, nothing invented"
_PROVES = "evidence of a right answer"
_SURE_AND_RIGHT = "sure and right"


class _Call(msgspec.Struct, frozen=True):
    """One call in its trajectory. at: its place in the steps."""

    answer: Answer
    at: int
    grade: CallGrade | None

    @property
    def step(self) -> Step:
        return self.answer.steps[self.at]

    @property
    def order(self) -> tuple[tuple[str, str], int]:
        return (self.answer.key, self.at)


def tool_pack(tool: str, answers: Iterable[Answer], max_chars: int) -> ToolPack:
    """A tool's counts and spans. max_chars: of a whole case; a span's texts are parts of it."""
    calls = [call for answer in answers for call in _calls_of(tool, answer)]
    grades = [call.grade for call in calls if call.grade is not None]
    failing = [(why, call) for call in calls if (why := _why_failing(call)) is not None]
    good = [(why, call) for call in calls if (why := _why_good(call)) is not None]
    failing.sort(key=lambda item: (_FAILING.index(item[0]), item[1].order))
    good.sort(key=lambda item: item[1].order)
    return ToolPack(
        tool=tool,
        calls=len(calls),
        empty=sum(not call.step.node_ids for call in calls) if is_look(tool) else 0,
        graded=len(grades),
        completeness=sum(g.completeness for g in grades) / len(grades) if grades else None,
        hallucination=max((g.hallucination for g in grades), default=None),
        failing=tuple(_span(call, why, max_chars) for why, call in _bounded(failing)),
        good=tuple(_span(call, why, max_chars) for why, call in _bounded(good)),
    )


def _calls_of(tool: str, answer: Answer) -> list[_Call]:
    grades = {grade.step: grade for grade in answer.grades}
    return [
        _Call(answer, at, grades.get(step.index))
        for at, step in enumerate(answer.steps)
        if step.tool == tool
    ]


def _why_failing(call: _Call) -> str | None:
    if call.step.tool == SUBMIT:
        return _why_badly_submitted(call)
    if call.grade is not None and call.grade.hallucination > THRESHOLD:
        return _INVENTED
    if call.grade is not None and call.grade.completeness < THRESHOLD:
        return _LOST
    if {"bad_call", "refused"} & set(call.step.flags):
        return _REFUSED
    return None if call.step.node_ids or not is_look(call.step.tool) else _EMPTY


def _why_badly_submitted(call: _Call) -> str | None:
    """A submission that ended nothing had no letter, and so had the last one of a no_answer."""
    answer = call.answer
    if call.at < len(answer.steps) - 1 or answer.outcome.stop == "no_answer":
        return _NO_LETTER
    wrong_and_sure = not answer.right and answer.metrics.calibration == "high_conf_wrong"
    return _SURE_AND_WRONG if wrong_and_sure else None


def _why_good(call: _Call) -> str | None:
    answer = call.answer
    if call.step.tool == SUBMIT:
        sure = (answer.metrics.confidence or 0.0) >= CONFIDENT
        return _SURE_AND_RIGHT if answer.right and sure else None
    grade = call.grade
    if grade is not None and grade.completeness >= WELL_READ and grade.hallucination == 0:
        return _READ_WELL
    submission = submission_of(answer.steps) if answer.right else None
    cited = submission is not None and any(n in submission.evidence for n in call.step.node_ids)
    return _PROVES if cited else None


def _bounded(found: Sequence[tuple[str, _Call]]) -> list[tuple[str, _Call]]:
    """A few, of every reason some, and of no trajectory two for the same reason."""
    taken: list[tuple[str, _Call]] = []
    per_reason: Counter[str] = Counter()
    seen: set[tuple[str, tuple[str, str]]] = set()
    for why, call in found:
        if len(taken) == MOST_SPANS:
            break
        if per_reason[why] == MOST_PER_REASON or (why, call.answer.key) in seen:
            continue
        taken.append((why, call))
        per_reason[why] += 1
        seen.add((why, call.answer.key))
    return taken


def _span(call: _Call, reason: str, max_chars: int) -> ToolSpan:
    question = call.answer.question
    step, *later = (cleaned(step, question) for step in call.answer.steps[call.at : call.at + 2])
    follows = later[0].thought or later[0].raw if later else ""
    half, quarter = max(1, max_chars // 2), max(1, max_chars // 4)
    return ToolSpan(
        run_key=call.answer.outcome.run_key,
        question_id=question.question_id,
        task_type=question.task_type,
        step=step.index,
        question=question.question,
        reason=reason,
        arguments=fitted(neutral(step.arguments), question, quarter),
        observation=fitted(neutral(step.observation), question, half),
        follows=fitted(neutral(follows), question, quarter),
        completeness=call.grade.completeness if call.grade else None,
        hallucination=call.grade.hallucination if call.grade else None,
    )
