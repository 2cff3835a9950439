"""The operator's hand on the client: pause, go on, and how many requests at most.

Made by whoever starts the actor and handed to every incarnation, so that a wish outlives a
crash. It only says what is wished; the pool obeys. Never waits, never sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

__all__ = ["Pace"]


class Pace:
    """What the operator wishes now.

    paused_by: who paused, in words; None: not paused. ceilings: requests in flight at most, by
    endpoint; an endpoint that is not named keeps what its configuration says.
    """

    def __init__(self) -> None:
        self._paused_by: str | None = None
        self._ceilings: dict[str, int] = {}
        self._obey: Callable[[], None] = _nobody

    @property
    def paused_by(self) -> str | None:
        """Who paused; None: not paused."""
        return self._paused_by

    @property
    def ceilings(self) -> Mapping[str, int]:
        """Requests in flight at most, by endpoint."""
        return MappingProxyType(self._ceilings)

    def obeyed_by(self, obey: Callable[[], None]) -> None:
        """Who is told of every change: the pool of the newest incarnation, and no other."""
        self._obey = obey

    def pause(self, by: str) -> bool:
        """Let no new call begin; False: it was paused already."""
        if self._paused_by is not None:
            return False
        self._paused_by = by
        self._obey()
        return True

    def resume(self) -> bool:
        """Go on; False: it was not paused."""
        if self._paused_by is None:
            return False
        self._paused_by = None
        self._obey()
        return True

    def allow(self, endpoint: str, ceiling: int) -> None:
        """Set the most requests in flight of an endpoint, at least 1."""
        if ceiling < 1:
            raise ValueError(f"{endpoint}: a ceiling of {ceiling} requests; pause instead")
        self._ceilings[endpoint] = ceiling
        self._obey()


def _nobody() -> None:
    """No pool yet: it will look when it is built."""
