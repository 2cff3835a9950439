"""What a room's ``actor.py`` derives from.

An actor is built anew for every incarnation by its factory, rebuilds its state in
``on_start`` (from the ledger and the checkpoint, never from its former self), then
handles one message at a time, or ``concurrency`` of them when its spec says so.
State is touched only between awaits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog
from anyio.abc import TaskGroup

from protocol.base import Event, Request

__all__ = ["Actor", "Context", "handles", "hears"]

R = TypeVar("R")
S = TypeVar("S")
Q = TypeVar("Q")
E = TypeVar("E", bound=Event)


class Context(Protocol):
    """What the runtime gives an incarnation."""

    @property
    def name(self) -> str:
        """The actor's name in the wiring."""
        ...

    @property
    def incarnation(self) -> int:
        """1 for the first, one more after every restart."""
        ...

    @property
    def log(self) -> structlog.stdlib.BoundLogger:
        """A logger whose lines carry actor and scope."""
        ...

    @property
    def restored(self) -> bytes | None:
        """What ``snapshot`` returned at the last checkpoint; None: start afresh."""
        ...

    @property
    def tasks(self) -> TaskGroup:
        """The incarnation's own task group: what is started here dies with it."""
        ...

    @property
    def draining(self) -> bool:
        """True once a stop was asked for: begin nothing new."""
        ...

    async def checkpoint(self, label: str) -> None:
        """Have the supervisor write every stateful actor's snapshot, atomically.

        Raises OSError if the file cannot be written; the old one is then untouched.
        """
        ...


class Actor:
    """Base of all actors; handlers are methods marked with ``handles`` or ``hears``."""

    async def on_start(self, context: Context) -> None:
        """Rebuild state. An exception here counts against the restart budget."""

    async def on_stop(self) -> None:
        """Release what ``on_start`` took; shielded and bounded by the runtime."""

    def snapshot(self) -> bytes | None:
        """The state for the checkpoint as JSON bytes; None: stateless."""
        return None


def handles(
    kind: type[Request[R]],
) -> Callable[[Callable[[S, Q], Awaitable[R]]], Callable[[S, Q], Awaitable[R]]]:
    """Mark a method as the handler of a request; mypy holds it to the reply type."""

    def mark(method: Callable[[S, Q], Awaitable[R]]) -> Callable[[S, Q], Awaitable[R]]:
        method.__handles__ = kind  # type: ignore[attr-defined]  # read once by the runtime
        return method

    return mark


def hears(
    kind: type[E],
) -> Callable[[Callable[[S, E], Awaitable[None]]], Callable[[S, E], Awaitable[None]]]:
    """Mark a method as the handler of an event."""

    def mark(method: Callable[[S, E], Awaitable[None]]) -> Callable[[S, E], Awaitable[None]]:
        method.__handles__ = kind  # type: ignore[attr-defined]  # read once by the runtime
        return method

    return mark
