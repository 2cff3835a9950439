"""The cache in Redis, shared between machines. A dead server is an outage, never an error.

Socket clocks are short and nothing is tried twice: a chat costs seconds, a missing cache
must not cost more. After a failure the server is left alone for a moment, so that not every
call waits for the clock; the pause doubles up to a cap and ends with the first success.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from actors.cache.store import Lookup, StoreUnavailable

__all__ = ["RedisStore"]

_PREFIX = "video-tree-trm:chat:1:"
_SOCKET_S = 1.0
_PAUSE_S = 1.0
_PAUSE_CAP_S = 30.0


class RedisStore:
    """A pool of connections to one server; connects on first use, ``close`` it.

    url: ``redis://host:port/db``, ``rediss://`` or ``unix://``. ttl_s: seconds an entry lives.
    clock: monotonic seconds, for the pause after a failure.
    Raises ValueError if the URL cannot be read.
    """

    def __init__(
        self, url: str, *, ttl_s: int, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._redis = Redis.from_url(
            url,
            socket_timeout=_SOCKET_S,
            socket_connect_timeout=_SOCKET_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._ttl_s = ttl_s
        self._clock = clock
        self._pause_s = _PAUSE_S
        self._rests_until = float("-inf")

    async def close(self) -> None:
        """Close the connections."""
        with anyio.CancelScope(shield=True):
            await self._redis.aclose()

    async def get(self, key: str) -> Lookup:
        """The entry of a key; Redis itself drops what has expired, so that this is absent."""
        async with self._guarded():
            entry = await self._redis.get(_PREFIX + key)
        if isinstance(entry, str):  # the URL asked for decode_responses; entries are UTF-8
            return entry.encode()
        return "absent" if entry is None else entry

    async def put(self, key: str, entry: bytes) -> None:
        """SET with a time to live: one command, so that no entry is ever without one."""
        async with self._guarded():
            await self._redis.set(_PREFIX + key, entry, ex=self._ttl_s)

    async def remove(self, key: str, entry: bytes) -> None:
        """Delete the key, if its value is still this one.

        The two commands are not one transaction: a value that is renewed in between is lost,
        which costs one chat.
        """
        async with self._guarded():
            if await self._redis.get(_PREFIX + key) == entry:
                await self._redis.delete(_PREFIX + key)

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        """Turn every failure into StoreUnavailable, and rest after one."""
        if self._clock() < self._rests_until:
            raise StoreUnavailable("redis failed a moment ago")
        try:
            yield
        except (RedisError, OSError) as error:
            # calls that were under way together are one failure, not many
            if self._clock() >= self._rests_until:
                self._rests_until = self._clock() + self._pause_s
                self._pause_s = min(2 * self._pause_s, _PAUSE_CAP_S)
            raise StoreUnavailable(f"redis: {type(error).__name__}") from error
        self._pause_s = _PAUSE_S
