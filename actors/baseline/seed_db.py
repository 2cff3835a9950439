"""``baseline.db`` of a seed: what the seed's package answered, and why it was wrong.

Made by the workspace room with the seed; here only ever opened read-only and immutable, so that
its bytes never change and no side file appears next to it (row P2-2). Pure SQLite; no actor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from protocol.seed import BaselineDiagnosis, BaselinePrediction

__all__ = [
    "SeedBaselineError",
    "read_diagnoses",
    "read_predictions",
    "read_run_id",
]

R = TypeVar("R", bound=msgspec.Struct)


class SeedBaselineError(Exception):
    """The file cannot serve as a baseline; the message names it and says why."""


def read_run_id(path: Path) -> str:
    """The run that made the predictions. Raises SeedBaselineError unless it is one."""
    rows = _rows(path, "SELECT DISTINCT run_id FROM predictions ORDER BY run_id")
    if len(rows) != 1:
        raise SeedBaselineError(f"{path}: predictions of {len(rows)} runs, expected one")
    return str(rows[0][0])


def read_predictions(path: Path) -> tuple[BaselinePrediction, ...]:
    """All predictions, ordered by question id.

    Raises SeedBaselineError if the file is no baseline, or a correctness is missing.
    """
    return _read(path, BaselinePrediction, "predictions", "question_id")


def read_diagnoses(path: Path) -> tuple[BaselineDiagnosis, ...]:
    """All diagnoses, ordered by fingerprint. Raises SeedBaselineError."""
    return _read(path, BaselineDiagnosis, "baseline_diagnosis", "fingerprint")


def _read(path: Path, kind: type[R], table: str, key: str) -> tuple[R, ...]:
    """The table as structs whose fields are its columns."""
    columns = [field.name for field in msgspec.structs.fields(kind)]
    rows = _rows(path, f"SELECT {', '.join(columns)} FROM {table} ORDER BY {key}")
    try:
        # SQLite has no booleans: 0 and 1 become one, anything else is refused.
        return msgspec.convert(
            [dict(zip(columns, row, strict=True)) for row in rows],
            tuple[kind, ...],  # type: ignore[valid-type]  # the caller's own struct
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise SeedBaselineError(f"{path}: table {table}: {error}") from error


def _rows(path: Path, query: str) -> list[tuple[str | float | None, ...]]:
    with _opened(path) as db:
        try:
            return db.execute(query).fetchall()
        except sqlite3.DatabaseError as error:
            raise SeedBaselineError(f"{path}: not a seed's baseline: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Read-only and immutable: no lock, no journal, no byte changed.

    Raises FileNotFoundError, or SeedBaselineError where a write-ahead log lies beside the file:
    read immutably, what it holds would be silently ignored.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no baseline at {path}")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise SeedBaselineError(f"{path}: an unfinished write lies beside it ({log.name})")
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        yield db
