"""One holder per key: work on the same thing is done once, on different things side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import anyio

__all__ = ["KeyedLocks"]


class _Entry:
    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0  # holder and waiters; the last one takes the entry away


class KeyedLocks:
    """Locks by key, which exist only while they are in use."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[None]:
        """Wait until nobody else holds ``key``. A cancelled holder makes way for the next."""
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._entries[key]
