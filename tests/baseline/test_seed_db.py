"""The seed's file: written once, read without a trace."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.baseline.seed_db import (
    SeedBaselineError,
    _opened,
    read_diagnoses,
    read_predictions,
    read_run_id,
)
from actors.workspace.baseline_db import make_baseline_db
from protocol.seed import BaselineDiagnosis, BaselinePrediction

PREDICTIONS = tuple(
    BaselinePrediction(
        question_id=f"q{i}",
        video_id=f"-v{i}",
        task_type="OCR Problems",
        letter="A" if i else None,
        right=i > 1,
        confidence=0.5,
    )
    for i in range(4)
)
DIAGNOSES = (
    BaselineDiagnosis(
        fingerprint="f0",
        question_id="q0",
        error_type="search_failure",
        cause=None,
        degraded=True,
        finding="nothing found",
    ),
)


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    """A small baseline, in a folder whose name needs quoting in a URI."""
    folder = tmp_path / "a seed?#"
    folder.mkdir()
    path = folder / "baseline.db"
    make_baseline_db(path, "base-1", PREDICTIONS[::-1], DIAGNOSES)
    return path


def test_round_trip(seed: Path) -> None:
    """Rows come back typed and in the order of their keys."""
    assert read_run_id(seed) == "base-1"
    assert read_predictions(seed) == PREDICTIONS
    assert read_diagnoses(seed) == DIAGNOSES


def test_P2_2_reading_changes_no_byte(seed: Path) -> None:
    """P2-2: same bytes, same modification time, no side file."""
    before = (hashlib.sha256(seed.read_bytes()).digest(), seed.stat().st_mtime_ns)
    read_run_id(seed)
    read_predictions(seed)
    read_diagnoses(seed)
    assert [entry.name for entry in seed.parent.iterdir()] == ["baseline.db"]
    assert (hashlib.sha256(seed.read_bytes()).digest(), seed.stat().st_mtime_ns) == before


def test_P2_2_a_baseline_in_wal_mode_is_left_alone(seed: Path) -> None:
    """P2-2: an ordinary connection would make -wal and -shm files beside it."""
    with closing(sqlite3.connect(seed)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = seed.read_bytes()
    assert read_predictions(seed) == PREDICTIONS
    assert seed.read_bytes() == before
    assert [entry.name for entry in seed.parent.iterdir()] == ["baseline.db"]


def test_P2_2_the_connection_cannot_write(seed: Path) -> None:
    """P2-2: SQLite itself refuses, and takes no lock that another reader would see."""
    with _opened(seed) as db:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.execute("DELETE FROM predictions")
        db.execute("SELECT count(*) FROM predictions").fetchall()
        assert [entry.name for entry in seed.parent.iterdir()] == ["baseline.db"]


def test_an_unfinished_write_is_an_error(seed: Path) -> None:
    """Read immutably, the log's rows would be ignored without a word."""
    seed.with_name("baseline.db-wal").write_bytes(b"x")
    with pytest.raises(SeedBaselineError, match="unfinished write"):
        read_predictions(seed)


def test_a_question_without_correctness_is_an_error(tmp_path: Path) -> None:
    """fail-loud: NULL is neither right nor wrong."""
    path = tmp_path / "baseline.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE predictions (run_id, question_id, video_id, task_type, letter, right, "
            "confidence)"
        )
        db.execute("INSERT INTO predictions VALUES ('r', 'q', 'v', 't', 'A', NULL, 0.5)")
        db.commit()
    with pytest.raises(SeedBaselineError, match="right"):
        read_predictions(path)


def test_predictions_of_two_runs_are_an_error(tmp_path: Path) -> None:
    """A baseline is one run's."""
    path = tmp_path / "baseline.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE predictions (run_id, question_id)")
        db.execute("INSERT INTO predictions VALUES ('r', 'q1'), ('s', 'q2')")
        db.commit()
    with pytest.raises(SeedBaselineError, match="2 runs"):
        read_run_id(path)
