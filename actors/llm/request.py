"""A chat as bytes for the wire, and as a key for the cache.

Key and seed follow from what is asked alone: never from the endpoint's address, a clock or
the state of anything. What changes the answer is in the key because the key is made from the
request itself; only what merely transports it is left out (clients.md A4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from actors.llm.endpoints import ResolvedEndpoint
from protocol.llm import Chat, ChatMessage, ImagePart, Role, TextPart, ToolSpec
from protocol.settings import LlmSettings, RoleSettings

__all__ = ["KEY_VERSION", "PlannedCall", "Served", "Unencodable", "plan_call"]

KEY_VERSION = 2
"""Raise it when an answer stored under an old key must not be replayed."""


class Unencodable(Exception):
    """The chat cannot be written as JSON (a lone surrogate in a text)."""


class _Url(msgspec.Struct, frozen=True):
    url: str


class _TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class _ImagePart(msgspec.Struct, frozen=True, tag_field="type", tag="image_url"):
    image_url: _Url


class _Function(msgspec.Struct, frozen=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    id: str
    function: _Function


class _Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    role: str
    content: str | list[_TextPart | _ImagePart]
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Described(msgspec.Struct, frozen=True):
    name: str
    description: str
    parameters: msgspec.Raw


class _Tool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    function: _Described


class _NamedSchema(msgspec.Struct, frozen=True, kw_only=True):
    name: str = "reply"
    schema: msgspec.Raw


class _Format(msgspec.Struct, frozen=True, tag_field="type", tag="json_schema"):
    json_schema: _NamedSchema


class _AnyObject(msgspec.Struct, frozen=True, tag_field="type", tag="json_object"):
    pass


class _Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model is asked: everything that can change its answer, save its own name."""

    messages: list[_Turn]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    response_format: _Format | _AnyObject | None = None
    tools: list[_Tool] | None = None


class _StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = True


class _Body(_Asked, frozen=True, kw_only=True, omit_defaults=True):
    """What goes over the wire."""

    model: str
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    seed: int | None = None


class Served(msgspec.Struct, frozen=True, order=True):
    """What of an endpoint can change an answer; its address and account cannot."""

    model: str
    json_output: str
    extra_body: bytes


class _Key(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache key is the hash of."""

    version: int
    served: tuple[Served, ...]
    asked: _Asked
    extra_body: bytes
    seed: int | None
    cache_salt: str | None


class PlannedCall(msgspec.Struct, frozen=True):
    """A chat, ready to be sent. key: 64 hex digits."""

    role: Role
    key: str
    asked: _Asked
    extra_body: bytes
    seed: int | None

    def body(self, endpoint: ResolvedEndpoint) -> bytes:
        """The request for an endpoint."""
        asked = self.asked
        body = msgspec.json.encode(
            _Body(
                model=endpoint.model,
                messages=asked.messages,
                temperature=asked.temperature,
                top_p=asked.top_p,
                max_tokens=asked.max_tokens,
                response_format=_held_to(asked.response_format, endpoint),
                tools=asked.tools,
                stream=True,
                stream_options=_StreamOptions(),
                seed=self.seed,
            )
        )
        for extra in (self.extra_body, endpoint.extra_body):
            body = _joined(body, extra)
        return body


def _held_to(
    wanted: _Format | _AnyObject | None, endpoint: ResolvedEndpoint
) -> _Format | _AnyObject | None:
    """The most that the endpoint can enforce of what is wanted."""
    if wanted is None or endpoint.json_output == "none":
        return None
    return wanted if endpoint.json_output == "schema" else _AnyObject()


def _joined(body: bytes, extra: bytes) -> bytes:
    """Two JSON objects as one, the second one's bytes untouched; they share no key (config)."""
    return body if extra == b"{}" else body[:-1] + b"," + extra[1:]


def plan_call(
    chat: Chat, settings: LlmSettings, endpoints: Sequence[ResolvedEndpoint]
) -> PlannedCall:
    """The request, its seed and its cache key (row P1-1: the salt is in both).

    endpoints: those that serve the role; an answer may come from any of them.

    Raises Unencodable; ValueError if a schema is not JSON, which is the caller's bug.
    """
    sampling = _sampling(settings, chat.role)
    asked = _Asked(
        messages=[_turn(message) for message in chat.messages],
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=chat.max_tokens if chat.max_tokens is not None else sampling.max_tokens,
        response_format=_format(chat),
        tools=[_tool(tool) for tool in chat.tools] or None,
    )
    salt = chat.cache_salt
    extra = msgspec.json.encode(sampling.extra_body)
    try:
        canonical = msgspec.json.encode(asked, order="sorted")
        seed = _seed(salt, canonical) if settings.send_seed else None
        key = _Key(
            version=KEY_VERSION,
            served=tuple(sorted({Served(e.model, e.json_output, e.extra_body) for e in endpoints})),
            asked=asked,
            extra_body=extra,
            seed=seed,
            cache_salt=salt,
        )
        digest = hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()
    except UnicodeEncodeError as error:
        raise Unencodable(f"a message holds text that is not Unicode: {error.reason}") from error
    return PlannedCall(chat.role, digest, asked, extra, seed)


def _seed(salt: str | None, canonical: bytes) -> int:
    prefix = b"" if salt is None else salt.encode("utf-8") + b"\n"
    digest = hashlib.sha256(prefix + canonical).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _sampling(settings: LlmSettings, role: Role) -> RoleSettings:
    match role:
        case "search":
            return settings.search
        case "judge":
            return settings.judge
        case "evolve":
            return settings.evolve
        case "vision":
            return settings.vision


def _format(chat: Chat) -> _Format | None:
    if chat.json_schema is None:
        return None
    return _Format(_NamedSchema(schema=_compact(chat.json_schema, f"a {chat.role} chat")))


def _compact(schema: str, of: str) -> msgspec.Raw:
    """A schema in the order of its author.

    A model that is held to it writes the properties in that order, and a decision before its
    reasons is a worse decision. Raises ValueError if it is not JSON.
    """
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(schema)))
    except msgspec.DecodeError as error:
        raise ValueError(f"the JSON schema of {of} is not JSON: {error}") from error


def _tool(tool: ToolSpec) -> _Tool:
    return _Tool(_Described(tool.name, tool.description, _compact(tool.parameters, tool.name)))


def _turn(message: ChatMessage) -> _Turn:
    content = message.content
    return _Turn(
        message.role,
        content if isinstance(content, str) else [_part(part) for part in content],
        [_Call(call.call_id, _Function(call.name, call.arguments)) for call in message.tool_calls]
        or None,
        message.call_id,
    )


def _part(part: TextPart | ImagePart) -> _TextPart | _ImagePart:
    if isinstance(part, TextPart):
        return _TextPart(part.text)
    return _ImagePart(_Url(part.url))
