"""Asking the judge, and what its reply means.

The judge alone is told the gold answer, so that its finding is cleaned before anyone else
reads it: findings go to the editor, and an editor that knows an answer writes it down.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from actors.diagnoser.metrics import describe, measure, seen_nodes
from actors.diagnoser.waterfall import Findings, ReasoningFailure, attribute
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.question import question_block
from prompts.templates import Template
from prompts.trajectory import neutral, render_steps
from protocol.dataset import Question
from protocol.diagnoser import Cause, Diagnose, Diagnosis
from protocol.rollout import Step

__all__ = ["JudgeReply", "judge", "judge_prompt", "without_answer"]

Share = Annotated[float, Meta(ge=0, le=1)]
_WITHHELD = "[the answer]"
_SHORTEST_BODY = 3  # "No" and "3" are words of every finding


class JudgeReply(msgspec.Struct, frozen=True):
    """The reply that ``prompts/diagnose_answer.md`` asks for."""

    completeness: Share
    hallucination: Share
    missed_nodes: tuple[str, ...]
    evidence_sufficient: bool
    reasoning_failure: ReasoningFailure | tuple[ReasoningFailure, ...] | None
    cause: Cause
    finding: Annotated[str, Meta(min_length=1)]

    @property
    def failures(self) -> tuple[ReasoningFailure, ...]:
        """The reasoning failures that it names: none, one, or several."""
        if self.reasoning_failure is None:
            return ()
        if isinstance(self.reasoning_failure, str):
            return (self.reasoning_failure,)
        return self.reasoning_failure


def judge_prompt(
    template: Template, request: Diagnose, steps: Sequence[Step], max_trace_chars: int
) -> str:
    """The filled template."""
    return template.fill(
        question=neutral(question_block(request.question.public)),
        correct=request.question.answer,
        answer=request.letter or "none",
        skill=request.skill.text,
        trajectory=render_steps(steps, max_trace_chars),
        measured=describe(measure(steps)),
    )


async def judge(
    chat: ChatCall,
    template: Template,
    request: Diagnose,
    steps: Sequence[Step],
    max_trace_chars: int,
) -> Diagnosis:
    """Have a wrong answer judged.

    A judge whose replies cannot be read leaves a degraded diagnosis, one that cannot be
    reached a diagnosis without cause (row P1-5); neither is ever a defect.
    """
    prompt = judge_prompt(template, request, steps, max_trace_chars)
    outcome = await ask_for(
        chat, "judge", prompt, JudgeReply, request.scope, illustration=template.illustration
    )
    match outcome:
        case Understood(value=reply):
            return _diagnosis(
                request,
                steps,
                _findings(reply, steps),
                cause=reply.cause,
                degraded=False,
                finding=without_answer(reply.finding, request.question),
            )
        case NotUnderstood(problem=problem):
            return _diagnosis(
                request,
                steps,
                None,
                cause="uncertain",
                degraded=True,
                finding=f"No finding: the judge's reply could not be read ({problem}).",
            )
        case Unreachable(failure=failure):
            return _diagnosis(
                request,
                steps,
                None,
                cause=None,
                degraded=False,
                finding=f"No finding: the judge could not be reached ({failure.kind}).",
            )


def without_answer(finding: str, question: Question) -> str:
    """The finding with the gold letter and the gold option's text taken out."""
    letter = re.escape(question.answer)
    named = re.compile(
        rf"\b((?:correct|right|gold|true)\s+)?(option|answer|choice|letter)(\s+(?:is|was|being))?"
        rf"[\s:=]*[\"'(\[]*\b{letter}\b[\"')\]]*",
        re.IGNORECASE,
    )
    cleaned = named.sub(_keep_article, finding)
    position = ord(question.answer) - ord("A")
    if 0 <= position < len(question.options):
        body = question.options[position].strip().rstrip(".")
        if len(body) >= _SHORTEST_BODY:
            quoted = re.compile(rf"(?<!\w){re.escape(body)}(?!\w)", re.IGNORECASE)
            cleaned = quoted.sub(_WITHHELD, cleaned)
    return cleaned


def _keep_article(match: re.Match[str]) -> str:
    # "the answer a reader expects": a lower-case article is not the letter A.
    said = match.group(0)
    return said if said.endswith("a") else _WITHHELD


def _findings(reply: JudgeReply, steps: Sequence[Step]) -> Findings:
    seen = seen_nodes(steps)
    return Findings(
        completeness=reply.completeness,
        hallucination=reply.hallucination,
        missed_nodes=tuple(node for node in reply.missed_nodes if node not in seen),
        evidence_sufficient=reply.evidence_sufficient,
        reasoning_failures=reply.failures,
    )


def _diagnosis(
    request: Diagnose,
    steps: Sequence[Step],
    findings: Findings | None,
    *,
    cause: Cause | None,
    degraded: bool,
    finding: str,
) -> Diagnosis:
    metrics = measure(steps)
    kind = attribute(findings, calls=metrics.calls, grounded_calls=metrics.grounded_calls)
    return Diagnosis(
        question_id=request.question.question_id,
        error_type=kind.error_type,
        subtype=kind.subtype,
        cause=cause,
        degraded=degraded,
        finding=finding,
    )
