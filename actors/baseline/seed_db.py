"""``baseline.db`` of a seed: what the seed's package answered, and why it was wrong.

Written once, when a seed is made; afterwards only ever opened read-only and immutable, so that
its bytes never change and no side file appears next to it (row P2-2). Pure SQLite; no actor.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

__all__ = [
    "Prediction",
    "SeedBaselineError",
    "SeedDiagnosis",
    "read_diagnoses",
    "read_predictions",
    "read_run_id",
    "write_seed_baseline",
]

R = TypeVar("R", bound=msgspec.Struct)

_SCHEMA = """
CREATE TABLE predictions (
    run_id TEXT NOT NULL,
    question_id TEXT PRIMARY KEY,
    video_id TEXT NOT NULL,
    task_type TEXT NOT NULL,
    letter TEXT,
    right INTEGER NOT NULL CHECK (right IN (0, 1)),
    confidence REAL NOT NULL
);
CREATE TABLE baseline_diagnosis (
    fingerprint TEXT PRIMARY KEY,
    question_id TEXT NOT NULL,
    error_type TEXT NOT NULL,
    cause TEXT,
    degraded INTEGER NOT NULL CHECK (degraded IN (0, 1)),
    finding TEXT NOT NULL
);
"""


class SeedBaselineError(Exception):
    """The file cannot serve as a baseline; the message names it and says why."""


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The seed's one answer to a question. letter None: no valid answer, which is wrong."""

    question_id: str
    video_id: str
    task_type: str
    letter: str | None
    right: bool
    confidence: float


class SeedDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's word on a wrong answer. fingerprint: of the question, SHA-256.

    cause: ``defect``, ``lapse`` or ``uncertain``; None if the judge failed.
    """

    fingerprint: str
    question_id: str
    error_type: str
    cause: str | None
    degraded: bool
    finding: str


def write_seed_baseline(
    path: Path,
    run_id: str,
    predictions: Sequence[Prediction],
    diagnoses: Sequence[SeedDiagnosis] = (),
) -> None:
    """Make the file, whole or not at all; rows in the order of their keys.

    Raises FileExistsError if it is there, ValueError for a question or fingerprint given twice
    or for no prediction at all.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists; a seed's baseline is never written over")
    if not predictions:
        raise ValueError(f"{path}: a baseline without predictions")
    _refuse_repeats("question", [row.question_id for row in predictions])
    _refuse_repeats("fingerprint", [row.fingerprint for row in diagnoses])
    aside = path.with_name(f".{path.name}.part")
    aside.unlink(missing_ok=True)
    with closing(sqlite3.connect(aside)) as db:
        db.executescript(_SCHEMA)
        db.executemany(
            "INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (run_id, p.question_id, p.video_id, p.task_type, p.letter, p.right, p.confidence)
                for p in sorted(predictions, key=lambda row: row.question_id)
            ],
        )
        db.executemany(
            "INSERT INTO baseline_diagnosis VALUES (?, ?, ?, ?, ?, ?)",
            [
                (d.fingerprint, d.question_id, d.error_type, d.cause, d.degraded, d.finding)
                for d in sorted(diagnoses, key=lambda row: row.fingerprint)
            ],
        )
        db.commit()
    aside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_run_id(path: Path) -> str:
    """The run that made the predictions. Raises SeedBaselineError unless it is one."""
    rows = _rows(path, "SELECT DISTINCT run_id FROM predictions ORDER BY run_id")
    if len(rows) != 1:
        raise SeedBaselineError(f"{path}: predictions of {len(rows)} runs, expected one")
    return str(rows[0][0])


def read_predictions(path: Path) -> tuple[Prediction, ...]:
    """All predictions, ordered by question id.

    Raises SeedBaselineError if the file is no baseline, or a correctness is missing.
    """
    return _read(path, Prediction, "predictions", "question_id")


def read_diagnoses(path: Path) -> tuple[SeedDiagnosis, ...]:
    """All diagnoses, ordered by fingerprint. Raises SeedBaselineError."""
    return _read(path, SeedDiagnosis, "baseline_diagnosis", "fingerprint")


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
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        yield db


def _refuse_repeats(what: str, keys: Sequence[str]) -> None:
    repeated = sorted(key for key, n in Counter(keys).items() if n > 1)
    if repeated:
        raise ValueError(f"{what} given twice: {', '.join(repeated[:10])}")
