"""The kinds of message, and the scope that travels with them.

    Message
    ├── Request[Reply]   asked; answered exactly once with its reply type
    ├── Event            told; never answered
    └── everything else  a reply, or a part of a message

A failed call is another *type* than an answer: a request whose work can fail
for a reason that belongs to the domain names a union as its reply,
``class Chat(Request[ChatAnswer | ChatFailed])``. Exceptions are for bugs; the
runtime turns them into a crash and a restart.

No message holds a dict or a callable. Every message encodes and decodes with
msgspec unchanged, so that a channel can later cross a process.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

import msgspec

__all__ = ["Event", "Message", "Refused", "Request", "Scope"]

R_co = TypeVar("R_co", covariant=True)


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Anything that crosses a channel."""


class Scope(Message, frozen=True, kw_only=True, tag=True):
    """Where in a run a message belongs; the runtime binds it to every log line."""

    epoch: int | None = None
    step: int | None = None
    task_type: str | None = None
    question_id: str | None = None

    def fields(self) -> list[tuple[str, str | int]]:
        """The known parts, under the names that log lines use."""
        named = (
            ("epoch", self.epoch),
            ("step", self.step),
            ("class", self.task_type),
            ("question_id", self.question_id),
        )
        return [(name, value) for name, value in named if value is not None]


class Request(Message, Generic[R_co], frozen=True, kw_only=True, tag=True):
    """A message with one reply, whose type is the parameter.

    ``IDEMPOTENT``: handling it twice does no harm, so that the runtime may hand
    it once more to the next incarnation after a crash. A second crash on the
    same message is answered with ``PoisonMessage``.
    """

    IDEMPOTENT: ClassVar[bool] = False

    scope: Scope = Scope()


class Event(Message, frozen=True, kw_only=True, tag=True):
    """A message without a reply."""

    scope: Scope = Scope()


class Refused(Message, frozen=True, kw_only=True, tag=True):
    """A declared "no": the request was understood and cannot be served.

    what: one sentence that names the thing at fault.
    remedy: what the operator can do.
    details: one line per problem, all of them.
    passing: it may pass by itself (an outage), so that trying again later is sensible.
    """

    what: str
    remedy: str
    details: tuple[str, ...] = ()
    passing: bool = False
