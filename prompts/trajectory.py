"""Stored steps as text for a model: the one adapter from the ledger's rows (row P0-2).

Judge and editor read trajectories through this module only, so that what was stored
and what is shown cannot drift apart. An answered question without steps is an error
here and never an empty text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from protocol.rollout import Flag, Step
from protocol.rows import TraceRow

__all__ = [
    "SUBMIT",
    "EmptyTrajectory",
    "Submission",
    "clip",
    "neutral",
    "quoted",
    "read_steps",
    "render_steps",
    "submission_of",
]

SUBMIT = "submit_answer"
_SMALLEST_FIELD = 60
_SEPARATOR = re.compile("[\x85\u2028\u2029]")
_MARKS: dict[Flag, str] = {
    "bad_call": "a wrong call",
    "refused": "the tool refused",
    "repeated": "the same call as before",
    "forced": "the budget had ended, only an answer was taken",
    "cut": "the reply was cut off at the token limit",
}


class EmptyTrajectory(ValueError):
    """An answered question has no stored steps."""


class Submission(msgspec.Struct, frozen=True):
    """What the agent handed in, as far as it can be read."""

    letter: str | None = None
    confidence: float | None = None
    evidence: str = ""


def read_steps(rows: Sequence[TraceRow]) -> tuple[Step, ...]:
    """The rows of one rollout, in the order of their steps.

    Raises EmptyTrajectory without rows (P0-2), ValueError if they belong to several
    rollouts or a row's node ids are damaged.
    """
    if not rows:
        raise EmptyTrajectory("no stored steps")
    if len({(row.run_key, row.question_id) for row in rows}) > 1:
        raise ValueError("the rows belong to several rollouts")
    return tuple(
        Step(
            index=row.step,
            thought=row.thought,
            tool=row.tool,
            arguments=row.arguments,
            observation=row.observation,
            raw=row.raw,
            node_ids=msgspec.json.decode(row.node_ids, type=tuple[str, ...]),
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            seconds=row.seconds,
            notice=row.notice,
            flags=msgspec.json.decode(row.flags, type=tuple[Flag, ...]),
            dropped=row.dropped,
        )
        for row in sorted(rows, key=lambda row: row.step)
    )


def submission_of(steps: Sequence[Step]) -> Submission | None:
    """The last submitted answer; None if the agent never submitted.

    Fields that are not of the documented kind are left out, whatever JSON was sent (P0-4).
    """
    for step in reversed(steps):
        if step.tool == SUBMIT:
            return _submission(step.arguments)
    return None


def render_steps(steps: Sequence[Step], max_chars: int) -> str:
    """The trajectory in at most ``max_chars`` characters.

    Long thoughts, replies and observations lose their middle first, the shortest ones
    stay whole; only when that is not enough the middle of the trajectory goes.
    """
    longest = max(
        (len(text) for step in steps for text in (step.thought, step.raw, step.observation)),
        default=0,
    )
    low, high = _SMALLEST_FIELD, max(longest, _SMALLEST_FIELD)
    while low < high:
        middle = (low + high + 1) // 2
        if len(_render(steps, middle)) <= max_chars:
            low = middle
        else:
            high = middle - 1
    return clip(_render(steps, low), max_chars)


def clip(text: str, max_chars: int) -> str:
    """At most ``max_chars`` characters: head and tail, and how much is missing between them."""
    if len(text) <= max_chars:
        return text
    gap = f" [... {len(text) - max_chars} characters or more left out ...] "
    kept = max_chars - len(gap)
    if kept <= 0:
        return text[:max_chars]
    tail = kept // 3
    return text[: kept - tail] + gap + text[len(text) - tail :]


def neutral(text: str) -> str:
    """The text without the fences that delimit a prompt's blocks: videos say anything."""
    return text.replace("<<<", "< < <").replace(">>>", "> > >")


def quoted(text: str, most: int) -> str:
    """One line in JSON's quotes, whatever the text holds: JSON leaves three line separators."""
    line = msgspec.json.encode(clip(neutral(text), most)).decode("utf-8")
    return _SEPARATOR.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def _render(steps: Sequence[Step], field_chars: int) -> str:
    return "\n".join(_render_step(step, field_chars) for step in steps)


def _render_step(step: Step, field_chars: int) -> str:
    lines = [f"Step {step.index}"]
    if step.tool is None:
        lines.append(f"Unreadable reply: {clip(step.raw, field_chars)}")
    else:
        if step.thought:
            lines.append(f"Thought: {clip(step.thought, field_chars)}")
        lines.append(f"Call: {step.tool} {clip(step.arguments, field_chars)}")
    marks = [_MARKS[flag] for flag in step.flags]
    if step.dropped:
        marks.append(f"{step.dropped} earlier observations had been taken out of its sight")
    if marks:
        lines.append(f"Remarks: {'; '.join(marks)}")
    if step.observation:
        lines.append(f"Observation: {clip(step.observation, field_chars)}")
    return neutral("\n".join(lines))


def _submission(arguments: str) -> Submission:
    try:
        sent = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return Submission()
    if not isinstance(sent, dict):
        return Submission()
    letter, confidence, evidence = (
        sent.get("answer"),
        sent.get("confidence"),
        sent.get("evidence"),
    )
    return Submission(
        letter=letter if isinstance(letter, str) else None,
        confidence=_confidence(confidence),
        evidence=evidence if isinstance(evidence, str) else "",
    )


def _confidence(value: object) -> float | None:
    """A stated confidence as the rollout reads it: numbers and numbers in quotes, clamped."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else min(1.0, max(0.0, number))
