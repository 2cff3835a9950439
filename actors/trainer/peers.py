"""What the loop needs of the other rooms, as plain shapes: no runtime is known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from protocol.base import Request
from protocol.rollout import Answered, Missed, Rollout

__all__ = ["Peer", "Peers"]

R = TypeVar("R")


class Peer(Protocol):
    """Something that can be asked."""

    async def ask(self, request: Request[R]) -> R:
        """Send a request, wait for its reply."""
        ...


@dataclass(frozen=True)
class Peers:
    """The rooms below the trainer.

    roll: answers one question; infrastructure trouble of any kind comes back as ``Missed``.
    draining: true once a stop was asked for: begin nothing new.
    """

    dataset: Peer
    diagnoser: Peer
    evolver: Peer
    gate: Peer
    baseline: Peer
    ledger: Peer
    workspace: Peer
    roll: Callable[[Rollout], Awaitable[Answered | Missed]]
    draining: Callable[[], bool]
