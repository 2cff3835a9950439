"""What the actor wants of a store: bytes by key, or one exception.

SqliteStore   sqlite.py, the default
RedisStore    redis.py, shared between machines
"""

from __future__ import annotations

from typing import Literal, Protocol

__all__ = ["Lookup", "Store", "StoreUnavailable"]

#: The stored bytes, or why there are none.
Lookup = bytes | Literal["absent", "expired"]


class StoreUnavailable(Exception):
    """The store did not do it now; it may later. The message says why, without secrets."""


class Store(Protocol):
    """Bytes by key for a limited time. Every method raises StoreUnavailable."""

    async def get(self, key: str) -> Lookup:
        """What is stored under a key."""
        ...

    async def put(self, key: str, entry: bytes) -> None:
        """Keep an entry, whole or not at all; replaces and renews."""
        ...

    async def remove(self, key: str, entry: bytes) -> None:
        """Forget the entry of a key, if it is still this one where the store can tell."""
        ...

    async def close(self) -> None:
        """Release connections; never raises StoreUnavailable."""
        ...
