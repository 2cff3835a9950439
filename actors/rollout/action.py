"""Reading the agent's reply as an action. Pure, and total: any reply gives a result.

A reply that is no action is ``Unreadable`` and costs no step; an action with an unknown
tool or wrong arguments is a ``BadCall``, told back as its observation, and costs one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from actors.rollout.answer_text import as_text, storable
from actors.rollout.tools import ToolName, form_of
from prompts.reply import Decoded, Unreadable, close_brackets, decode_reply
from protocol.llm import ToolCall

__all__ = [
    "Action",
    "BadCall",
    "Call",
    "Look",
    "Observe",
    "ReadSkill",
    "Search",
    "Submit",
    "Subtitles",
    "confidence_of",
    "read_action",
    "read_tool_call",
]

_DEFAULT_CONFIDENCE = 0.5
_MOST_UNWRAPPED = 3  # JSON inside a JSON string inside a JSON string is still somebody's arguments

T = TypeVar("T")


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


class Observe(msgspec.Struct, frozen=True):
    """``observe_frame``. question: empty if the agent asked none."""

    node_ids: tuple[str, ...]
    question: str = ""


class ReadSkill(msgspec.Struct, frozen=True):
    """``read_skill``."""

    name: str


class Submit(msgspec.Struct, frozen=True):
    """``submit_answer``. answer: any JSON value; None where there was none."""

    answer: object
    confidence: float


class BadCall(msgspec.Struct, frozen=True):
    """What is wrong with the call, to be told to the agent."""

    problem: str


Call = Look | Search | Subtitles | Observe | ReadSkill | Submit | BadCall


class Action(msgspec.Struct, frozen=True):
    """A reply that was read. arguments: JSON text."""

    thought: str
    tool: str
    arguments: str
    call: Call


class _Inner(msgspec.Struct, frozen=True):
    tool: str
    args: object = None


class _Reply(msgspec.Struct, frozen=True):
    """The form that was asked for."""

    action: _Inner
    thought: object = ""


class _Bare(msgspec.Struct, frozen=True):
    """An action without the object around it."""

    tool: str
    args: object
    thought: object = ""


class _Named(msgspec.Struct, frozen=True):
    """How models write a call that were trained on tool calls."""

    name: str
    arguments: object


def read_action(text: str, tools: Sequence[ToolName]) -> Action | Unreadable:
    """The one JSON object of a reply, as a typed action; closing braces may be missing.

    tools: those that are offered. Besides the form that was asked for, two that models fall back
    to are understood: the bare action, and ``{"name": ..., "arguments": ...}``.
    """
    asked = _decoded(text, _Reply)
    if isinstance(asked, Decoded):
        inner = asked.value.action
        return _action(asked.value.thought, inner.tool, inner.args, tools)
    bare = _decoded(text, _Bare)
    if isinstance(bare, Decoded):
        return _action(bare.value.thought, bare.value.tool, bare.value.args, tools)
    named = _decoded(text, _Named)
    if isinstance(named, Decoded):
        return _action("", named.value.name, named.value.arguments, tools)
    return Unreadable(storable(asked.problem))


def read_tool_call(thought: str, call: ToolCall, tools: Sequence[ToolName]) -> Action:
    """A native tool call as an action."""
    try:
        arguments: object = json.loads(call.arguments)
    except (ValueError, RecursionError):  # digits by the thousand; the client checked the rest
        arguments = call.arguments
    return _action(thought, call.name, arguments, tools)


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


def _decoded(text: str, form: type[T]) -> Decoded[T] | Unreadable:
    try:
        decoded = decode_reply(text, form)
        if isinstance(decoded, Unreadable):
            closed = decode_reply(close_brackets(text), form)
            decoded = closed if isinstance(closed, Decoded) else decoded
    except (ValueError, RecursionError):  # numbers of thousands of digits, absurd nesting
        return Unreadable("the JSON object holds a value that is too large")
    return decoded


def _action(thought: object, tool: str, args: object, tools: Sequence[ToolName]) -> Action:
    tool = storable(tool.strip())
    args = _unwrapped(args)
    known = next((name for name in tools if name == tool), None)
    call: Call
    if known is None:
        call = BadCall(f"There is no tool {tool!r}. The tools are: {', '.join(tools)}.")
    else:
        call = _typed(known, args)
    said = "" if thought is None else as_text(thought)
    return Action(thought=said, tool=tool, arguments=as_text(args), call=call)


def _unwrapped(args: object) -> object:
    """Arguments that were sent as JSON text, as the object that they are."""
    for _ in range(_MOST_UNWRAPPED):
        if not isinstance(args, str) or not args.lstrip().startswith(("{", '"')):
            break
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            break
    return args


def _typed(tool: ToolName, args: object) -> Call:
    if tool == "submit_answer":
        return _submit(args)
    try:
        match tool:
            case "view_node":
                return Look(storable(msgspec.convert(args, Look, strict=False).node_id))
            case "search_similar":
                search = msgspec.convert(args, Search, strict=False)
                return Search(storable(search.query), search.k)
            case "search_subtitles":
                return _subtitles(msgspec.convert(args, Subtitles, strict=False))
            case "observe_frame":
                return _observe(args)
            case "read_skill":
                return ReadSkill(storable(msgspec.convert(args, ReadSkill, strict=False).name))
    except (msgspec.ValidationError, OverflowError) as error:
        return _wrong(tool, storable(str(error)))


def _subtitles(call: Subtitles) -> Subtitles | BadCall:
    times = (call.start_s, call.end_s)
    if any(time is not None and not math.isfinite(time) for time in times):
        return _wrong("search_subtitles", "a time is not finite")
    return Subtitles(storable(call.query), call.start_s, call.end_s)


def _observe(args: object) -> Observe:
    """One id may come without the list around it, and under the name that view_node uses."""
    if isinstance(args, Mapping):
        args = {str(key): value for key, value in args.items()}
        ids = args.pop("node_ids", None)
        if ids is None:
            ids = args.pop("node_id", None)
        args["node_ids"] = [ids] if isinstance(ids, str) else ids
        if args.get("question") is None:
            args.pop("question", None)
    call = msgspec.convert(args, Observe, strict=False)
    return Observe(tuple(map(storable, call.node_ids)), storable(call.question).strip())


def _wrong(tool: ToolName, problem: str) -> BadCall:
    return BadCall(f"Wrong arguments for {tool}: {problem}. {form_of(tool)}.")


def _submit(args: object) -> Submit:
    """Arguments that are not an object are taken as the answer itself."""
    if isinstance(args, Mapping):
        answer = args.get("answer", args)
        return Submit(answer, confidence_of(args.get("confidence")))
    return Submit(args, _DEFAULT_CONFIDENCE)
