"""The cache in one SQLite file: short transactions that no cancellation can tear.

aiosqlite goes on with a statement whose waiter was cancelled, so every transaction is
``BEGIN IMMEDIATE .. COMMIT`` in one shielded block, behind a lock. Puts that wait for the
lock are committed together by whoever holds it next. A file that is no database any more
is set aside: a cache may be lost, a run may not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import aiosqlite
import anyio

from actors.cache.store import Lookup, StoreUnavailable

__all__ = ["SqliteStore"]

_MAX_GROUP = 256
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PREPARE = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "CREATE TABLE IF NOT EXISTS entries"
    " (key TEXT PRIMARY KEY, entry BLOB NOT NULL, expires_at REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_expiry ON entries (expires_at)",
)
_PUT = "INSERT OR REPLACE INTO entries (key, entry, expires_at) VALUES (?, ?, ?)"
# a damaged row may hold another type than the column says: whatever it is, as bytes
_GET = "SELECT CAST(entry AS BLOB), CAST(expires_at AS REAL) FROM entries WHERE key = ?"
_REMOVE = "DELETE FROM entries WHERE key = ? AND CAST(entry AS BLOB) = ?"
_PURGE = "DELETE FROM entries WHERE expires_at <= ?"


class _Pending:
    """A put that waits for its commit; ``outcome`` is None until it was tried."""

    def __init__(self, row: tuple[str, bytes, float]) -> None:
        self.row = row
        self.outcome: StoreUnavailable | bool | None = None


class SqliteStore:
    """An open cache file. Use ``await SqliteStore.open(...)``, and ``close`` it.

    transactions: how many were committed, for the curious and the tests.
    """

    def __init__(
        self,
        writer: aiosqlite.Connection,
        reader: aiosqlite.Connection,
        *,
        ttl_s: int,
        now: Callable[[], float],
    ) -> None:
        self.transactions = 0
        self._writer = writer
        self._reader = reader
        self._ttl_s = ttl_s
        self._now = now
        self._turn = anyio.Lock()
        self._waiting: list[_Pending] = []  # as long as the handlers that wait in it

    @classmethod
    async def open(cls, path: Path, *, ttl_s: int, now: Callable[[], float]) -> SqliteStore:
        """Open or create the file and drop what has expired.

        ttl_s: seconds that an entry lives. now: seconds since the epoch.
        A damaged file is renamed to ``<name>.damaged`` (replacing an older one).
        Raises sqlite3.Error with the path if the file cannot be opened or written.
        """
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(_probe, path)
                writer = await _connect_writer(path, now())
                try:
                    reader = await aiosqlite.connect(
                        _read_only(path), uri=True, isolation_level=None
                    )
                except BaseException:
                    await writer.close()
                    raise
            except sqlite3.Error as error:
                raise sqlite3.OperationalError(f"{path}: {error}") from error
        return cls(writer, reader, ttl_s=ttl_s, now=now)

    async def close(self) -> None:
        """Close both connections; their threads are not daemons, a missed close hangs the exit."""
        with anyio.CancelScope(shield=True):
            await self._reader.close()
            await self._writer.close()

    async def get(self, key: str) -> Lookup:
        """The committed entry of a key."""
        with anyio.CancelScope(shield=True):
            try:
                rows = await self._reader.execute_fetchall(_GET, (key,))
            except sqlite3.Error as error:
                raise StoreUnavailable(f"cache file: {error}") from error
        for entry, expires_at in rows:
            return bytes(entry) if self._now() < expires_at else "expired"
        return "absent"

    async def put(self, key: str, entry: bytes) -> None:
        """Commit an entry, alone or with others that wait.

        Cancelled while it waits for its turn, it leaves nothing behind.
        """
        pending = _Pending((key, entry, self._now() + self._ttl_s))
        self._waiting.append(pending)
        try:
            async with self._turn:
                if pending.outcome is None:
                    await self._commit_waiting(pending)
        finally:
            if pending in self._waiting:
                self._waiting.remove(pending)
        if isinstance(pending.outcome, StoreUnavailable):
            raise StoreUnavailable(str(pending.outcome)) from pending.outcome

    async def remove(self, key: str, entry: bytes) -> None:
        """Delete the row if it still holds these bytes."""
        async with self._turn:
            await self._transaction(_REMOVE, [(key, entry)])

    async def _commit_waiting(self, mine: _Pending) -> None:
        """One transaction for mine and for what else waits; all of a group share its fate."""
        others = [pending for pending in self._waiting if pending is not mine]
        group = [*others[: _MAX_GROUP - 1], mine]
        self._waiting = [pending for pending in self._waiting if pending not in group]
        outcome: StoreUnavailable | bool = True
        try:
            await self._transaction(_PUT, [pending.row for pending in group])
        except StoreUnavailable as error:
            outcome = error
        for pending in group:
            pending.outcome = outcome

    async def _transaction(
        self, statement: str, rows: list[tuple[str, bytes]] | list[tuple[str, bytes, float]]
    ) -> None:
        """All rows or none. Raises StoreUnavailable after a rollback."""
        with anyio.CancelScope(shield=True):
            try:
                await self._writer.execute("BEGIN IMMEDIATE")
                try:
                    await self._writer.executemany(statement, rows)
                    await self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:  # a full disk may have rolled it back already
                        await self._writer.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreUnavailable(f"cache file: {error}") from error
            self.transactions += 1


def _probe(path: Path) -> None:
    """Open and close the file. Raises sqlite3.Error.

    aiosqlite does not wait for its thread after a failed connect; the thread may then outlive
    the event loop and die in it. So a file that cannot be opened is found out without it.
    """
    sqlite3.connect(path).close()


def _read_only(path: Path) -> str:
    """The file as a URI; signs such as ``?`` in its name are escaped."""
    return f"{path.absolute().as_uri()}?mode=ro"


async def _connect_writer(path: Path, now: float) -> aiosqlite.Connection:
    """A prepared connection; begins a new file, once, where the old one is damaged."""
    try:
        return await _prepared(path, now)
    except sqlite3.DatabaseError as error:
        # the low byte is the primary code, the rest says more
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise
    await anyio.to_thread.run_sync(_set_aside, path)
    return await _prepared(path, now)


async def _prepared(path: Path, now: float) -> aiosqlite.Connection:
    writer = await aiosqlite.connect(path, isolation_level=None)
    try:
        for statement in _PREPARE:
            await writer.execute(statement)
        await writer.execute(_PURGE, (now,))
    except BaseException:
        await writer.close()
        raise
    return writer


def _set_aside(path: Path) -> None:
    """Move the file away and drop the log that belongs to it."""
    path.replace(path.with_name(f"{path.name}.damaged"))
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
