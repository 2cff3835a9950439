"""The cache's shell: a question by key, an answer or a miss."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from actors.cache.entry import CorruptEntry, decode_entry, encode_entry
from actors.cache.redis import RedisStore
from actors.cache.settings import CacheChoice, resolve_cache
from actors.cache.sqlite import SqliteStore
from actors.cache.store import Store, StoreUnavailable
from actors.runtime.actor import Actor, Context, handles
from protocol.cache import CacheGet, CacheHit, CacheMiss, CachePut, CacheStored
from protocol.settings import CacheSettings

__all__ = ["CacheActor", "CacheCounts", "wall_clock"]


def wall_clock() -> float:
    """Seconds since the epoch: the default clock of expiry."""
    return datetime.now(UTC).timestamp()


@dataclass
class CacheCounts:
    """What this incarnation saw.

    corrupt: entries found damaged and removed. unavailable: calls that the store did not
    serve. unstorable: answers whose text has no UTF-8 form.
    """

    hits: int = 0
    absent: int = 0
    expired: int = 0
    corrupt: int = 0
    unavailable: int = 0
    stored: int = 0
    unstorable: int = 0


class CacheActor(Actor):
    """Owns the store; stateless beyond it.

    path: the SQLite file (unused by other backends). environ: where ``REDIS_URL`` and
    ``REDIS_CACHE_TTL`` are looked up. now: wall-clock seconds, for the expiry of SQLite entries.
    Raises ValueError as ``resolve_cache`` does (row P1-1).
    """

    def __init__(
        self,
        settings: CacheSettings,
        path: Path,
        *,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = wall_clock,
    ) -> None:
        self.counts = CacheCounts()
        self._choice = resolve_cache(settings, environ)
        self._path = path
        self._now = now
        self._store: Store | None = None
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger()
        self._failing: set[str] = set()  # what the store does not do: "get", "put"

    async def on_start(self, context: Context) -> None:
        """Open the store. Raises sqlite3.Error naming a file that cannot be opened."""
        self._log = context.log
        self._store = await _open(self._choice, self._path, self._now)
        if context.incarnation == 1:
            context.log.info("cache.open", backend=self._choice.backend, ttl_s=self._choice.ttl_s)

    async def on_stop(self) -> None:
        """Close the store and say what it was good for."""
        if self._store is not None:
            await self._store.close()
        self._log.info("cache.closed", **asdict(self.counts))

    @handles(CacheGet)
    async def get(self, request: CacheGet) -> CacheHit | CacheMiss:
        """Look up; whatever is wrong with the store or the entry is a miss."""
        if self._store is None:
            self.counts.absent += 1
            return CacheMiss(why="absent")
        try:
            found = await self._store.get(request.key)
        except StoreUnavailable as error:
            self._note_outage("get", error)
            return CacheMiss(why="unavailable")
        self._note_service("get")
        if found == "absent":
            self.counts.absent += 1
            return CacheMiss(why="absent")
        if found == "expired":
            self.counts.expired += 1
            return CacheMiss(why="expired")
        try:
            answer = decode_entry(request.key, found)
        except CorruptEntry as error:
            await self._drop(self._store, request.key, found, error)
            return CacheMiss(why="corrupt")
        self.counts.hits += 1
        return CacheHit(answer=answer)

    @handles(CachePut)
    async def put(self, request: CachePut) -> CacheStored:
        """Keep an answer; true means that it is in the store."""
        if self._store is None:
            return CacheStored(stored=False)
        try:
            entry = encode_entry(request.key, request.answer)
        except UnicodeEncodeError:
            self.counts.unstorable += 1
            self._log.warning("cache.unstorable", key=request.key)
            return CacheStored(stored=False)
        try:
            await self._store.put(request.key, entry)
        except StoreUnavailable as error:
            self._note_outage("put", error)
            return CacheStored(stored=False)
        self._note_service("get", "put")
        self.counts.stored += 1
        return CacheStored(stored=True)

    async def _drop(self, store: Store, key: str, entry: bytes, error: CorruptEntry) -> None:
        """Count and remove an entry that proved corrupt."""
        self.counts.corrupt += 1
        self._log.warning("cache.corrupt", key=key, why=str(error))
        try:
            await store.remove(key, entry)
        except StoreUnavailable as outage:
            self._note_outage("put", outage)

    def _note_outage(self, what: str, error: StoreUnavailable) -> None:
        """Log an outage once, when it begins."""
        self.counts.unavailable += 1
        if not self._failing:
            self._log.warning("cache.unavailable", why=str(error), effect="every chat is asked")
        self._failing.add(what)

    def _note_service(self, *what: str) -> None:
        """A full disk can be read: what is written must be well again before that is said."""
        if self._failing and not self._failing.difference(what):
            self._log.info("cache.available_again")
        self._failing.difference_update(what)


async def _open(choice: CacheChoice, path: Path, now: Callable[[], float]) -> Store | None:
    """The chosen store; None where there shall be none."""
    if choice.backend == "sqlite":
        return await SqliteStore.open(path, ttl_s=choice.ttl_s, now=now)
    if choice.redis_url is not None:
        return RedisStore(choice.redis_url, ttl_s=choice.ttl_s)
    return None
