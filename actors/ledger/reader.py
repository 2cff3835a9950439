"""Reading a ``run.db`` from outside a run: synchronous, read-only, for commands and reports."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from actors.ledger import schema
from actors.ledger.sqlite import read_only_uri, refuse_other_version
from protocol.ledger import Select, Spent, Where
from protocol.rows import AnyRow

__all__ = ["Reader", "open_reader"]

T = TypeVar("T", bound=AnyRow)


class Reader:
    """A read-only view of one ``run.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, kind: type[T], *where: Where) -> list[T]:
        """All rows of a type that meet every condition, ordered by key."""
        statement, values = schema.select_sql(Select(table=kind.TABLE, where=where))
        found = self._connection.execute(statement, values)
        return [schema.read_row(kind, row) for row in found]

    def spent(self) -> Spent:
        """What all processes together have cost, as ``AskSpent`` says it."""
        calls, prompt_tokens, completion_tokens, usd = self._connection.execute(
            schema.SPENT_SQL
        ).fetchone()
        return Spent(
            calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=usd
        )


@contextmanager
def open_reader(path: Path, *, at_rest: bool = False) -> Iterator[Reader]:
    """Open with ``mode=ro``; a run may be writing meanwhile.

    at_rest: nobody writes and no log lies beside the file, so that it is read as immutable: not
    even the two files that SQLite makes beside a database in WAL mode appear.

    Raises sqlite3.OperationalError (with the path) if there is no such database, or another
    version of the program wrote it.
    """
    uri = read_only_uri(path) + ("&immutable=1" if at_rest else "")
    try:
        connection = sqlite3.connect(uri, uri=True)
    except sqlite3.OperationalError as error:
        raise sqlite3.OperationalError(f"{path}: {error}") from error
    with closing(connection):
        try:
            refuse_other_version(connection)
        except sqlite3.OperationalError as error:
            raise sqlite3.OperationalError(f"{path}: {error}") from error
        except sqlite3.DatabaseError as error:
            damage = f"{path}: {error}; restore it from a copy"
            raise sqlite3.OperationalError(damage) from error
        yield Reader(connection)
