"""One chat with a language model, whole or failed."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Request

__all__ = [
    "LASTING",
    "AskEndpoints",
    "Attempt",
    "Chat",
    "ChatAnswer",
    "ChatFailed",
    "ChatMessage",
    "EndpointSeen",
    "EndpointsSeen",
    "FailureKind",
    "Finish",
    "ImagePart",
    "Role",
    "TextPart",
    "ToolCall",
    "ToolSpec",
    "Usage",
]

Role = Literal["search", "judge", "evolve", "vision"]
Finish = Literal["stop", "length", "tool_calls", "content_filter", "unknown"]
FailureKind = Literal[
    # transient, after the ladder was exhausted
    "truncated",
    "timeout",
    "transport",
    "empty",
    "rate_limit",
    "server_error",
    "aborted",
    "breaker_open",
    "budget",
    "crash",
    # fatal where it was asked; some of them may be answered at another endpoint
    "bad_request",
    "auth",
    "context",
    "quota",
    "retry_after_too_long",
    "body",
]


LASTING: frozenset[str] = frozenset({"auth", "bad_request", "body", "context", "crash", "quota"})
"""Failure kinds that no waiting mends: whoever's chat it was, the operator must do something."""


class TextPart(Message, frozen=True, kw_only=True, tag=True):
    """Text inside a message with several parts."""

    text: str


class ImagePart(Message, frozen=True, kw_only=True, tag=True):
    """An image as a data URL (``data:image/jpeg;base64,...``)."""

    url: str


class ToolCall(Message, frozen=True, kw_only=True, tag=True):
    """A tool that the model wants called. arguments: JSON text, checked to be JSON."""

    call_id: str
    name: str
    arguments: str


class ToolSpec(Message, frozen=True, kw_only=True, tag=True):
    """A tool that the model may call. parameters: a JSON schema as JSON text."""

    name: str
    description: str
    parameters: str


class ChatMessage(Message, frozen=True, kw_only=True, tag=True):
    """One turn of the conversation.

    tool_calls: of an assistant that called tools. call_id: of a tool's answer, which call it is.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[TextPart | ImagePart, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


class Usage(Message, frozen=True, kw_only=True, tag=True):
    """Tokens as the endpoint counted them; zero where it did not say.

    cached_tokens: the part of the prompt that it had in its cache; reasoning_tokens: the part
    of the completion that was thought, not said.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class Attempt(Message, frozen=True, kw_only=True, tag=True):
    """One try at one endpoint: ``outcome`` is ``ok``, ``cancelled`` or a failure kind."""

    endpoint: str
    outcome: str
    seconds: float
    first_token_s: float | None = None
    detail: str = ""
    usage: Usage = Usage()


class ChatAnswer(Message, frozen=True, kw_only=True, tag=True):
    """A complete answer: a finish was seen and the stream's end marker too.

    seconds: what the answering try took, kept in the cache: a replayed answer counts against
    the agent's time budget like the first one, and waiting never does.
    """

    text: str
    finish: Finish
    usage: Usage
    endpoint: str
    cached: bool
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    seconds: float = 0.0
    attempts: tuple[Attempt, ...] = ()


class ChatFailed(Message, frozen=True, kw_only=True, tag=True):
    """No answer. Transient kinds mean infrastructure (outcome *missing*).

    ``budget``: a limit of the configuration is reached; nothing was sent.
    """

    kind: FailureKind
    fatal: bool
    detail: str
    attempts: tuple[Attempt, ...] = ()

    @property
    def lasting(self) -> bool:
        """Whether no waiting mends it: the operator must do something first."""
        return self.kind in LASTING

    @property
    def why(self) -> str:
        """For the operator: the kind, what the server said, and where it was asked last."""
        where = f" (endpoint {self.attempts[-1].endpoint})" if self.attempts else ""
        return f"{self.kind}: {self.detail}{where}"


class Chat(Request[ChatAnswer | ChatFailed], frozen=True, kw_only=True, tag=True):
    """Ask a role's model.

    cache_salt: None for judge, evolver and offline work (replayed from the cache
        for ever); a salt of ``protocol.keys`` for everything sampled (row P1-1).
    json_schema: a JSON schema as JSON text, for endpoints that can enforce one.
    tools: what the model may call natively; its calls are in the answer's ``tool_calls``.
    """

    IDEMPOTENT: ClassVar[bool] = True

    role: Role
    messages: tuple[ChatMessage, ...]
    cache_salt: str | None
    max_tokens: int | None = None
    json_schema: str | None = None
    tools: tuple[ToolSpec, ...] = ()

    def crashed(self, detail: str) -> ChatFailed:
        """What an asker makes of a chat whose actor failed: infrastructure."""
        return ChatFailed(kind="crash", fatal=False, detail=detail)


class EndpointSeen(Message, frozen=True, kw_only=True, tag=True):
    """One endpoint at one moment.

    limit: requests in flight at most, as it adapts; ceiling: what the limit may grow to.
    breaker: ``out``: it serves nobody (key, account, model) while others of its roles do.
    opens_in_s: until breaker and Retry-After let a request through; 0: now.
    """

    name: str
    roles: tuple[Role, ...]
    in_flight: int
    limit: int
    ceiling: int
    breaker: Literal["closed", "open", "half_open", "out"]
    opens_in_s: float
    last_error: str


class EndpointsSeen(Message, frozen=True, kw_only=True, tag=True):
    """The client at one moment.

    waiting: calls that are in no endpoint's hands. calls, oldest_s: calls that have not ended,
    and the age of the oldest. paused_by: who paused it; empty: nobody. usd: spent by the
    workspace, all its runs together; None: no endpoint has a price.
    """

    endpoints: tuple[EndpointSeen, ...]
    waiting: int
    calls: int
    oldest_s: float
    paused_by: str
    usd: float | None


class AskEndpoints(Request[EndpointsSeen], frozen=True, kw_only=True, tag=True):
    """How the endpoints stand; asked by whoever shows it, never by an actor."""

    IDEMPOTENT: ClassVar[bool] = True
