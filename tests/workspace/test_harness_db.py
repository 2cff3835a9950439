"""Reading the older program's database: whole, in order, and without a trace (P2-2)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import SeedError
from actors.workspace.harness_db import (
    BadTrajectory,
    HarnessRow,
    kind_of,
    read_harness_rows,
    run_counts,
    steps_of,
)
from tests.dataset.material import question
from tests.support.harness_db import RUN, Row, made_up_rows, steps_json, write_harness
from tests.workspace.material import RUN as BASE_RUN
from tests.workspace.material import prediction

ASKED = [question(video) for video in (1, 2, 3)]


def row(steps: str | None) -> HarnessRow:
    return HarnessRow(
        row=1,
        run_id=RUN,
        video_id="001",
        question_id="001-1",
        task_type="Counting",
        prediction="A",
        answer="B",
        stop_reason="finished",
        steps_json=steps,
    )


def test_p2_2_reading_leaves_no_trace(tmp_path: Path) -> None:
    """P2-2: a database in WAL mode keeps bytes and time, and nothing appears beside it."""
    path = write_harness(tmp_path / "harness.db", made_up_rows(ASKED))
    path.chmod(0o444)
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    assert kind_of(path) == "harness"
    assert run_counts(path, "predictions", "run_id") == {RUN: 3}
    rows = read_harness_rows(path, RUN)
    assert [entry.question_id for entry in rows] == ["001-1", "002-1", "003-1"]
    assert [entry.row for entry in rows] == [1, 2, 3]
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == stamp
    assert [entry.name for entry in tmp_path.iterdir()] == ["harness.db"]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_p2_2_a_log_with_content_is_refused(tmp_path: Path, suffix: str) -> None:
    """P2-2: what the file lacks would silently not be read; an empty log is nothing."""
    path = write_harness(tmp_path / "harness.db", made_up_rows(ASKED))
    log = path.with_name(path.name + suffix)
    log.write_bytes(b"")
    assert len(read_harness_rows(path, RUN)) == 3
    log.write_bytes(b"rows")
    with pytest.raises(SeedError, match=f"harness.db{suffix} beside it"):
        read_harness_rows(path, RUN)


def test_a_database_that_is_being_written_is_refused(tmp_path: Path) -> None:
    """Rows that are committed but not in the file yet: the writer must be closed first."""
    path = write_harness(tmp_path / "harness.db", made_up_rows(ASKED))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO predictions (run_id, question_id) VALUES ('x', 'y')")
        writer.commit()
        with pytest.raises(SeedError, match="close the program that writes it"):
            kind_of(path)
    assert kind_of(path) == "harness"


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    """By their tables; anything else is refused with what was wanted."""
    make_baseline_db(tmp_path / "baseline.db", BASE_RUN, [prediction("001-1")])
    assert kind_of(tmp_path / "baseline.db") == "baseline"
    with closing(sqlite3.connect(tmp_path / "run.db")) as db:
        db.execute("CREATE TABLE outcomes (run_key)")
    assert kind_of(tmp_path / "run.db") == "run"
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE predictions (run_id, question_id)")
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at " * 9)
    for name, said in (("other.db", "holds no answers"), ("text.db", "not a database")):
        with pytest.raises(SeedError, match=said) as caught:
            kind_of(tmp_path / name)
        assert "harness.db" in caught.value.remedy
    with pytest.raises(SeedError, match="is missing"):
        kind_of(tmp_path / "none.db")


def test_rows_without_the_newer_columns_are_read(tmp_path: Path) -> None:
    """stop_reason and steps_json may be lacking; bytes that are no UTF-8 are one row's trouble."""
    path = tmp_path / "harness.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE predictions "
            "(run_id, video_id, question_id, task_type, prediction TEXT, answer)"
        )
        db.execute(
            "INSERT INTO predictions VALUES ('r', '001', '001-1', 'Counting', "
            "CAST(X'42ff' AS TEXT), 'B')"
        )
        db.commit()
    (found,) = read_harness_rows(path, "r")
    assert (found.prediction, found.stop_reason, found.steps_json) == ("B\ufffd", None, None)


def test_P0_2_steps_become_ours() -> None:
    """P0-2: tools, arguments, observations, and the nodes that can be known."""
    view, search, submit = steps_of(row(steps_json(ASKED[0], "C")))
    assert (view.index, view.tool, json.loads(view.arguments)) == (
        1,
        "view_node",
        {"node_id": "001_L1_000"},
    )
    assert view.node_ids == ("001_L1_000",)
    assert search.node_ids == ("001_L2_003", "001_L2_007")
    assert search.observation.startswith("1. 001_L2_003")
    assert (submit.tool, json.loads(submit.arguments)) == ("submit_answer", {"answer": "C"})


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (None, "empty"),
        ("", "empty"),
        ("[]", "no steps"),
        ('{"a": 1}', "no steps"),
        ("[1]", "step 1 is int"),
        ("[{", "no JSON"),
    ],
)
def test_P0_2_no_steps_are_an_error(steps: str | None, said: str) -> None:
    """P0-2: an empty trajectory is never an input."""
    with pytest.raises(BadTrajectory, match=said):
        steps_of(row(steps))


def test_odd_steps_are_read_as_far_as_they_go() -> None:
    """A call that could not be read is shown as it was; half a surrogate pair can be stored."""
    odd = json.dumps(
        [
            {"thought": None, "tool_call": "not a call", "tool_output": "error"},
            {"tool_call": {"tool": "observe_frame", "args": {"node_ids": ["a_L3_001", 7]}}},
            {"thought": "\ud800", "tool_call": {"tool": "view_node", "args": "a"}},
        ]
    )
    first, second, third = steps_of(row(odd))
    assert (first.tool, first.raw, first.observation) == (None, "not a call", "error")
    assert second.node_ids == ("a_L3_001",)
    assert (third.thought, third.arguments) == ("?", "a")


def test_an_unknown_run_has_no_rows(tmp_path: Path) -> None:
    """Whoever asked for it says which there are."""
    path = write_harness(tmp_path / "h.db", [Row(ASKED[0], "A", run_id="other")])
    assert read_harness_rows(path, RUN) == ()
    assert run_counts(path, "predictions", "run_id") == {"other": 1}
