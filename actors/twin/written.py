"""The OpenAI chat-completions protocol, as far as it is written here: typed in, bytes out.

Pure; ``created`` is always 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from actors.twin.wire import FINGERPRINT, MODELS, Completion, Tokens, WireCall, WireFunction

__all__ = ["DONE", "Health", "error_json", "events", "models_json", "whole_json"]

DONE = b"data: [DONE]\n\n"
_MIN_CHUNK, _MAX_CHUNKS = 24, 4


class CallDelta(msgspec.Struct, frozen=True):
    """A tool call in a chunk, whole."""

    index: int
    id: str
    function: WireFunction
    type: str = "function"


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chunk adds."""

    role: str | None = None
    content: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChunkChoice(msgspec.Struct, frozen=True):
    """The one choice of a chunk."""

    index: int
    delta: Delta
    finish_reason: str | None


class Chunk(msgspec.Struct, frozen=True):
    """One event of a stream."""

    id: str
    model: str
    choices: list[ChunkChoice]
    usage: Tokens | None
    object: str = "chat.completion.chunk"
    created: int = 0
    system_fingerprint: str = FINGERPRINT


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply's message."""

    role: str
    content: str
    tool_calls: list[WireCall] | None = None


class WholeChoice(msgspec.Struct, frozen=True):
    """The one choice of a reply that is not streamed."""

    index: int
    message: Said
    finish_reason: str


class Whole(msgspec.Struct, frozen=True):
    """A reply that is not streamed."""

    id: str
    model: str
    choices: list[WholeChoice]
    usage: Tokens
    object: str = "chat.completion"
    created: int = 0
    system_fingerprint: str = FINGERPRINT


class Problem(msgspec.Struct, frozen=True):
    """The inside of an error object."""

    message: str
    type: str
    code: str
    param: str | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """An error object."""

    error: Problem


class ModelCard(msgspec.Struct, frozen=True):
    """A line of ``/v1/models``."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = FINGERPRINT


class ModelList(msgspec.Struct, frozen=True):
    """``/v1/models``."""

    data: list[ModelCard]
    object: str = "list"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """``/health``. served: chat completions since the process began."""

    status: str
    simulator: bool
    note: str
    world: str
    world_seed: int
    models: tuple[str, ...]
    pid: int
    served: int


_encoder = msgspec.json.Encoder()


def events(completion: Completion, include_usage: bool) -> Iterator[bytes]:
    """The stream: role, content in a few pieces, finish, usage if wanted, end marker."""
    yield _event(completion, Delta(role="assistant", content=""), None)
    text = completion.text
    size = max(_MIN_CHUNK, -(-len(text) // _MAX_CHUNKS))
    for start in range(0, len(text), size):
        yield _event(completion, Delta(content=text[start : start + size]), None)
    if completion.call is not None:
        call = CallDelta(0, completion.call.id, completion.call.function)
        yield _event(completion, Delta(tool_calls=[call]), None)
    yield _event(completion, Delta(), completion.finish)
    if include_usage:
        yield _data(Chunk(completion.request_id, completion.model, [], completion.usage))
    yield DONE


def whole_json(completion: Completion) -> bytes:
    """The reply as one JSON object."""
    calls = None if completion.call is None else [completion.call]
    choice = WholeChoice(0, Said("assistant", completion.text, calls), completion.finish)
    return _encoder.encode(
        Whole(completion.request_id, completion.model, [choice], completion.usage)
    )


def error_json(message: str, code: str) -> bytes:
    """An error object."""
    return _encoder.encode(ErrorBody(Problem(message, "invalid_request_error", code)))


def models_json() -> bytes:
    """The three simulated models."""
    return _encoder.encode(ModelList([ModelCard(name) for name in MODELS]))


def _event(completion: Completion, delta: Delta, finish: str | None) -> bytes:
    choice = ChunkChoice(0, delta, finish)
    return _data(Chunk(completion.request_id, completion.model, [choice], None))


def _data(chunk: Chunk) -> bytes:
    return b"data: " + _encoder.encode(chunk) + b"\n\n"
