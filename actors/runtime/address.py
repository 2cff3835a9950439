"""How one actor reaches another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from actors.runtime.errors import ActorCrashed, AskFailed, AskTimeout, PoisonMessage
from protocol.base import Event, Request

__all__ = ["Address", "ask_or"]

R = TypeVar("R")


class Address(Protocol):
    """A peer, as seen by the actor that holds it: a name and two verbs."""

    @property
    def name(self) -> str:
        """The peer's name in the wiring."""
        ...

    async def ask(self, request: Request[R], *, timeout_s: float | None = None) -> R:
        """Send a request and wait for its one reply.

        timeout_s: seconds; None: the runtime's default. What is left of the asker's own
        deadline is the upper bound in both cases.

        Raises AskFailed: ActorCrashed, ActorDead, AskTimeout, AskCycle or PoisonMessage.
        """
        ...

    async def tell(self, event: Event) -> None:
        """Send an event; waits while the mailbox is full. Raises ActorDead."""
        ...


async def ask_or(peer: Address, request: Request[R], otherwise: Callable[[AskFailed], R]) -> R:
    """Ask; what went wrong with this one message comes back as a reply made by ``otherwise``.

    A crash, a poisoned message or a passed deadline costs one message. A dead peer or a cycle
    concerns the house and is raised, as ActorDead or AskCycle.
    """
    try:
        return await peer.ask(request)
    except (ActorCrashed, PoisonMessage, AskTimeout) as failure:
        return otherwise(failure)
