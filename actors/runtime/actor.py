"""What a room's ``actor.py`` derives from.

An actor is built anew for every incarnation by its factory, rebuilds its state in
``on_start`` (from the ledger and the checkpoint, never from its former self), then
handles one message at a time, or ``concurrency`` of them when its spec says so.
State is touched only between awaits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeVar

import structlog
from anyio.abc import TaskGroup

from actors.runtime.errors import WiringError
from protocol.base import Event, Message, Request

__all__ = ["Actor", "Context", "handler_names", "handles", "hears", "is_stateful"]

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
        """The incarnation's own task group: what is started here dies with it.

        An exception there is a crash. What a handler starts inherits its ask's deadline.
        """
        ...

    @property
    def draining(self) -> bool:
        """True once a stop was asked for: begin nothing new."""
        ...

    async def checkpoint(self, label: str) -> None:
        """Have the supervisor write every stateful actor's snapshot, atomically.

        The snapshots are taken one by one, between the awaits of running handlers: ask for a
        checkpoint when nothing moves that must be consistent.

        Raises OSError if the file cannot be written; the old one is then untouched. Raises
        ActorDead or ActorCrashed if an actor has no snapshot to give, and WiringError if the
        supervisor was given nothing to write to.
        """
        ...


class Actor:
    """Base of all actors; handlers are methods marked with ``handles`` or ``hears``."""

    async def on_start(self, context: Context) -> None:
        """Rebuild state. An exception here counts against the restart budget."""

    async def on_stop(self) -> None:
        """Release what ``on_start`` took; shielded and bounded by the runtime.

        Called at the end of every incarnation, also after a crash and after an ``on_start``
        that failed halfway. Handlers and tasks have ended before; peers still answer.
        """

    def stalled(self) -> Collection[Message]:
        """Of the messages in hand those that wait for something outside that does not come.

        A drain does not wait for them, nor for what they were asked for.
        """
        return ()

    def snapshot(self) -> bytes | None:
        """The state for the checkpoint as JSON bytes; None: nothing to keep.

        An actor is stateful if it overrides this. Taken between the awaits of its handlers.
        """
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


def handler_names(kind: type[Actor]) -> dict[type[Message], str]:
    """Which method of an actor class handles which message.

    Raises WiringError if two methods claim the same message.
    """
    names: dict[type[Message], str] = {}
    for name in dir(kind):
        message = getattr(getattr(kind, name), "__handles__", None)
        if message is None:
            continue
        if message in names:
            taken = f"{names[message]} and {name}"
            raise WiringError(f"{kind.__name__}: {taken} both handle {message.__name__}")
        names[message] = name
    return names


def is_stateful(kind: type[Actor]) -> bool:
    """Whether the class gives snapshots."""
    return kind.snapshot is not Actor.snapshot
