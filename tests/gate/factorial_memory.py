"""``run.db`` in memory for one task: the ledger's own statements and rows, without a thread.

For worlds that run a training hundreds of times; what a file adds (a second connection, a death)
is tested on files.
"""

from __future__ import annotations

import sqlite3
from typing import TypeVar

from actors.ledger import schema
from protocol.base import Request
from protocol.ledger import Deleted, DeleteRun, Record, Recorded, Select, Selected, rows_of
from protocol.row import Row

__all__ = ["MemoryLedger"]

T = TypeVar("T", bound=Row)

_DDL = tuple(schema.ddl())


class MemoryLedger:
    """Answers what the ledger actor answers; every request is a transaction of its own."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in _DDL:
            self.connection.execute(statement)

    async def ask(self, request: Request[object]) -> object:
        """Write or read at once; nothing else of the ledger is needed here."""
        if isinstance(request, Select):
            return self.select(request)
        if isinstance(request, DeleteRun):
            statements = schema.delete_sql(request.run_key)
            return Deleted(rows=sum(self._execute(sql, values) for sql, values in statements))
        assert isinstance(request, Record)
        self.write(request)
        return Recorded(rows=len(request.rows))

    def write(self, request: Record) -> None:
        """The rows of a request, each replacing the one of its key."""
        for row in request.rows:
            self.connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))

    def select(self, request: Select) -> Selected:
        """Committed rows."""
        kind = schema.ROW_TYPES[request.table]
        found = self.connection.execute(*schema.select_sql(request))
        return Selected(rows=tuple(schema.read_row(kind, row) for row in found))

    def rows(self, kind: type[T]) -> tuple[T, ...]:
        """A whole table."""
        return rows_of(kind, self.select(Select(table=kind.TABLE)))

    def close(self) -> None:
        """Forget everything."""
        self.connection.close()

    def _execute(self, sql: str, values: tuple[schema.Scalar, ...]) -> int:
        return self.connection.execute(sql, values).rowcount
