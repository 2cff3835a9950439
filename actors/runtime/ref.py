"""The address that the runtime hands out: ``ask`` and ``tell`` on a mailbox.

Carries deadline and ask chain from the asking task to the handling one. It must never
leave anything behind: an ask that ends early takes its message out of the mailbox, or
cancels the handler that works for it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, cast, final

import anyio

from actors.runtime.envelope import LINEAGE, Envelope, Reply
from actors.runtime.errors import AskCycle, AskTimeout
from protocol.base import Event, Message, Request

__all__ = ["OUTSIDE", "Ref", "Target"]

R = TypeVar("R")

OUTSIDE = "outside"
"""The sender's name for whoever is no actor: the composition root and tests."""


class Target(Protocol):
    """What a reference needs of the cell behind it."""

    @property
    def name(self) -> str:
        """The actor's name."""
        ...

    def admit(self, kind: type[Message], sender: str) -> None:
        """Raise what speaks against sending: ActorDead, or WiringError for an unknown kind."""
        ...

    def opened(self, envelope: Envelope) -> None:
        """An ask begins."""
        ...

    def closed(self, envelope: Envelope) -> None:
        """The ask has ended, in whatever way."""
        ...

    async def deliver(self, envelope: Envelope) -> None:
        """Queue a message; waits while the mailbox is full. Raises ActorDead."""
        ...


@final
class Ref:
    """An ``Address`` bound to who holds it."""

    __slots__ = ("_ask_timeout_s", "_sender", "_target")

    def __init__(self, sender: str, target: Target, ask_timeout_s: float) -> None:
        self._sender = sender
        self._target = target
        self._ask_timeout_s = ask_timeout_s

    def __repr__(self) -> str:
        return f"<address {self._sender} -> {self.name}>"

    @property
    def name(self) -> str:
        """The peer's name in the wiring."""
        return self._target.name

    async def ask(self, request: Request[R], *, timeout_s: float | None = None) -> R:
        """Send a request and wait for its one reply; see ``Address.ask``.

        Raises WiringError if the peer has no handler for this kind of request.
        """
        lineage = LINEAGE.get()
        if self.name in lineage.chain:
            raise AskCycle(self.name, " -> ".join((*lineage.chain, self.name)))
        self._target.admit(type(request), self._sender)
        now = anyio.current_time()
        within_s = self._ask_timeout_s if timeout_s is None else timeout_s
        reply = Reply[object]()
        envelope = Envelope(
            cast("Request[object]", request),
            sender=self._sender,
            sent_at=now,
            chain=lineage.chain,
            deadline=min(now + within_s, lineage.deadline),
            reply=reply,
            parent=lineage.serving,
        )
        self._target.opened(envelope)
        try:
            with anyio.CancelScope(deadline=envelope.deadline):
                await self._target.deliver(envelope)
                await reply.wait()
        finally:
            envelope.withdraw(AskTimeout(self.name, f"{envelope.kind}: no reply in time"))
            self._target.closed(envelope)
        return cast("R", reply.result())

    async def tell(self, event: Event) -> None:
        """Send an event; see ``Address.tell``."""
        self._target.admit(type(event), self._sender)
        await self._target.deliver(
            Envelope(event, sender=self._sender, sent_at=anyio.current_time())
        )
