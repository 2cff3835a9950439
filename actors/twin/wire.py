"""The OpenAI chat-completions protocol, as far as it is read here: bytes in, typed out.

Pure: a request's bytes decide every byte of the reply, which ``written`` writes down. The id is
a hash of the request, so that equal requests get equal replies.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = [
    "FINGERPRINT",
    "MODELS",
    "NOTE",
    "BadRequest",
    "Completion",
    "Incoming",
    "Reply",
    "Tokens",
    "Turn",
    "WireCall",
    "WireFunction",
    "completion_of",
    "parse_request",
]

MODELS = ("twin-agent", "twin-judge", "twin-editor")
FINGERPRINT = "simulator"
NOTE = "This is a simulator with a planted world, not a language model."
_CHARS_PER_TOKEN = 4

Limit = Annotated[int, Meta(gt=0)]


class BadRequest(ValueError):
    """A 400. code: the machine-readable half of the error object."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Part(msgspec.Struct, frozen=True):
    """A part of a message; only text can be read here."""

    type: str
    text: str | None = None


class WireFunction(msgspec.Struct, frozen=True):
    """A function that was called. arguments: JSON text."""

    name: str
    arguments: str


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call."""

    id: str
    function: WireFunction
    type: Literal["function"] = "function"


class WireMessage(msgspec.Struct, frozen=True):
    """A message of the request."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[WireCall] = []
    tool_call_id: str | None = None


class WireToolFunction(msgspec.Struct, frozen=True):
    """The function behind a tool; its parameters do not matter here."""

    name: str


class WireTool(msgspec.Struct, frozen=True):
    """A tool that may be called."""

    type: Literal["function"]
    function: WireToolFunction


class StreamOptions(msgspec.Struct, frozen=True):
    """include_usage: send a last chunk with the token counts."""

    include_usage: bool = False


class WireRequest(msgspec.Struct, frozen=True):
    """What matters of a request; sampling parameters have no meaning for a simulator."""

    model: str
    messages: Annotated[list[WireMessage], Meta(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    seed: int | None = None
    tools: list[WireTool] = []


class Turn(msgspec.Struct, frozen=True):
    """A message as plain text, the calls in it a line each."""

    role: str
    text: str


class Incoming(msgspec.Struct, frozen=True):
    """A request, read. request_id: a hash of its bytes. tools: names of those that it offers."""

    request_id: str
    model: str
    turns: tuple[Turn, ...]
    seed: int | None
    stream: bool
    include_usage: bool
    max_tokens: int | None
    tools: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """What a simulated model says.

    finish: None: the request's limit decides; else it is said so whatever the limit, and the text
    goes out as it is.
    """

    text: str
    finish: Literal["stop", "length"] | None = None


class Tokens(msgspec.Struct, frozen=True):
    """Token counts, estimated from characters."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(msgspec.Struct, frozen=True):
    """A reply before it is written. finish: ``length`` if max_tokens cut it short.

    call: the tool that is called, beside the text.
    """

    request_id: str
    model: str
    text: str
    finish: Literal["stop", "length", "tool_calls"]
    usage: Tokens
    call: WireCall | None = None


_decoder = msgspec.json.Decoder(WireRequest)


def parse_request(body: bytes) -> Incoming:
    """Read a request. Raises BadRequest for another model, a bad body or an image."""
    try:
        wire = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not a chat request: {error}", "invalid_body") from error
    if wire.model not in MODELS:
        raise BadRequest(
            f"unknown model {wire.model!r}: this simulator plays {', '.join(MODELS)}",
            "model_not_found",
        )
    options = wire.stream_options
    return Incoming(
        request_id=f"chatcmpl-twin-{hashlib.sha256(body).hexdigest()[:24]}",
        model=wire.model,
        turns=tuple(Turn(message.role, _text_of(message)) for message in wire.messages),
        seed=wire.seed,
        stream=wire.stream,
        include_usage=options is not None and options.include_usage,
        max_tokens=wire.max_completion_tokens or wire.max_tokens,
        tools=tuple(tool.function.name for tool in wire.tools),
    )


def completion_of(request: Incoming, reply: Reply) -> Completion:
    """A reply with its token counts, cut to what the request allows.

    Where the request offers tools, an action in the text becomes a call of its tool, and the
    thought stays behind as the text.
    """
    text = reply.text
    prompt = _tokens(sum(len(turn.text) for turn in request.turns))
    action = _action_in(text) if request.tools else None
    if action is not None and action.action.tool in request.tools:
        arguments = msgspec.json.encode(action.action.args).decode()
        said = _tokens(len(action.thought) + len(arguments))
        name = action.action.tool
        return Completion(
            request_id=request.request_id,
            model=request.model,
            text=action.thought,
            finish="tool_calls",
            usage=Tokens(prompt, said, prompt + said),
            call=WireCall(
                id=f"call_{request.request_id[-8:]}", function=WireFunction(name, arguments)
            ),
        )
    finish = reply.finish or "stop"
    if (
        reply.finish is None
        and request.max_tokens is not None
        and len(text) > request.max_tokens * _CHARS_PER_TOKEN
    ):
        text, finish = text[: request.max_tokens * _CHARS_PER_TOKEN], "length"
    said = _tokens(len(text))
    return Completion(
        request_id=request.request_id,
        model=request.model,
        text=text,
        finish=finish,
        usage=Tokens(prompt, said, prompt + said),
    )


class _Action(msgspec.Struct, frozen=True):
    tool: str
    args: dict[str, object]


class _Reply(msgspec.Struct, frozen=True):
    thought: str
    action: _Action


def _action_in(text: str) -> _Reply | None:
    """The simulated agent's own JSON, fenced or not."""
    bare = text.removeprefix("```json\n").removesuffix("\n```")
    try:
        return msgspec.json.decode(bare, type=_Reply)
    except msgspec.DecodeError:
        return None


def _text_of(message: WireMessage) -> str:
    content = message.content or ""
    texts: list[str] = [content] if isinstance(content, str) else []
    for part in content if isinstance(content, list) else ():
        if part.type != "text" or part.text is None:
            raise BadRequest(
                f"a part of type {part.type!r}: the simulator reads text only", "unsupported_part"
            )
        texts.append(part.text)
    calls = [call.function for call in message.tool_calls]
    texts += [f"\n{function.name} {function.arguments}" for function in calls]
    return "".join(texts)


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_PER_TOKEN)
