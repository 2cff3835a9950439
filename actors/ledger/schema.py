"""Tables derived from the row types of ``protocol.rows``: pure functions.

The row type is the only place that names a column; this file never adds one.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, get_args, get_type_hints

import msgspec

from protocol.ledger import Select
from protocol.rows import AnyRow

__all__ = [
    "ROW_TYPES",
    "SPENT_SQL",
    "Scalar",
    "UnknownTable",
    "columns",
    "ddl",
    "delete_sql",
    "forget_sql",
    "lacking",
    "parameters",
    "read_row",
    "select_sql",
    "table_info_sql",
    "upsert_sql",
]

T = TypeVar("T", bound=AnyRow)
Scalar = str | int | float | None
ROW_TYPES: dict[str, type[AnyRow]] = {kind.TABLE: kind for kind in get_args(AnyRow)}
_AFFINITY = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER"}


class UnknownTable(KeyError):
    """A query names a table or a column that no row type has."""


def columns(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The column names, in field order."""
    return tuple(kind.__struct_fields__)


def _column(name: str, hint: object) -> str:
    """One column definition. Raises TypeError for a field that is not a scalar."""
    options = (
        set(get_args(hint))
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        else {hint}
    )
    nullable = type(None) in options
    (scalar,) = options - {type(None)}
    if scalar not in _AFFINITY:
        raise TypeError(f"column {name}: {hint!r} is not a scalar")
    return f'"{name}" {_AFFINITY[scalar]}{"" if nullable else " NOT NULL"}'


SPENT_SQL = """
SELECT count(*) AS calls,
       coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
       coalesce(sum(completion_tokens), 0) AS completion_tokens,
       coalesce(sum(usd), 0.0) AS usd
FROM attempts WHERE outcome <> 'cached' AND role <> 'embed'
"""


def ddl() -> list[str]:
    """The statements that make every table; idempotent."""
    statements = []
    for table, kind in ROW_TYPES.items():
        hints = get_type_hints(kind)
        parts = [_column(name, hints[name]) for name in columns(kind)]
        key = ", ".join(f'"{name}"' for name in kind.KEY)
        statements.append(
            f'CREATE TABLE IF NOT EXISTS "{table}" ({", ".join(parts)}, PRIMARY KEY ({key}))'
        )
    return statements


def table_info_sql(table: str) -> str:
    """A row per column of the table, its name second; none if there is no such table."""
    return f'PRAGMA table_info("{table}")'


def lacking(there: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The columns (``table.column``) that a file's tables do not have; absent tables are no matter.

    SQLite reads a quoted name that is no column as a text of that name: a file of another version
    would answer with nonsense.
    """
    return tuple(
        f"{table}.{name}"
        for table, kind in ROW_TYPES.items()
        if (known := set(there.get(table, ())))
        for name in columns(kind)
        if name not in known
    )


def upsert_sql(kind: type[AnyRow]) -> str:
    """Insert, or replace the row with the same key."""
    names = ", ".join(f'"{name}"' for name in columns(kind))
    marks = ", ".join("?" for _ in columns(kind))
    return f'INSERT OR REPLACE INTO "{kind.TABLE}" ({names}) VALUES ({marks})'


def parameters(row: AnyRow) -> tuple[Scalar, ...]:
    """The row's values in column order.

    Raises UnicodeEncodeError for text that SQLite cannot hold (lone surrogates): callers
    normalise before (row P0-4), so this is a bug and is told at once, before a transaction.
    """
    values = msgspec.structs.astuple(row)
    for value in values:
        if isinstance(value, str):
            value.encode("utf-8")
    return values


def read_row(kind: type[T], values: Sequence[Scalar]) -> T:
    """A stored row as its type (SQLite has no booleans: 0 and 1 are read back as such)."""
    named = dict(zip(columns(kind), values, strict=True))
    return msgspec.convert(named, kind, strict=False)


def _under(column: str, path: str) -> tuple[str, tuple[Scalar, ...]]:
    """A path and everything below it; ``0`` is the character after ``/``."""
    clause = f'("{column}" = ? OR ("{column}" >= ? AND "{column}" < ?))'
    return clause, (path, f"{path}/", f"{path}0")


def select_sql(query: Select) -> tuple[str, tuple[Scalar, ...]]:
    """The statement and its parameters. Raises UnknownTable."""
    kind = ROW_TYPES.get(query.table)
    if kind is None:
        raise UnknownTable(f"no table {query.table!r}; there are {sorted(ROW_TYPES)}")
    clauses: list[str] = []
    values: list[Scalar] = []
    for where in query.where:
        if where.column not in columns(kind):
            raise UnknownTable(f"table {query.table!r} has no column {where.column!r}")
        if isinstance(where.value, str) and where.value.endswith("/*"):
            clause, bound = _under(where.column, where.value[:-2])
            clauses.append(clause)
            values.extend(bound)
        else:
            clauses.append(f'"{where.column}" IS ?')
            values.append(where.value)
    condition = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    names = ", ".join(f'"{name}"' for name in columns(kind))
    order = ", ".join(f'"{name}"' for name in kind.KEY)
    return f'SELECT {names} FROM "{query.table}"{condition} ORDER BY {order}', tuple(values)


def forget_sql(run_key: str, question_id: str) -> Iterable[tuple[str, tuple[Scalar, ...]]]:
    """Statements that delete one question of one pass from every table that has both."""
    for table, kind in ROW_TYPES.items():
        if {"run_key", "question_id"} <= set(columns(kind)):
            statement = f'DELETE FROM "{table}" WHERE "run_key" = ? AND "question_id" = ?'
            yield statement, (run_key, question_id)


def delete_sql(run_key: str) -> Iterable[tuple[str, tuple[Scalar, ...]]]:
    """Statements that delete a pass and all below it from every table that has passes."""
    for table, kind in ROW_TYPES.items():
        if "run_key" in columns(kind):
            clause, values = _under("run_key", run_key)
            yield f'DELETE FROM "{table}" WHERE {clause}', values
