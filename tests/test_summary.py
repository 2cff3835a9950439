"""The tables say what the rows say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from actors.ledger import schema
from actors.ledger.reader import open_reader
from actors.summary import (
    Truth,
    accuracy_table,
    calls_table,
    edits_table,
    epochs_table,
    render,
    right_by_question,
    truth_table,
)
from protocol.dataset import Question
from protocol.ledger import AnyRow, AttemptRow, DecisionRow, EpochRow, EvaluationRow, StepRow
from tests.ledger.rows import epoch, outcome
from tests.protocol.samples import sample


def _stored(path: Path, *rows: AnyRow) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for row in rows:
            connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    return path


def _row(row_type: type[AnyRow], /, **changes: object) -> AnyRow:
    made = msgspec.structs.replace(sample(row_type), **changes)
    assert isinstance(made, row_type)
    return made


def _question(number: int, task_type: str) -> Question:
    return Question(
        question_id=f"q{number}",
        video_id=f"v{number}",
        task_type=task_type,
        question="?",
        options=("a", "b"),
        answer="A",
    )


def test_accuracy_keeps_missing_in_the_denominator() -> None:
    """A question without a result counts as planned, and is no pair."""
    questions = [_question(number, "Counting Problem") for number in range(4)]
    before = {"q0": True, "q1": False, "q2": False}
    after = {"q0": True, "q1": True, "q2": True, "q3": True}
    text = render([accuracy_table(questions, before, after)])
    assert "1/4" in text
    assert "4/4" in text
    assert "2 won, 0 lost of 3 pairs" in text
    assert "p = 0.25" in text


def test_epochs_and_candidates(tmp_path: Path) -> None:
    """The seed's pass, then the epochs; steps by class and in all."""
    val = {"pool": "val", "planned": 50, "missing": 0}
    path = _stored(
        tmp_path / "run.db",
        _row(EvaluationRow, run_key="e0/val/seed", epoch=0, kind="seed", right=20, **val),
        _row(EvaluationRow, run_key="e1/val/final", epoch=1, kind="final", right=30, **val),
        _row(EvaluationRow, run_key="e1/val/fast", epoch=1, kind="fast", right=49, **val),
        epoch(1),
        *(
            _row(StepRow, run_key=f"e1/c/s{step}", step=step, task_type="C", result=result)
            for step, result in enumerate(["accept", "reject", "no_edits"], start=1)
        ),
    )
    with open_reader(path) as reader:
        assert reader.rows(EpochRow) == [epoch(1)]
        epochs = render([epochs_table(reader)])
        candidates = render([edits_table(reader)])
    assert "20/50" in epochs
    assert "30/50" in epochs
    assert "49/50" not in epochs
    assert candidates.strip().splitlines()[-1].split() == ["all", "3", "2", "1", "1", "0", "0"]


def test_cost_tells_answers_from_hits_and_failures(tmp_path: Path) -> None:
    """Every attempt is counted once, by what became of it."""
    tries = ["ok", "ok", "cached", "timeout"]
    path = _stored(
        tmp_path / "run.db",
        *(
            _row(AttemptRow, call=str(number), outcome=kind, prompt_tokens=10, completion_tokens=1)
            for number, kind in enumerate(tries)
        ),
        outcome("k", "q1", "missing", missing_kind="timeout"),
        outcome("k", "q2"),
    )
    with open_reader(path) as reader:
        text = render([calls_table(reader, restarts=3, seconds=1.5)])
        assert right_by_question(reader, "k") == {"q2": True}
    lines = [line for line in text.splitlines() if line.strip()]
    cells = {line.rsplit("  ", 1)[0].strip(): line.split()[-1] for line in lines}
    assert cells["model calls answered"] == "2"
    assert cells["answered from the cache"] == "1"
    assert "timeout 1" in text
    assert cells["actor restarts"] == "3"


def test_truth_stands_beside_the_verdict() -> None:
    """A useless edit that was accepted is shown as such."""
    row = _row(DecisionRow, run_key="e1/c/s1", verdict="accept")
    assert isinstance(row, DecisionRow)
    text = render([truth_table([Truth(row, 0.0, "useless"), Truth(row, 0.3, "helpful")])])
    accepted = next(line for line in text.splitlines() if line.startswith("accept"))
    assert accepted.split() == ["accept", "1", "1", "0"]
    assert "+30.0%" in text
