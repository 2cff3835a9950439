"""The few things that can be asked of ``run.db``, whose tables are ``protocol.rows``."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from protocol.base import Message, Request
from protocol.row import Row
from protocol.rows import AnyRow

__all__ = [
    "AskSpent",
    "DeleteRun",
    "Deleted",
    "Flush",
    "Flushed",
    "Record",
    "Recorded",
    "Select",
    "Selected",
    "Spent",
    "Where",
    "rows_of",
]

T = TypeVar("T", bound=Row)


class Recorded(Message, frozen=True, kw_only=True, tag=True):
    """The rows are committed."""

    rows: int


class Record(Request[Recorded], frozen=True, kw_only=True, tag=True):
    """Write rows of any tables in one transaction; answered after the commit.

    instead_of: (run_key, question_id) whose rows go first: a question answered again in the
    same pass must not keep steps of the former try.
    """

    IDEMPOTENT: ClassVar[bool] = True

    rows: tuple[AnyRow, ...]
    instead_of: tuple[str, str] | None = None


class Deleted(Message, frozen=True, kw_only=True, tag=True):
    """How many rows went."""

    rows: int


class DeleteRun(Request[Deleted], frozen=True, kw_only=True, tag=True):
    """Delete the rows whose ``run_key`` is this one or lies below it, in every table (P2-3)."""

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str


class Where(Message, frozen=True, kw_only=True, tag=True):
    """``column = value``; a value that ends in ``/*`` matches the path and all below it."""

    column: str
    value: str | int | float | None


class Selected(Message, frozen=True, kw_only=True, tag=True):
    """Rows of one table, ordered by its key."""

    rows: tuple[AnyRow, ...]


class Select(Request[Selected], frozen=True, kw_only=True, tag=True):
    """All committed rows of a table that meet every condition."""

    IDEMPOTENT: ClassVar[bool] = True

    table: str
    where: tuple[Where, ...] = ()


class Spent(Message, frozen=True, kw_only=True, tag=True):
    """What the whole run has cost so far. calls: tries at endpoints, failed ones too.

    usd: of the tries whose price is known.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float


class AskSpent(Request[Spent], frozen=True, kw_only=True, tag=True):
    """Add up the committed attempts of every process that worked on this run."""

    IDEMPOTENT: ClassVar[bool] = True


class Flushed(Message, frozen=True, kw_only=True, tag=True):
    """Everything told before is committed and synced to disk."""


class Flush(Request[Flushed], frozen=True, kw_only=True, tag=True):
    """Commit, and bring the file to disk: the first half of an epoch boundary."""

    IDEMPOTENT: ClassVar[bool] = True


def rows_of(kind: type[T], selected: Selected) -> tuple[T, ...]:
    """The rows as their type. Raises TypeError if another table answered."""
    rows = []
    for row in selected.rows:
        if not isinstance(row, kind):
            raise TypeError(f"expected {kind.__name__}, got {type(row).__name__}")
        rows.append(row)
    return tuple(rows)
