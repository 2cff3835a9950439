"""What the editors are shown: a few telling cases of many, chosen without a model. Pure.

The same answers give the same packs: everything is ordered by what it is, ties by question id
and pass. Every list is bounded; what was left out can be seen from the counts beside it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import get_args

from actors.diagnoser.cases import Answer, Gathered, case_of
from actors.diagnoser.spans import tool_pack
from protocol.diagnoser import (
    CaseGroup,
    CasePacks,
    ErrorCount,
    ErrorType,
    Habit,
    PackCase,
    SkillPack,
    SystemPack,
)

__all__ = ["case_packs"]

MOST_PER_ERROR_TYPE = 2
FEWEST_SUCCESSES, MOST_SUCCESSES = 2, 4
FEWEST_OF_A_HABIT = 3
"""A habit seen once or twice is chance: the system prompt is changed for all classes at once."""
MOST_PER_HABIT = 3

_ERROR_TYPES: tuple[ErrorType | None, ...] = (*get_args(ErrorType), None)
_CAUSES = ("defect", "lapse", "uncertain")


def case_packs(gathered: Gathered, tools: Iterable[str], *, max_chars: int) -> CasePacks:
    """The packs. tools: names of the tool prompts. max_chars: of a case's trajectory."""
    answers = gathered.answers
    by_class: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_class[answer.question.task_type].append(answer)
    return CasePacks(
        skills=tuple(_skill_pack(name, by_class[name], max_chars) for name in sorted(by_class)),
        system=_system_pack(answers, max_chars),
        tools=tuple(tool_pack(tool, answers, max_chars) for tool in dict.fromkeys(tools)),
        missing=gathered.missing,
    )


# -- skills -----------------------------------------------------------------------------


def _skill_pack(task_type: str, answers: Sequence[Answer], max_chars: int) -> SkillPack:
    wrong = [answer for answer in answers if not answer.right]
    right = [answer for answer in answers if answer.right]
    kinds = Counter(answer.error_type for answer in wrong)
    defects = sum(answer.cause == "defect" and not answer.degraded for answer in wrong)
    failures = [
        answer
        for kind in _ERROR_TYPES
        for answer in sorted((a for a in wrong if a.error_type == kind), key=_severity)[
            :MOST_PER_ERROR_TYPE
        ]
    ]
    n_successes = min(MOST_SUCCESSES, max(FEWEST_SUCCESSES, len(failures) // 2))
    successes = sorted(right, key=_exemplary)[:n_successes]
    return SkillPack(
        task_type=task_type,
        answered=len(answers),
        right=len(right),
        defects=defects,
        lapses=len(wrong) - defects,
        errors=tuple(ErrorCount(error_type=k, wrong=kinds[k]) for k in _ERROR_TYPES if kinds[k]),
        failures=tuple(
            case_of(a, _failed_as(a), options=True, max_chars=max_chars) for a in failures
        ),
        successes=tuple(
            case_of(a, _succeeded(a), options=True, max_chars=max_chars) for a in successes
        ),
    )


def _severity(answer: Answer) -> tuple[int, bool, tuple[str, str]]:
    """Defects before lapses before the doubtful; the sure ones before the unsure."""
    said = answer.cause
    rank = len(_CAUSES) if said is None or answer.degraded else _CAUSES.index(said)
    return (rank, answer.metrics.calibration != "high_conf_wrong", answer.key)


def _exemplary(answer: Answer) -> tuple[bool, int, tuple[str, str]]:
    """Answers that looked, the shortest first: a guess that was right teaches nothing."""
    return (answer.metrics.calls == 0, answer.metrics.steps, answer.key)


def _failed_as(answer: Answer) -> str:
    if answer.diagnosis is None:
        return "wrong, not diagnosed"
    kind = answer.diagnosis.error_type
    subtype = f" ({answer.diagnosis.subtype})" if answer.diagnosis.subtype else ""
    cause = "no usable judgement" if answer.degraded else answer.cause or "no judgement"
    return f"{kind}{subtype}, {cause}"


def _succeeded(answer: Answer) -> str:
    return f"right, after {answer.metrics.calls} calls"


# -- the system prompt ------------------------------------------------------------------


def _early(answer: Answer) -> bool:
    return not answer.right and answer.outcome.stop == "submitted" and answer.metrics.early


def _sure_and_wrong(answer: Answer) -> bool:
    return not answer.right and answer.metrics.calibration == "high_conf_wrong"


def _unreadable(answer: Answer) -> bool:
    return answer.metrics.unreadable > 0 or answer.outcome.stop == "parse_error"


def _unanswered(answer: Answer) -> bool:
    return answer.outcome.stop in ("budget", "no_answer")


_HABITS: dict[Habit, Callable[[Answer], bool]] = {
    "early_submit": _early,
    "high_conf_wrong": _sure_and_wrong,
    "parse_failures": _unreadable,
    "no_answer": _unanswered,
}


def _system_pack(answers: Sequence[Answer], max_chars: int) -> SystemPack:
    return SystemPack(
        answered=len(answers),
        right=sum(answer.right for answer in answers),
        groups=tuple(
            _group(habit, [a for a in answers if shows(a)], max_chars)
            for habit, shows in _HABITS.items()
        ),
    )


def _group(habit: Habit, found: Sequence[Answer], max_chars: int) -> CaseGroup:
    chosen = _spread(found)[:MOST_PER_HABIT] if len(found) >= FEWEST_OF_A_HABIT else []
    return CaseGroup(
        habit=habit, total=len(found), cases=tuple(_habit_case(a, habit, max_chars) for a in chosen)
    )


def _spread(found: Sequence[Answer]) -> list[Answer]:
    """The first of every class before the second of any: a habit is not one class's."""
    ordered = sorted(found, key=lambda a: (a.question.task_type, _severity(a)))
    ranked = [
        (rank, task_type, answer)
        for task_type, group in groupby(ordered, key=lambda a: a.question.task_type)
        for rank, answer in enumerate(group)
    ]
    return [answer for _, _, answer in sorted(ranked, key=lambda item: item[:2])]


def _habit_case(answer: Answer, habit: Habit, max_chars: int) -> PackCase:
    metrics = answer.metrics
    reasons: dict[Habit, str] = {
        "early_submit": f"submitted after {metrics.calls} calls, wrong",
        "high_conf_wrong": f"confidence {metrics.confidence or 0:.2f}, wrong",
        "parse_failures": f"{metrics.unreadable} of {metrics.steps} replies could not be read",
        "no_answer": "ended without an answer",
    }
    return case_of(answer, reasons[habit], options=False, max_chars=max_chars)
