"""What the supervisor writes into the control lane of a mailbox, and what comes back.

Control messages never wait behind work and never run inside a handler.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from actors.runtime.envelope import Reply

__all__ = ["Control", "Ping", "Pong", "Snapshot", "State", "Stop"]

State = Literal["starting", "up", "restarting", "stopping", "dead"]


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """An actor's own word that it is there."""

    actor: str
    """Its name."""
    state: State
    """Where its life stands."""
    incarnation: int
    """1 for the first, one more after every restart."""


class Stop:
    """End the incarnation, answer what waits, let no other be born."""


class Snapshot:
    """Give the actor's state for a checkpoint; waits for an actor that is being restarted."""

    def __init__(self) -> None:
        self.reply = Reply[bytes | None]()


class Ping:
    """Say that you are there."""

    def __init__(self) -> None:
        self.reply = Reply[Pong]()


Control: TypeAlias = Stop | Snapshot | Ping
