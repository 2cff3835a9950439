"""One event of a chat stream, read into a piece of the answer or an error.

Lenient about shape (servers omit, null and mistype nearly every field, clients.md A2.7-12),
strict about meaning: an error is never a piece. Never keeps state between events.
"""

from __future__ import annotations

import json

import msgspec

from actors.llm.sse import DONE, SseEvent
from protocol.llm import Usage

__all__ = ["Done", "ErrorFrame", "Noise", "Piece", "ToolDelta", "Unreadable", "read_event"]


class _Lax(msgspec.Struct, frozen=True):
    """A part of a chunk; unknown fields are ignored."""


class _Function(_Lax, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _Tool(_Lax, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(_Lax, frozen=True):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Tool] | None = None


class _Choice(_Lax, frozen=True):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None


class _PromptDetails(_Lax, frozen=True):
    cached_tokens: int | None = None


class _CompletionDetails(_Lax, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(_Lax, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Error(_Lax, frozen=True):
    message: str | None = None
    type: str | None = None
    code: int | str | None = None
    status: int | str | None = None


class _Chunk(_Lax, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None
    object: str | None = None
    message: str | None = None
    type: str | None = None
    code: int | str | None = None


class ToolDelta(msgspec.Struct, frozen=True):
    """A part of a tool call. slot: which call it belongs to, None when the server did not say."""

    slot: int | None
    call_id: str
    name: str
    arguments: str


class Piece(msgspec.Struct, frozen=True):
    """What one event adds to choice 0; ``usage`` is cumulative, the last one counts."""

    text: str = ""
    reasoning: str = ""
    tools: tuple[ToolDelta, ...] = ()
    finish: str | None = None
    usage: Usage | None = None


class ErrorFrame(msgspec.Struct, frozen=True):
    """An error inside a stream whose HTTP status was 200.

    code: the number where there is one. label: type and code words, lower case.
    """

    code: int | None
    label: str
    message: str
    usage: Usage | None = None


class Done(msgspec.Struct, frozen=True):
    """The end marker ``[DONE]``."""


class Noise(msgspec.Struct, frozen=True):
    """Data that is no JSON object and does not claim to be one (``ping``)."""


class Unreadable(msgspec.Struct, frozen=True):
    """Data that begins like a JSON object and is none."""

    why: str


_DECODER = msgspec.json.Decoder(_Chunk)
_ERROR_FINISHES = frozenset({"error", "abort", "aborted", "network_error"})


def read_event(event: SseEvent) -> Piece | ErrorFrame | Done | Noise | Unreadable:
    """Read an event; the same for a whole completion, which is one event with ``message``."""
    data = event.data.strip()
    if data == DONE:
        return Done()
    named_error = event.name == b"error"
    if not data.startswith(b"{"):
        if named_error:
            return ErrorFrame(None, "", data.decode("utf-8", "replace"))
        return Noise()
    try:
        chunk = _DECODER.decode(data)
    except msgspec.DecodeError:  # ValidationError too: a lone surrogate, a NaN, a wrong type
        loose = _load(data)
        if loose is None:
            if named_error:
                return ErrorFrame(None, "", data.decode("utf-8", "replace"))
            return Unreadable("data is not JSON")
        chunk = _coerce(loose)
    return _meaning(chunk, named_error)


def _meaning(chunk: _Chunk, named_error: bool) -> Piece | ErrorFrame:
    # written for the event that nearly every one is: one choice, some text, nothing else
    usage = None if chunk.usage is None else _usage(chunk.usage)
    if chunk.error:
        return _frame(chunk.error, usage)
    if named_error or chunk.object == "error":
        return _frame(_Error(message=chunk.message, type=chunk.type, code=chunk.code), usage)
    # several choices are several answers: only the first is ours
    for choice in chunk.choices or ():
        if not choice.index:
            break
    else:
        return Piece(usage=usage)
    for reason in (choice.finish_reason, choice.native_finish_reason):
        if reason is not None and reason in _ERROR_FINISHES:
            return ErrorFrame(None, reason, f"finish_reason {reason}", usage)
    delta = choice.delta or choice.message or _Delta()
    return Piece(
        text=delta.content or "",
        reasoning=delta.reasoning or delta.reasoning_content or "",
        tools=tuple(map(_tool, delta.tool_calls)) if delta.tool_calls else (),
        finish=choice.finish_reason or None,
        usage=usage,
    )


def _frame(error: _Error | str, usage: Usage | None) -> ErrorFrame:
    if isinstance(error, str):
        return ErrorFrame(None, "", error, usage)
    numbers = [number for number in map(_number, (error.code, error.status)) if number is not None]
    words = [
        str(word).lower() for word in (error.type, error.code) if word and _number(word) is None
    ]
    return ErrorFrame(next(iter(numbers), None), " ".join(words), error.message or "", usage)


def _tool(tool: _Tool) -> ToolDelta:
    function = tool.function or _Function()
    return ToolDelta(tool.index, tool.id or "", function.name or "", function.arguments or "")


def _usage(usage: _Usage) -> Usage:
    prompt = usage.prompt_tokens_details or _PromptDetails()
    completion = usage.completion_tokens_details or _CompletionDetails()
    return Usage(
        prompt_tokens=max(0, usage.prompt_tokens or 0),
        completion_tokens=max(0, usage.completion_tokens or 0),
        cached_tokens=max(0, prompt.cached_tokens or 0),
        reasoning_tokens=max(0, completion.reasoning_tokens or 0),
    )


# The slow path: what msgspec refuses, read field by field.


def _load(data: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _coerce(raw: dict[str, object]) -> _Chunk:
    error = raw.get("error")
    fields = _object(error)
    if fields is not None:
        read: _Error | str | None = _Error(
            message=_text(fields.get("message")) or json.dumps(fields),
            type=_text(fields.get("type")),
            code=_code(fields.get("code")),
            status=_code(fields.get("status")),
        )
    else:
        read = str(error) if error else None
    usage = _object(raw.get("usage"))
    return _Chunk(
        choices=[_coerce_choice(c) for c in map(_object, _items(raw.get("choices"))) if c],
        usage=None
        if usage is None
        else _Usage(_whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens"))),
        error=read,
        object=_text(raw.get("object")),
        message=_text(raw.get("message")),
        type=_text(raw.get("type")),
        code=_code(raw.get("code")),
    )


def _coerce_choice(raw: dict[str, object]) -> _Choice:
    delta = _object(raw.get("delta")) or _object(raw.get("message")) or {}
    tools = []
    for call in map(_object, _items(delta.get("tool_calls"))):
        if call is None:
            continue
        function = _object(call.get("function")) or {}
        arguments = function.get("arguments")
        whole = json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)
        tools.append(
            _Tool(
                _whole(call.get("index")),
                _text(call.get("id")),
                _Function(_text(function.get("name")), whole),
            )
        )
    return _Choice(
        index=_whole(raw.get("index")),
        delta=_Delta(
            content=_text(delta.get("content")),
            reasoning=_text(delta.get("reasoning")),
            reasoning_content=_text(delta.get("reasoning_content")),
            tool_calls=tools,
        ),
        finish_reason=_text(raw.get("finish_reason")),
        native_finish_reason=_text(raw.get("native_finish_reason")),
    )


def _object(value: object) -> dict[str, object] | None:
    return value if isinstance(value, dict) else None


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    """A string, or the text parts of a list of parts."""
    if isinstance(value, str):
        return value
    parts = [_object(part) for part in _items(value)]
    texts = [part["text"] for part in parts if part and isinstance(part.get("text"), str)]
    return "".join(str(text) for text in texts) if texts else None


def _whole(value: object) -> int | None:
    try:
        return int(float(value)) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _code(value: object) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _number(value: int | str | None) -> int | None:
    return _whole(value) if value is not None else None
