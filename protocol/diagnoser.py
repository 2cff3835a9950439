"""Why a wrong answer was wrong, and what the editors are shown of it: backward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request
from protocol.dataset import Question
from protocol.documents import Skill

__all__ = [
    "CallGrade",
    "CaseGroup",
    "CasePacks",
    "Cause",
    "Diagnose",
    "Diagnosis",
    "ErrorCount",
    "ErrorType",
    "GetCasePacks",
    "Habit",
    "PackCase",
    "SkillPack",
    "SystemPack",
    "ToolPack",
    "ToolSpan",
    "degraded_share",
    "route",
]

ErrorType = Literal[
    "no_search", "extraction_failure", "search_failure", "reasoning_failure", "mixed"
]
Cause = Literal["defect", "lapse", "uncertain"]
Habit = Literal["early_submit", "high_conf_wrong", "parse_failures", "no_answer"]
"""What the system prompt can mend, whatever the class (ALGORITHM.md section 4, case packs)."""


# -- one wrong answer -------------------------------------------------------------------


class CallGrade(Message, frozen=True, kw_only=True, tag=True):
    """How the agent used what one call returned, as the judge says.

    completeness: share of what mattered that it carried on; hallucination: share of its claims
    about it that the text does not support; both from 0 to 1. Only calls with ground truth, that
    is with their whole text in the judge's hands, are graded.
    """

    step: int
    completeness: float
    hallucination: float


class Diagnosis(Message, frozen=True, kw_only=True, tag=True):
    """The judge's finding.

    cause: None when the judge's infrastructure failed (row P1-5).
    degraded: the judge answered, but not in a form that could be used.
    finding: what went wrong, one or two sentences; never the answer, nor the question's id.
    rule: the line of the skill that the cause is about, word for word; empty if there is none.
    missed_nodes: shown to the agent by name and never read. grades: one per graded call.
    unreached: why the judge's infrastructure failed, for the operator; it may hold what a server
        said, so that it is neither stored nor shown to an editor. lasting: no waiting mends that.
    """

    question_id: str
    error_type: ErrorType
    subtype: str | None
    cause: Cause | None
    degraded: bool
    finding: str
    rule: str = ""
    missed_nodes: tuple[str, ...] = ()
    grades: tuple[CallGrade, ...] = ()
    unreached: str = ""
    lasting: bool = False


class Diagnose(Request[Diagnosis | Refused], frozen=True, kw_only=True, tag=True):
    """Diagnose a wrong answer from its stored steps (row P0-2).

    Costs one chat with the judge, two if the first reply cannot be used. Refused: the answered
    question has no stored steps. Stored under ``run_key`` at once, whatever the judge did.

    again: how often the step was refused for its replies; then the judge's are not replayed.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    question: Question
    skill: Skill
    letter: str | None
    again: int = 0


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


# -- case packs -------------------------------------------------------------------------


class PackCase(Message, frozen=True, kw_only=True, tag=True):
    """One answered question as an editor may read it.

    question_id, run_key: for the books (an edit's support); the id stands in no text here.
    question, options: as the agent read them; options only where the editor works on a class.
    reason: why the case was chosen. facts: the rule metrics, one a line. trace: the trajectory.

    The gold answer is not here, and finding, facts and trace are cleaned: no letter of an option,
    no option text of four words or more, no question id.
    """

    run_key: str
    question_id: str
    task_type: str
    question: str
    options: tuple[str, ...]
    right: bool
    reason: str
    error_type: ErrorType | None
    subtype: str | None
    cause: Cause | None
    degraded: bool
    finding: str
    rule: str
    facts: str
    trace: str


class ErrorCount(Message, frozen=True, kw_only=True, tag=True):
    """How many wrong answers were of a kind; error_type None: not diagnosed."""

    error_type: ErrorType | None
    wrong: int


class SkillPack(Message, frozen=True, kw_only=True, tag=True):
    """A class for the editor of its skill: failures of every error type, and what went well.

    answered: right and wrong, without the missing ones.
    """

    task_type: str
    answered: int
    right: int
    defects: int
    lapses: int
    errors: tuple[ErrorCount, ...]
    failures: tuple[PackCase, ...]
    successes: tuple[PackCase, ...]


class CaseGroup(Message, frozen=True, kw_only=True, tag=True):
    """A habit that goes across classes. cases: a few of the ``total``, none if it is rare."""

    habit: Habit
    total: int
    cases: tuple[PackCase, ...]


class SystemPack(Message, frozen=True, kw_only=True, tag=True):
    """All classes for the editor of the system prompt. groups: one per habit, in their order."""

    answered: int
    right: int
    groups: tuple[CaseGroup, ...]


class ToolSpan(Message, frozen=True, kw_only=True, tag=True):
    """One call of a tool: what was asked, what it said, what the agent made of it.

    follows: the agent's next thought. completeness, hallucination: None if it was not graded.
    Cleaned as a case is.
    """

    run_key: str
    question_id: str
    task_type: str
    step: int
    question: str
    reason: str
    arguments: str
    observation: str
    follows: str
    completeness: float | None
    hallucination: float | None


class ToolPack(Message, frozen=True, kw_only=True, tag=True):
    """A tool for the editor of its prompt.

    calls: in all answered questions. empty: calls that showed nothing (refused, or no hit).
    graded: calls with a grade, of which completeness is the mean and hallucination the worst.
    """

    tool: str
    calls: int
    empty: int
    graded: int
    completeness: float | None
    hallucination: float | None
    failing: tuple[ToolSpan, ...]
    good: tuple[ToolSpan, ...]


class CasePacks(Message, frozen=True, kw_only=True, tag=True):
    """What the editors read. skills: by class; tools: in the order that was asked for.

    missing: outcomes that infrastructure lost; they are nobody's cases.
    """

    skills: tuple[SkillPack, ...]
    system: SystemPack
    tools: tuple[ToolPack, ...]
    missing: int


class GetCasePacks(Request[CasePacks | Refused], frozen=True, kw_only=True, tag=True):
    """Packs from what is stored under these passes; the same rows give the same packs.

    questions: those that editors may read; answers to any other one are left out, so that what
    a gate tests on never reaches an editor. tools: names of the tool prompts.

    Refused: an answered question has no stored steps (row P0-2).
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_keys: tuple[str, ...]
    questions: tuple[Question, ...]
    tools: tuple[str, ...]
