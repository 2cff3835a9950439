"""Single flight: identical calls in progress share one piece of work.

The work runs in the first caller's own task. If that caller is cancelled, one of the others
takes over; if the work raises, all of them see the exception. Nothing outlives its callers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

__all__ = ["SingleFlight"]

T = TypeVar("T")


class _Flight(Generic[T]):
    """One piece of work in progress; ``outcome`` stays empty when its leader was cancelled."""

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.outcome: tuple[T] | Exception | None = None


class SingleFlight(Generic[T]):
    """Shared work by key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def run(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The work's result, and whether another caller did it.

        Raises what the work raises.
        """
        while (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if isinstance(flight.outcome, Exception):
                raise flight.outcome
            if flight.outcome is not None:
                return flight.outcome[0], True
        flight = self._flights[key] = _Flight()
        try:
            result = await work()
            flight.outcome = (result,)
        except Exception as error:
            flight.outcome = error
            raise
        finally:
            del self._flights[key]
            flight.landed.set()
        return result, False
