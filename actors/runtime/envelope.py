"""What lies in a mailbox: a message, who waits for it and until when.

An envelope never decides anything: the mailbox queues it, an incarnation runs it,
the cell says what becomes of it after a crash. Its reply is written once; whoever
comes second (a late handler, a passed deadline) writes to nobody.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar, final

import anyio

from actors.runtime.errors import RuntimeFailure
from protocol.base import Event, Request

__all__ = ["LINEAGE", "Envelope", "Lineage", "Reply"]

T = TypeVar("T")


class Lineage(NamedTuple):
    """On whose behalf the current task works.

    chain: the actors that wait for it, outermost first, itself last.
    deadline: of the ask it serves, on the event loop's clock.
    serving: the message in hand; None in ``on_start`` and outside.
    """

    chain: tuple[str, ...] = ()
    deadline: float = math.inf
    serving: Envelope | None = None


_NOBODY = Lineage()

LINEAGE: ContextVar[Lineage] = ContextVar("lineage", default=_NOBODY)
"""Set by the runtime inside a handler's own task; a task started there inherits it."""


@final
class Reply(Generic[T]):
    """A one-shot result: the first writer wins."""

    __slots__ = ("_failure", "_value", "_written")

    def __init__(self) -> None:
        self._written = anyio.Event()
        self._value: T | None = None
        self._failure: Exception | None = None

    @property
    def settled(self) -> bool:
        """Whether a value or a failure was written."""
        return self._written.is_set()

    def succeed(self, value: T) -> bool:
        """Write a value; False: something was written before."""
        if self.settled:
            return False
        self._value = value
        self._written.set()
        return True

    def fail(self, failure: Exception) -> bool:
        """Write a failure; False: something was written before."""
        if self.settled:
            return False
        self._failure = failure
        self._written.set()
        return True

    async def wait(self) -> None:
        """Wait until something is written."""
        await self._written.wait()

    def result(self) -> T:
        """What was written: the value, or the failure raised. Only after ``settled``."""
        if not self.settled:
            raise RuntimeError("the reply was read before it was written")
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]  # None only where T allows it

    async def get(self) -> T:
        """Wait, then ``result``."""
        await self.wait()
        return self.result()


@final
class Envelope:
    """A message on its way through one actor.

    sender: the asking actor, or ``outside``.
    chain: the actors that wait for the reply, outermost first.
    deadline: event loop time; inf for an event.
    reply: None for an event.
    parent: the message whose handler asked; None: from outside, or an event.
    crashes: incarnations that this message has crashed, itself or through what it asked.
    sent_at: event loop time of the ask or tell; what the age of a message is counted from.
    """

    __slots__ = (
        "_running",
        "chain",
        "crashes",
        "deadline",
        "message",
        "parent",
        "reply",
        "sender",
        "sent_at",
    )

    def __init__(
        self,
        message: Request[object] | Event,
        *,
        sender: str,
        sent_at: float,
        chain: tuple[str, ...] = (),
        deadline: float = math.inf,
        reply: Reply[object] | None = None,
        parent: Envelope | None = None,
    ) -> None:
        self.message = message
        self.sender = sender
        self.sent_at = sent_at
        self.chain = chain
        self.deadline = deadline
        self.reply = reply
        self.parent = parent
        self.crashes = 0
        self._running: anyio.CancelScope | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} from {self.sender}>"

    @property
    def kind(self) -> str:
        """The message's type, by name."""
        return type(self.message).__name__

    @property
    def idempotent(self) -> bool:
        """Whether the message may be handled a second time."""
        return isinstance(self.message, Request) and type(self.message).IDEMPOTENT

    @property
    def unwanted(self) -> bool:
        """Nobody waits any more: the ask was answered, cancelled or timed out."""
        return self.reply is not None and self.reply.settled

    def with_askers(self) -> frozenset[Envelope]:
        """This message and those that it was asked for, up to the outermost."""
        found = []
        envelope: Envelope | None = self
        while envelope is not None:
            found.append(envelope)
            envelope = envelope.parent
        return frozenset(found)

    def run(self) -> anyio.CancelScope:
        """The scope that the handler must run in: it ends at the deadline, or by ``withdraw``."""
        self._running = anyio.CancelScope(deadline=self.deadline)
        if self.unwanted:
            self._running.cancel()
        return self._running

    def succeed(self, value: object) -> None:
        """Answer the asker, if there is one and it still waits."""
        if self.reply is not None:
            self.reply.succeed(value)

    def fail(self, failure: RuntimeFailure) -> None:
        """Fail the ask, if there is an asker and it still waits."""
        if self.reply is not None:
            self.reply.fail(failure)

    def withdraw(self, failure: RuntimeFailure) -> None:
        """The asker is gone: the handler that may be running for it is cancelled."""
        if self.unwanted:
            return
        self.fail(failure)
        if self._running is not None:
            self._running.cancel()
