"""A peer that answers in process: for testing a room's actor without the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from protocol.base import Event, Request

__all__ = ["FakeAddress"]

R = TypeVar("R")


class FakeAddress:
    """An ``Address`` whose replies come from a function; keeps what it was sent.

    answer: gets each request and returns the reply (or raises what an ask may raise).
    """

    def __init__(self, name: str, answer: Callable[[Request[object]], Awaitable[object]]) -> None:
        self.name = name
        self.requests: list[Request[object]] = []
        self.events: list[Event] = []
        self._answer = answer

    async def ask(self, request: Request[R], *, timeout_s: float | None = None) -> R:
        """Answer from the function."""
        self.requests.append(request)
        return await self._answer(request)  # type: ignore[return-value]  # the test's own promise

    async def tell(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)
