"""What the editors of the system prompt and of a tool prompt are shown. Pure.

Packs come from the diagnoser without the answers: letters of options, long option texts and ids
are taken out of every text. Whatever a pack holds, a bounded part of it stands in a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from actors.evolver.blocks import case_block
from actors.evolver.leak import Exposed
from actors.evolver.prompt import ProposedEdit, render_rejected
from prompts.templates import Template
from prompts.trajectory import clip
from protocol.dataset import Question
from protocol.diagnoser import CaseGroup, Habit, PackCase, SystemPack, ToolPack, ToolSpan
from protocol.documents import Document
from protocol.rows import RejectedRow

__all__ = [
    "MOST_CASES",
    "PromptReply",
    "case_ids",
    "exposed_in",
    "has_failures",
    "prompt_for",
]

MOST_CASES = 16
_MOST_TEXT_CHARS = 1500
_LABEL = re.compile(r"^(?:Thought|Unreadable reply|Observation): ", re.MULTILINE)


class PromptReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply that ``prompts/evolve_system.md`` and ``prompts/evolve_tool.md`` ask for."""

    suggestions: tuple[str, ...] = ()
    edits: tuple[ProposedEdit, ...]


def has_failures(pack: SystemPack | ToolPack) -> bool:
    """Whether there is anything to learn from: good calls alone are no reason for an edit."""
    if isinstance(pack, ToolPack):
        return bool(pack.failing)
    return any(group.cases for group in pack.groups)


def case_ids(pack: SystemPack | ToolPack) -> frozenset[str]:
    """The questions that a pack quotes."""
    return frozenset(question_id for question_id, _ in _texts(pack))


def exposed_in(pack: SystemPack | ToolPack, questions: Iterable[Question]) -> tuple[Exposed, ...]:
    """Every question, with what the editor reads about it: it can quote nothing else.

    Raises ValueError naming the cases whose question is not there to hold an edit against.
    """
    read: dict[str, list[str]] = {}
    for question_id, texts in _texts(pack):
        read.setdefault(question_id, []).extend(_LABEL.sub("", text) for text in texts)
    by_id = {question.question_id: question for question in questions}
    lacking = sorted(read.keys() - by_id.keys())
    if lacking:
        raise ValueError(f"questions: the pack has cases of {', '.join(lacking)}, which lack here")
    return tuple(
        Exposed(question, tuple(read.get(question_id, ())))
        for question_id, question in by_id.items()
    )


def prompt_for(
    template: Template,
    document: Document,
    pack: SystemPack | ToolPack,
    rejected: Sequence[RejectedRow],
    *,
    locked: Sequence[str],
    edit_budget: int,
    growth_chars: int,
    max_trace_chars: int,
) -> str:
    """The filled template. locked: titles of the sections that stay as they are."""
    cases = _tool_cases(pack) if isinstance(pack, ToolPack) else _habit_cases(pack, max_trace_chars)
    return template.fill(
        document=document.name,
        text=document.text,
        locked=", ".join(f"`{title}`" for title in locked),
        edit_budget=str(edit_budget),
        growth_chars=str(growth_chars),
        counts=_tool_counts(pack) if isinstance(pack, ToolPack) else _habit_counts(pack),
        cases="\n\n".join(cases[:MOST_CASES]),
        rejected=render_rejected(rejected),
    )


def _texts(pack: SystemPack | ToolPack) -> list[tuple[str, tuple[str, ...]]]:
    """Every case's question id with the texts of its attempt."""
    if isinstance(pack, ToolPack):
        return [
            (span.question_id, (span.arguments, span.observation, span.follows))
            for span in (*pack.failing, *pack.good)
        ]
    return [
        (case.question_id, (case.finding, case.trace))
        for group in pack.groups
        for case in group.cases
    ]


# -- the system prompt ------------------------------------------------------------------


def _habit_counts(pack: SystemPack) -> str:
    totals = {group.habit: group.total for group in pack.groups}
    found = ", ".join(f"{totals.get(habit, 0)} {habit}" for habit in get_args(Habit))
    return f"{pack.answered} answered, {pack.right} of them right; {found}"


def _habit_cases(pack: SystemPack, max_trace_chars: int) -> list[str]:
    """A case of every habit before the second of any, so that a bound cuts none of them off."""
    groups = [group for group in pack.groups if group.cases]
    longest = max((len(group.cases) for group in groups), default=0)
    return [
        _habit_case(group, group.cases[place], max_trace_chars)
        for place in range(longest)
        for group in groups
        if place < len(group.cases)
    ]


def _habit_case(group: CaseGroup, case: PackCase, max_trace_chars: int) -> str:
    kind = f" ({case.error_type})" if case.error_type else ""
    return case_block(
        case.question_id,
        group.habit,
        (
            f"Kind of question: {case.task_type}",
            f"Question: {clip(case.question, _MOST_TEXT_CHARS)}",
            f"Why it is here: {case.reason}",
            f"Finding{kind}: {clip(case.finding, _MOST_TEXT_CHARS)}" if case.finding else "",
            f"Measured:\n{clip(case.facts, _MOST_TEXT_CHARS)}" if case.facts else "",
            f"Trajectory:\n{clip(case.trace, max_trace_chars)}",
        ),
    )


# -- a tool prompt ----------------------------------------------------------------------


def _tool_counts(pack: ToolPack) -> str:
    found = f"{pack.calls} calls, {pack.empty} of them showed nothing; {pack.graded} graded"
    if pack.completeness is not None:
        found += f", completeness {pack.completeness:.2f} on average"
    if pack.hallucination is not None:
        found += f", hallucination {pack.hallucination:.2f} at worst"
    return found


def _tool_cases(pack: ToolPack) -> list[str]:
    """Failures first."""
    return [
        *(_tool_case(span, "failing") for span in pack.failing),
        *(_tool_case(span, "good") for span in pack.good),
    ]


def _tool_case(span: ToolSpan, kind: str) -> str:
    grades = [
        f"{name} {value:.2f}"
        for name, value in (
            ("completeness", span.completeness),
            ("hallucination", span.hallucination),
        )
        if value is not None
    ]
    return case_block(
        span.question_id,
        kind,
        (
            f"Kind of question: {span.task_type}",
            f"Question: {clip(span.question, _MOST_TEXT_CHARS)}",
            f"Why it is here: {span.reason}",
            f"Graded: {', '.join(grades)}" if grades else "",
            f"Arguments: {clip(span.arguments, _MOST_TEXT_CHARS)}",
            f"Tool said: {clip(span.observation, _MOST_TEXT_CHARS)}",
            f"Agent's next reply: {clip(span.follows, _MOST_TEXT_CHARS)}" if span.follows else "",
        ),
    )
