"""What the editor is shown, and the form of its reply. Pure.

The gold letter is never shown: an editor that knows the answers writes them down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from actors.evolver.rejected import edits_of, in_order, notes_of
from prompts.question import labelled
from prompts.templates import Template
from prompts.trajectory import neutral, quoted, render_steps, submission_of
from protocol.documents import Skill
from protocol.evolver import Case, Edit, Op
from protocol.rollout import Step
from protocol.rows import RejectedRow

__all__ = ["EditorReply", "Evidence", "Kind", "ProposedEdit", "editor_prompt", "render_rejected"]

Kind = Literal["defect", "lapse"]
_MAX_REJECTED = 20
_MAX_REJECTED_CHARS = 300


class ProposedEdit(msgspec.Struct, frozen=True):
    """An edit as the model writes it."""

    op: Op
    target: str
    content: str
    support: tuple[str, ...] = ()
    reason: str = ""

    @property
    def edit(self) -> Edit:
        """The edit as the protocol knows it."""
        return Edit(
            op=self.op,
            target=self.target,
            content=self.content,
            support=self.support,
            reason=self.reason,
        )


class EditorReply(msgspec.Struct, frozen=True):
    """The reply that ``prompts/evolve_skill.md`` asks for."""

    edits: tuple[ProposedEdit, ...]
    suggestions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """A case with the steps that the agent took."""

    case: Case
    kind: Kind
    steps: tuple[Step, ...]


def editor_prompt(
    template: Template,
    skill: Skill,
    evidence: Sequence[Evidence],
    rejected: Sequence[RejectedRow],
    *,
    edit_budget: int,
    growth_chars: int,
    max_trace_chars: int,
) -> str:
    """The filled template for one minibatch."""
    return template.fill(
        skill=skill.text,
        edit_budget=str(edit_budget),
        growth_chars=str(growth_chars),
        cases="\n\n".join(_render_case(item, max_trace_chars) for item in evidence),
        rejected=render_rejected(rejected),
    )


def render_rejected(rows: Sequence[RejectedRow]) -> str:
    """The latest rejected edits, one a line, with what the gate saw; ``none`` if there are none."""
    lines = []
    for row in in_order(rows):
        seen = f"({row.verdict}: {row.wins} won, {row.losses} lost, e-value {row.e_value:.3g})"
        for edit in edits_of(row):
            target = quoted(edit.target, _MAX_REJECTED_CHARS)
            content = quoted(edit.content, _MAX_REJECTED_CHARS)
            lines.append(f"- {edit.op} {target} -> {content} {seen}")
        lines += [f"- note {quoted(note, _MAX_REJECTED_CHARS)} {seen}" for note in notes_of(row)]
    return "\n".join(lines[-_MAX_REJECTED:]) or "none"


def _render_case(item: Evidence, max_trace_chars: int) -> str:
    question, diagnosis = item.case.question, item.case.diagnosis
    submission = submission_of(item.steps)
    letter = submission.letter if submission else None
    kind = diagnosis.error_type + (f", {diagnosis.subtype}" if diagnosis.subtype else "")
    parts = (
        f"Question: {question.question}",
        labelled(question.options),
        f"Agent's answer: {letter or 'none'} (wrong)",
        f"Finding ({kind}): {diagnosis.finding}",
        "Trajectory:",
        render_steps(item.steps, max_trace_chars),
    )
    # Indented, so that nothing a video says can begin a block of the prompt.
    body = neutral("\n".join(parts)).replace("\r", "\n").replace("\n", "\n  ")
    return f"Case {question.question_id} [{item.kind}]\n  {body}"
