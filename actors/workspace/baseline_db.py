"""``baseline.db`` of a seed: made once, then only ever opened read-only (row P2-2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from actors.workspace.atomic import OS_FILES, FileSystem, write_atomic
from actors.workspace.errors import SeedError
from protocol.seed import BaselineDiagnosis, BaselinePrediction

__all__ = [
    "BaselineHeader",
    "connect_readonly",
    "make_baseline_db",
    "read_header",
    "refuse_unsettled",
]

_REMEDY = "extract the baseline anew from the run that made it"
_SETTLE = (
    "close the program that writes it; if that died, copy both files elsewhere and settle the "
    "copy: sqlite3 COPY 'PRAGMA journal_mode=DELETE'"
)
_SCHEMA = """
CREATE TABLE predictions (
    run_id TEXT NOT NULL, question_id TEXT PRIMARY KEY NOT NULL, video_id TEXT NOT NULL,
    task_type TEXT NOT NULL, letter TEXT,
    right INTEGER NOT NULL CHECK (right IN (0, 1)), confidence REAL NOT NULL);
CREATE TABLE baseline_diagnosis (
    fingerprint TEXT PRIMARY KEY NOT NULL, question_id TEXT NOT NULL, error_type TEXT NOT NULL,
    cause TEXT, degraded INTEGER NOT NULL CHECK (degraded IN (0, 1)), finding TEXT NOT NULL);
"""


class BaselineHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a seed is checked against.

    rows: more than the ids if questions repeat. unusable: ids whose ``right`` says nothing.
    videos: the video of each question.
    """

    run_ids: tuple[str, ...]
    question_ids: frozenset[str]
    videos: Mapping[str, str]
    rows: int
    unusable: tuple[str, ...]


def make_baseline_db(
    path: Path,
    run_id: str,
    predictions: Iterable[BaselinePrediction],
    diagnoses: Iterable[BaselineDiagnosis] = (),
    *,
    dedupe_per_question: bool = False,
    files: FileSystem = OS_FILES,
) -> int:
    """Write a baseline and return its number of predictions (row seed).

    dedupe_per_question: keep the first row of a question; else a repeated one is an error.
    Raises SeedError naming the repeated questions.
    """
    kept: dict[str, BaselinePrediction] = {}
    repeated: set[str] = set()
    for prediction in predictions:
        if prediction.question_id in kept:
            repeated.add(prediction.question_id)
        else:
            kept[prediction.question_id] = prediction
    if repeated and not dedupe_per_question:
        what = f"the run answered these questions more than once: {', '.join(sorted(repeated))}"
        raise SeedError(path, what, "keep the first row of each with --dedupe")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.executescript(_SCHEMA)
        memory.executemany(
            "INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (run_id, p.question_id, p.video_id, p.task_type, p.letter, p.right, p.confidence)
                for p in kept.values()
            ],
        )
        memory.executemany(
            "INSERT INTO baseline_diagnosis VALUES (?, ?, ?, ?, ?, ?)",
            [
                (d.fingerprint, d.question_id, d.error_type, d.cause, d.degraded, d.finding)
                for d in diagnoses
            ],
        )
        data = memory.serialize()
    write_atomic(path, data, files=files)
    return len(kept)


def connect_readonly(path: Path) -> sqlite3.Connection:
    """The only way to a baseline: whoever writes through it gets an OperationalError (P2-2).

    Immutable, so that not even a lock or a file beside it is made, whatever journal mode another
    program left it in. Only for a file at rest: see ``refuse_unsettled``.
    """
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def refuse_unsettled(path: Path) -> None:
    """Raise SeedError if the file is missing, or if a log beside it holds rows that it lacks.

    Read as it is, or copied, such a file would be an older state than the program that writes
    it believes, or half of one.
    """
    if not path.is_file():
        raise SeedError(path, "is missing", "check the path")
    real = path.resolve()
    for suffix in ("-wal", "-journal"):
        log = real.with_name(real.name + suffix)
        if log.exists() and log.stat().st_size:
            what = f"{log.name} beside it holds rows that are not in it yet"
            raise SeedError(path, what, _SETTLE)


def read_header(path: Path) -> BaselineHeader:
    """Run ids and question ids, through a read-only connection (row P2-2).

    Raises SeedError if the file is no baseline, or has a write-ahead log beside it whose
    content a copy would lose.
    """
    refuse_unsettled(path)
    try:
        with closing(connect_readonly(path)) as reader:
            rows: list[tuple[object, object, object, object]] = reader.execute(
                "SELECT run_id, question_id, right, video_id FROM predictions"
            ).fetchall()
    except sqlite3.Error as error:
        raise SeedError(path, f"cannot be read as a baseline: {error}", _REMEDY) from error
    return BaselineHeader(
        run_ids=tuple(sorted({str(row[0]) for row in rows})),
        question_ids=frozenset(str(row[1]) for row in rows),
        videos={str(row[1]): str(row[3]) for row in rows},
        rows=len(rows),
        unusable=tuple(sorted(str(row[1]) for row in rows if row[2] not in (0, 1))),
    )
