"""From a rollout's end to what is stored and answered. Pure.

Every text that came from outside is made storable here once more (row P0-4): what one
agent wrote must never be able to break the batch of all the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from actors.rollout.answer_text import storable
from actors.rollout.outcome import Broken, Ended
from protocol.rollout import Answered, Flag, ForcedBy, Missed, Rollout, Step
from protocol.rows import OutcomeRow, TraceRow

__all__ = ["missing_row", "outcome_row", "reply_of", "trace_rows"]


def reply_of(request: Rollout, result: Ended | Broken) -> Answered | Missed:
    """What the asker gets."""
    question = request.question
    if isinstance(result, Broken):
        return Missed(question_id=question.question_id, kind=result.kind, detail=result.detail)
    return Answered(
        question_id=question.question_id,
        right=result.letter is not None and result.letter == question.answer,
        letter=result.letter,
        submitted=storable(result.submitted),
        confidence=result.confidence,
        stop=result.stop,
        n_steps=len(result.steps),
        forced_by=result.forced_by,
    )


def outcome_row(request: Rollout, result: Ended | Broken, seconds: float) -> OutcomeRow:
    """The question's row: right, wrong or missing."""
    if isinstance(result, Broken):
        return missing_row(request, result.kind, result.detail, result.steps, seconds)
    reply = reply_of(request, result)
    right = isinstance(reply, Answered) and reply.right
    return _row(
        request,
        outcome="right" if right else "wrong",
        letter=result.letter,
        submitted=result.submitted,
        confidence=result.confidence,
        stop=result.stop,
        missing_kind=None,
        detail=result.why,
        steps=result.steps,
        seconds=seconds,
        forced_by=result.forced_by,
    )


def missing_row(
    request: Rollout, kind: str, detail: str, steps: Sequence[Step], seconds: float
) -> OutcomeRow:
    """The row of a question that infrastructure lost."""
    return _row(
        request,
        outcome="missing",
        letter=None,
        submitted="",
        confidence=0.5,
        stop="missing",
        missing_kind=kind,
        detail=detail,
        steps=steps,
        seconds=seconds,
    )


def _row(
    request: Rollout,
    *,
    outcome: str,
    letter: str | None,
    submitted: str,
    confidence: float,
    stop: str,
    missing_kind: str | None,
    detail: str,
    steps: Sequence[Step],
    seconds: float,
    forced_by: ForcedBy = "",
) -> OutcomeRow:
    question = request.question
    return OutcomeRow(
        run_key=request.run_key,
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        outcome=outcome,
        letter=letter,
        submitted=storable(submitted),
        confidence=confidence,
        stop=stop,
        missing_kind=missing_kind,
        detail=storable(detail),
        n_steps=len(steps),
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        completion_tokens=sum(step.completion_tokens for step in steps),
        seconds=seconds,
        skill_hash=request.skill.hash,
        prompts_version=request.prompts.version,
        salt=request.salt,
        forced_by=forced_by,
        bad_calls=_flagged(steps, "bad_call", "refused"),
        unreadable=sum(step.tool is None for step in steps),
        repeated=_flagged(steps, "repeated"),
        dropped=sum(step.dropped for step in steps),
    )


def _flagged(steps: Sequence[Step], *flags: Flag) -> int:
    return sum(any(flag in step.flags for flag in flags) for step in steps)


def trace_rows(request: Rollout, steps: Sequence[Step]) -> tuple[TraceRow, ...]:
    """One row per step (row P0-2)."""
    return tuple(
        TraceRow(
            run_key=request.run_key,
            question_id=request.question.question_id,
            step=step.index,
            thought=storable(step.thought),
            tool=None if step.tool is None else storable(step.tool),
            arguments=storable(step.arguments),
            observation=storable(step.observation),
            raw=storable(step.raw),
            node_ids=storable(json.dumps(step.node_ids, ensure_ascii=False)),
            prompt_tokens=step.prompt_tokens,
            completion_tokens=step.completion_tokens,
            seconds=step.seconds,
            notice=storable(step.notice),
            flags=json.dumps(step.flags),
            dropped=step.dropped,
        )
        for step in steps
    )
