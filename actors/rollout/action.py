"""Reading the agent's reply as an action. Pure, and total: any text gives a result.

A reply that is no action is ``Unreadable`` and costs no step; an action with an unknown
tool or wrong arguments is a ``BadCall``, told back as its observation, and costs one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from actors.rollout.answer_text import as_text, storable
from prompts.reply import Decoded, Unreadable, close_brackets, decode_reply

__all__ = [
    "Action",
    "BadCall",
    "Look",
    "Search",
    "Submit",
    "Subtitles",
    "action_schema",
    "confidence_of",
    "read_action",
]

_DEFAULT_CONFIDENCE = 0.5
_FORMS: Mapping[str, str] = {
    "view_node": '{"node_id": "..."}',
    "search_similar": '{"query": "...", "k": 5}',
    "search_subtitles": '{"query": "...", "start_s": 0, "end_s": 60} (the times are optional)',
    "submit_answer": '{"answer": "B", "confidence": 0.8, "evidence": "...", "reasoning": "..."}',
}

_TIME = ["number", "null"]
_ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "view_node": {"node_id": "string"},
    "search_similar": {"query": "string", "k": ["integer", "null"]},
    "search_subtitles": {"query": "string", "start_s": _TIME, "end_s": _TIME},
    "submit_answer": {
        "evidence": "string",
        "reasoning": "string",
        "answer": "string",
        "confidence": "number",
    },
}


class Look(msgspec.Struct, frozen=True):
    """``view_node``."""

    node_id: str


class Search(msgspec.Struct, frozen=True):
    """``search_similar``. k: None: the configured number."""

    query: str
    k: Annotated[int, Meta(ge=1, le=100)] | None = None


class Subtitles(msgspec.Struct, frozen=True):
    """``search_subtitles``. Times in seconds."""

    query: str = ""
    start_s: float | None = None
    end_s: float | None = None


class Submit(msgspec.Struct, frozen=True):
    """``submit_answer``. answer: any JSON value; None where there was none."""

    answer: object
    confidence: float


class BadCall(msgspec.Struct, frozen=True):
    """What is wrong with the call, to be told to the agent."""

    problem: str


class Action(msgspec.Struct, frozen=True):
    """A reply that was read. arguments: JSON text."""

    thought: str
    tool: str
    arguments: str
    call: Look | Search | Subtitles | Submit | BadCall


class _Call(msgspec.Struct, frozen=True):
    tool: str
    args: object = None


class _Reply(msgspec.Struct, frozen=True):
    action: _Call
    thought: object = ""


def action_schema() -> str:
    """The JSON schema of a reply, for endpoints that can hold a model to it.

    Properties stand in the order in which they should be written: the thought before the action,
    the tool before its arguments.
    """
    calls = [
        {
            "type": "object",
            "properties": {
                "tool": {"enum": [tool]},
                "args": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in fields.items()},
                    "required": list(fields),
                    "additionalProperties": False,
                },
            },
            "required": ["tool", "args"],
            "additionalProperties": False,
        }
        for tool, fields in _ARGUMENTS.items()
    ]
    reply = {
        "type": "object",
        "properties": {"thought": {"type": "string"}, "action": {"anyOf": calls}},
        "required": ["thought", "action"],
        "additionalProperties": False,
    }
    return msgspec.json.encode(reply).decode("utf-8")


def read_action(text: str) -> Action | Unreadable:
    """The one JSON object of a reply, as a typed action; closing braces may be missing."""
    try:
        decoded = decode_reply(text, _Reply)
        if isinstance(decoded, Unreadable):
            closed = decode_reply(close_brackets(text), _Reply)
            decoded = closed if isinstance(closed, Decoded) else decoded
    except (ValueError, RecursionError):  # numbers of thousands of digits, absurd nesting
        return Unreadable("the JSON object holds a value that is too large")
    if isinstance(decoded, Unreadable):
        return Unreadable(storable(decoded.problem))
    reply = decoded.value
    return Action(
        thought=as_text(reply.thought),
        tool=storable(reply.action.tool),
        arguments=as_text(reply.action.args),
        call=_typed(storable(reply.action.tool), reply.action.args),
    )


def confidence_of(value: object) -> float:
    """A stated confidence, clamped to [0, 1]; 0.5 if absent or not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _DEFAULT_CONFIDENCE
    try:
        number = float(value)
    except ValueError:
        return _DEFAULT_CONFIDENCE
    except OverflowError:
        return 1.0 if isinstance(value, int) and value > 0 else 0.0
    if math.isnan(number):
        return _DEFAULT_CONFIDENCE
    return min(1.0, max(0.0, number))


def _typed(tool: str, args: object) -> Look | Search | Subtitles | Submit | BadCall:
    if tool == "submit_answer":
        return _submit(args)
    if tool not in _FORMS:
        return BadCall(f"There is no tool {tool!r}. The tools are: {', '.join(_FORMS)}.")
    kinds: Mapping[str, type[Look | Search | Subtitles]] = {
        "view_node": Look,
        "search_similar": Search,
        "search_subtitles": Subtitles,
    }
    try:
        call = msgspec.convert(args, kinds[tool], strict=False)
    except (msgspec.ValidationError, OverflowError) as error:
        return BadCall(f"Wrong arguments for {tool}: {storable(str(error))}. {_form(tool)}")
    if isinstance(call, Look):
        return Look(storable(call.node_id))
    if isinstance(call, Search):
        return Search(storable(call.query), call.k)
    times = (call.start_s, call.end_s)
    if any(time is not None and not math.isfinite(time) for time in times):
        return BadCall(f"Wrong arguments for {tool}: a time is not finite. {_form(tool)}")
    return Subtitles(storable(call.query), call.start_s, call.end_s)


def _form(tool: str) -> str:
    return f"It takes {_FORMS[tool]}."


def _submit(args: object) -> Submit:
    """Arguments that are not an object are taken as the answer itself."""
    if isinstance(args, Mapping):
        answer = args.get("answer", args)
        return Submit(answer, confidence_of(args.get("confidence")))
    return Submit(args, _DEFAULT_CONFIDENCE)
