"""Asking the judge, and what its reply means.

One question to the judge per wrong answer, one more if its reply cannot be used: at most two
chats. Extraction is judged in the same reply as the cause, call by call: the long part of the
prompt is the trajectory, and a second prompt would pay for it twice.

The judge alone is told the gold answer, so that its finding is cleaned before anyone else
reads it: findings go to the editor, and an editor that knows an answer writes it down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from actors.diagnoser.followed import Shown, shown_skill
from actors.diagnoser.metrics import (
    describe,
    gradable,
    measure,
    mentioned_nodes,
    seen_nodes,
)
from actors.diagnoser.rules import find_rule, rule_lines, says_none
from actors.diagnoser.waterfall import Findings, ReasoningFailure, attribute
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.question import question_block
from prompts.reply import reply_schema
from prompts.templates import Template
from prompts.trajectory import clip, neutral, render_steps
from prompts.withhold import without_answer
from protocol.diagnoser import CallGrade, Cause, Diagnose, Diagnosis
from protocol.rollout import Step

__all__ = ["Amount", "Brief", "Followed", "GradedCall", "JudgeReply", "brief_of", "judge"]

Amount = Literal["all", "most", "half", "little", "nothing"]
Followed = Literal["yes", "no", "unclear", "none"]
_SHARES: dict[Amount, float] = {"all": 1.0, "most": 0.75, "half": 0.5, "little": 0.25, "nothing": 0}
_MOST_GRADED = 16
_MOST_LISTED, _MOST_LISTED_CHARS = 200, 12_000  # servers bound the lists of a schema
_MAX_FINDING_CHARS = 600
_OTHER_SKILL = "The agent had not read the skill of this class."


class GradedCall(msgspec.Struct, frozen=True):
    """How the agent used one call. Words, not numbers: every model tells these apart."""

    step: int
    kept: Amount
    invented: Amount


class JudgeReply(msgspec.Struct, frozen=True):
    """The reply that ``prompts/diagnose_answer.md`` asks for.

    The fields stand in the order in which they are to be thought of: what went wrong, whether
    the skill has a rule about it, whether it was followed, and only then the cause.
    """

    calls: tuple[GradedCall, ...]
    missed_nodes: tuple[str, ...]
    evidence_sufficient: bool
    reasoning_failure: ReasoningFailure | tuple[ReasoningFailure, ...] | None
    finding: Annotated[str, Meta(min_length=1)]
    rule: str
    followed: Followed
    cause: Cause

    @property
    def failures(self) -> tuple[ReasoningFailure, ...]:
        """The reasoning failures that it names: none, one, or several."""
        if self.reasoning_failure is None:
            return ()
        if isinstance(self.reasoning_failure, str):
            return (self.reasoning_failure,)
        return self.reasoning_failure


class Brief(msgspec.Struct, frozen=True):
    """What the judge is sent. graded: steps whose use it has to grade.

    schema: of its reply, where an endpoint can enforce one. skill: the one that it is shown.
    """

    prompt: str
    graded: tuple[int, ...]
    schema: str
    skill: Shown


def brief_of(
    template: Template,
    request: Diagnose,
    steps: Sequence[Step],
    *,
    max_trace_chars: int,
    max_calls: int | None = None,
    manual: bool = False,
) -> Brief:
    """The filled template.

    manual: the agent chose its skill by itself, so that the judge is shown the one that it read.

    A call is graded if its ground truth can be held against it: if it showed nodes, as text, and
    this text is in the prompt uncut.
    """
    trajectory = render_steps(steps, max_trace_chars)
    graded = tuple(
        step.index for step in steps if gradable(step) and neutral(step.observation) in trajectory
    )[-_MOST_GRADED:]
    skill = shown_skill(request.skill.text, steps, manual=manual)
    prompt = template.fill(
        question=neutral(question_block(request.question.public)),
        correct=request.question.answer,
        answer=request.letter or "none",
        skill=skill.text,
        trajectory=trajectory,
        measured=describe(measure(steps, max_calls=max_calls)),
        graded=", ".join(map(str, graded)) or "none",
    )
    return Brief(prompt, graded, _schema(skill.rules, graded), skill)


async def judge(
    chat: ChatCall, template: Template, request: Diagnose, steps: Sequence[Step], brief: Brief
) -> Diagnosis:
    """Have a wrong answer judged.

    A judge whose replies cannot be used leaves a degraded diagnosis, one that cannot be
    reached a diagnosis without cause (row P1-5); neither is ever a defect.
    """
    outcome = await ask_for(
        chat,
        "judge",
        brief.prompt,
        JudgeReply,
        request.scope,
        illustration=template.illustration,
        check=lambda reply: _problem(reply, brief.skill.rules, brief.graded),
        schema=brief.schema,
        again=request.again,
    )
    match outcome:
        case Understood(value=reply):
            return _judged(reply, request, steps, brief)
        case NotUnderstood(problem=problem):
            return _unjudged(
                request,
                steps,
                cause="uncertain",
                degraded=True,
                finding=f"No finding: the judge's reply could not be used ({problem}).",
            )
        case Unreachable(failure=failure):
            silent = _unjudged(
                request,
                steps,
                cause=None,
                degraded=False,
                finding=f"No finding: the judge could not be reached ({failure.kind}).",
            )
            return msgspec.structs.replace(silent, unreached=failure.why, lasting=failure.lasting)


def _schema(skill_text: str, graded: Sequence[int]) -> str:
    """The reply's schema, with the skill's lines and the graded steps as closed lists.

    A model of 1.5 billion parameters that was free to copy a rule made one up in two of three
    replies, and again when it was told so; held to the list it can only choose.
    """
    schema = msgspec.json.decode(reply_schema(JudgeReply))
    rules = list(dict.fromkeys(rule_lines(skill_text)))
    if len(rules) <= _MOST_LISTED and sum(map(len, rules)) <= _MOST_LISTED_CHARS:
        schema["properties"]["rule"] = {"enum": ["none", *rules]}
    if graded:
        schema["$defs"]["GradedCall"]["properties"]["step"] = {"enum": list(graded)}
    return msgspec.json.encode(schema).decode("utf-8")


# -- what a reply means -----------------------------------------------------------------


def _problem(reply: JudgeReply, skill_text: str, graded: Sequence[int]) -> str | None:
    """Why a reply of the right form cannot be used, as a sentence to the judge.

    ``uncertain`` contradicts nothing: a judge that will not say is no evidence for an edit.
    """
    if graded and not any(call.step in graded for call in reply.calls):
        return f"`calls` must have an entry for each of the steps {', '.join(map(str, graded))}"
    if says_none(reply.rule):
        if reply.cause == "lapse":
            return '`cause` is "lapse" but `rule` is "none": without a rule it is no lapse'
        return None
    if find_rule(skill_text, reply.rule) is None:
        return '`rule` is not in the skill: copy one of its lines word for word, or write "none"'
    fitting: dict[Followed, Cause] = {"yes": "defect", "no": "lapse"}
    wanted = fitting.get(reply.followed, "uncertain")
    if reply.cause not in (wanted, "uncertain"):
        return (
            f'`followed` is "{reply.followed}", so that `cause` is "{wanted}" and not '
            f'"{reply.cause}"; if following the rule would not have helped, `rule` is "none"'
        )
    return None


def _judged(reply: JudgeReply, request: Diagnose, steps: Sequence[Step], brief: Brief) -> Diagnosis:
    """A verdict on a skill that is not the class's is no evidence about the class's.

    Neither an edit nor a note in a skill that was not read could have helped: ``uncertain``.
    """
    own = brief.skill.own
    readable = mentioned_nodes(steps) - seen_nodes(steps)
    findings = Findings(
        grades=_grades(reply.calls, brief.graded),
        missed_nodes=tuple(dict.fromkeys(n for n in reply.missed_nodes if n in readable)),
        evidence_sufficient=reply.evidence_sufficient,
        reasoning_failures=reply.failures,
    )
    kind = attribute(findings, calls=measure(steps).calls)
    return Diagnosis(
        question_id=request.question.question_id,
        error_type=kind.error_type,
        subtype=kind.subtype,
        cause=reply.cause if own else "uncertain",
        degraded=False,
        finding=_finding(reply.finding if own else f"{_OTHER_SKILL} {reply.finding}", request),
        rule=_rule(reply, brief.skill) if own else "",
        missed_nodes=tuple(findings.missed_nodes),
        grades=tuple(findings.grades),
    )


def _grades(calls: Sequence[GradedCall], graded: Sequence[int]) -> tuple[CallGrade, ...]:
    """One grade per call that may have one, in the order of the steps; the first said stands."""
    said: dict[int, GradedCall] = {}
    for call in calls:
        said.setdefault(call.step, call)
    return tuple(
        CallGrade(
            step=step,
            completeness=_SHARES[said[step].kept],
            hallucination=_SHARES[said[step].invented],
        )
        for step in graded
        if step in said
    )


def _rule(reply: JudgeReply, skill: Shown) -> str:
    return "" if says_none(reply.rule) else find_rule(skill.rules, reply.rule) or ""


def _finding(said: str, request: Diagnose) -> str:
    cleaned = without_answer(said, request.question)
    if len(cleaned) <= _MAX_FINDING_CHARS:
        return cleaned
    # A word that is cut can leave a letter by itself, so that the cut text is cleaned again.
    return without_answer(clip(cleaned, _MAX_FINDING_CHARS), request.question)


def _unjudged(
    request: Diagnose, steps: Sequence[Step], *, cause: Cause | None, degraded: bool, finding: str
) -> Diagnosis:
    """What can be said without a judgement: whether anything was looked at."""
    kind = attribute(None, calls=measure(steps).calls)
    return Diagnosis(
        question_id=request.question.question_id,
        error_type=kind.error_type,
        subtype=kind.subtype,
        cause=cause,
        degraded=degraded,
        finding=without_answer(finding, request.question),
    )
