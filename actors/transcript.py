"""One rollout as Markdown for a reader: from stored rows, so that any report can show any answer.

Pure. It shows the gold answer: for people, never for a model (``prompts.trajectory`` is for those).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prompts.question import letter_of
from protocol.dataset import Question
from protocol.llm import ChatMessage, ImagePart, TextPart
from protocol.rollout import Step
from protocol.rows import OutcomeRow

__all__ = ["render_messages", "render_transcript"]

_TICKS = re.compile(r"`{3,}")


def render_transcript(question: Question, outcome: OutcomeRow, steps: Sequence[Step]) -> str:
    """The whole rollout: question, how it ended, and every step."""
    parts = [
        f"# {question.question_id}: {_ending(question, outcome)}",
        _facts(outcome),
        f"## Question\n\n{question.question.strip()}\n\n{_options(question, outcome)}",
        *(_step(step) for step in steps),
    ]
    if outcome.detail:
        parts.append(f"## End\n\n{outcome.stop}: {outcome.detail}")
    return "\n\n".join(parts) + "\n"


def render_messages(messages: Sequence[ChatMessage]) -> str:
    """A request as the model gets it, one section per message; pictures as their size."""
    return "\n\n".join(
        f"## {_speaker(message)}\n\n{_fenced(_text(message))}" for message in messages
    )


def _ending(question: Question, outcome: OutcomeRow) -> str:
    if outcome.outcome == "missing":
        return f"missing ({outcome.missing_kind})"
    forced = f", forced by {outcome.forced_by}" if outcome.forced_by else ""
    given = outcome.letter or "no answer"
    return f"{outcome.outcome} ({given}, right is {question.answer}{forced})"


def _facts(outcome: OutcomeRow) -> str:
    tokens = f"{outcome.prompt_tokens} + {outcome.completion_tokens}"
    counted = {
        "bad calls": outcome.bad_calls,
        "unreadable replies": outcome.unreadable,
        "repeated calls": outcome.repeated,
        "observations left out": outcome.dropped,
    }
    rows = [
        ("class", outcome.task_type),
        ("video", outcome.video_id),
        ("pass", outcome.run_key),
        ("documents", f"skill {outcome.skill_hash[:12]}, prompts {outcome.prompts_version}"),
        ("confidence", f"{outcome.confidence:.2f}"),
        ("steps", f"{outcome.n_steps}"),
        ("tokens", f"{tokens} (prompts + replies)"),
        ("seconds", f"{outcome.seconds:.1f}"),
        *((name, str(count)) for name, count in counted.items() if count),
    ]
    lines = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows)
    return f"| | |\n| --- | --- |\n{lines}"


def _options(question: Question, outcome: OutcomeRow) -> str:
    lines = []
    for place, body in enumerate(question.options):
        letter = letter_of(place)
        marks = [
            mark
            for mark, holds in (
                ("right", letter == question.answer),
                ("answered", letter == outcome.letter),
            )
            if holds
        ]
        lines.append(f"- {letter}. {body}" + (f" **({', '.join(marks)})**" if marks else ""))
    return "\n".join(lines)


def _step(step: Step) -> str:
    marks: list[str] = [*step.flags]
    if step.dropped:
        marks.append(f"{step.dropped} observation{'' if step.dropped == 1 else 's'} left out")
    head = f"## {step.index}. {step.tool or 'unreadable reply'}"
    parts = [head + (f" ({', '.join(marks)})" if marks else "")]
    if step.tool is None:
        parts.append(_fenced(step.raw))
    else:
        if step.thought:
            parts.append(_quoted(step.thought))
        parts.append(_fenced(step.arguments))
    if step.notice:
        parts.append(f"*{step.notice}*")
    if step.observation:
        parts.append(_fenced(step.observation))
    parts.append(f"{step.prompt_tokens} + {step.completion_tokens} tokens, {step.seconds:.1f} s")
    return "\n\n".join(parts)


def _speaker(message: ChatMessage) -> str:
    calls = ", ".join(call.name for call in message.tool_calls)
    return f"{message.role} (calls {calls})" if calls else message.role


def _text(message: ChatMessage) -> str:
    content = message.content
    parts = (TextPart(text=content),) if isinstance(content, str) else content
    lines = [
        f"[picture, {len(part.url)} characters]" if isinstance(part, ImagePart) else part.text
        for part in parts
    ]
    lines += [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(line for line in lines if line)


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
