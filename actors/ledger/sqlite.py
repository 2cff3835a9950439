"""The one connection that writes ``run.db``, and the one that reads it.

Every transaction is ``BEGIN IMMEDIATE .. COMMIT`` inside one shielded block: aiosqlite
goes on with a statement whose waiter was cancelled, so an unshielded cancellation would
leave a transaction open and the next commit would commit its half.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import aiosqlite
import anyio

from actors.ledger import schema
from protocol.ledger import DeleteRun, Record, Select, Spent
from protocol.rows import AnyRow

__all__ = ["Database", "Operation", "read_only_uri", "refuse_other_version"]

Operation = Record | DeleteRun


class Database:
    """An open ``run.db``. Use ``await Database.open(path)``, and ``close`` it."""

    def __init__(self, writer: aiosqlite.Connection, reader: aiosqlite.Connection) -> None:
        self._writer = writer
        self._reader = reader
        self._turn = anyio.Lock()  # one transaction at a time on the one connection

    @classmethod
    async def open(cls, path: Path) -> Database:
        """Create what is missing and open both connections.

        Raises sqlite3.Error (with the path) if the file is not a database or cannot be written.
        """
        # Shielded: a connection whose opening is cancelled leaves its thread behind, and that is
        # no daemon, so that a stop while the actors start would hang the exit.
        with anyio.CancelScope(shield=True):
            _probe(path)
            writer = await aiosqlite.connect(path, isolation_level=None)
            try:
                for statement in (
                    "PRAGMA journal_mode=WAL",
                    "PRAGMA synchronous=NORMAL",
                    "PRAGMA busy_timeout=5000",
                    *schema.ddl(),
                ):
                    await writer.execute(statement)
                reader = await aiosqlite.connect(
                    read_only_uri(path), uri=True, isolation_level=None
                )
            except sqlite3.Error as error:
                await writer.close()
                raise sqlite3.OperationalError(f"{path}: {error}") from error
        return cls(writer, reader)

    async def close(self) -> None:
        """Close both; their threads are not daemons, a missed close hangs the exit."""
        with anyio.CancelScope(shield=True):
            await self._reader.close()
            await self._writer.close()

    async def apply(self, operations: Sequence[Operation]) -> list[int]:
        """Run operations in order in one transaction; returns the rows touched by each.

        Raises sqlite3.Error after a rollback: then none of them happened.
        """
        with anyio.CancelScope(shield=True):
            async with self._turn:
                touched = await self._transaction(operations)
        return touched

    async def _transaction(self, operations: Sequence[Operation]) -> list[int]:
        await self._writer.execute("BEGIN IMMEDIATE")
        try:
            touched = [await self._apply_one(operation) for operation in operations]
            await self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:  # a full disk has rolled back already
                await self._writer.execute("ROLLBACK")
            raise
        return touched

    async def _apply_one(self, operation: Operation) -> int:
        if isinstance(operation, DeleteRun):
            return await self._delete(schema.delete_sql(operation.run_key))
        if operation.instead_of is not None:
            await self._delete(schema.forget_sql(*operation.instead_of))
        by_type: dict[type[AnyRow], list[tuple[schema.Scalar, ...]]] = {}
        for row in operation.rows:
            by_type.setdefault(type(row), []).append(schema.parameters(row))
        for kind, values in by_type.items():
            await self._writer.executemany(schema.upsert_sql(kind), values)
        return len(operation.rows)

    async def _delete(self, statements: Iterable[tuple[str, tuple[schema.Scalar, ...]]]) -> int:
        deleted = 0
        for statement, values in statements:
            cursor = await self._writer.execute(statement, values)
            deleted += cursor.rowcount
            await cursor.close()
        return deleted

    async def select(self, query: Select) -> tuple[AnyRow, ...]:
        """Committed rows. Raises schema.UnknownTable."""
        statement, values = schema.select_sql(query)
        kind = schema.ROW_TYPES[query.table]
        with anyio.CancelScope(shield=True):
            fetched: Iterable[sqlite3.Row] = await self._reader.execute_fetchall(statement, values)
        return tuple(schema.read_row(kind, tuple(row)) for row in fetched)

    async def spent(self) -> Spent:
        """The sums over all committed attempts."""
        with anyio.CancelScope(shield=True):
            (row,) = await self._reader.execute_fetchall(schema.SPENT_SQL)
        calls, prompt_tokens, completion_tokens, usd = row
        return Spent(
            calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=usd
        )

    async def sync(self) -> None:
        """Bring everything committed into the main file and to disk.

        With synchronous=NORMAL a commit survives the death of the process; this makes it
        survive the loss of power. Only this connection checkpoints, which also keeps clear of
        SQLite's WAL-reset bug (fixed in 3.51.3).
        """
        with anyio.CancelScope(shield=True):
            await self._writer.execute_fetchall("PRAGMA wal_checkpoint(FULL)")


def refuse_other_version(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.OperationalError naming the columns that the file's tables lack."""
    there = {
        table: [row[1] for row in connection.execute(schema.table_info_sql(table))]
        for table in schema.ROW_TYPES
    }
    if names := schema.lacking(there):
        raise sqlite3.OperationalError(
            f"was written by another version of this program (it lacks {', '.join(names)}); "
            "finish it with that version, or begin a fresh workspace"
        )


def read_only_uri(path: Path) -> str:
    """For ``sqlite3.connect(..., uri=True)``: a path with ``?`` or ``%`` stays that path."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _probe(path: Path) -> None:
    """Open and close once, without a thread: aiosqlite leaves its thread behind when it fails."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA schema_version")
            refuse_other_version(connection)
    except sqlite3.Error as error:
        raise sqlite3.OperationalError(f"{path}: {error}") from error
