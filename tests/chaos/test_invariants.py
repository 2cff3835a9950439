"""The checker finds what it is there for: a whole run, and the same with one thing wrong."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.clock import lost_answers
from tests.chaos.conftest import Whole
from tests.chaos.invariants import broken, main

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

STEP = "e1/counting-problem/s1"


def test_an_undisturbed_run_holds(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is broken, and every step of the agent has its answer in the accounts."""
    assert main([str(whole.workspace)]) == 0
    assert capsys.readouterr().out == f"{whole.workspace}: 0 broken\n"
    assert lost_answers(whole.workspace) == 0


@pytest.fixture
def copied(whole: Whole, tmp_path: Path) -> Path:
    """A workspace to be tampered with."""
    return Path(shutil.copytree(whole.workspace, tmp_path / "copied"))


_ONE = "(SELECT min(question_id) FROM outcomes WHERE run_key = '{key}')"
_FIRST = "run_key = '{key}' AND question_id = " + _ONE


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DELETE FROM steps WHERE run_key = '{step}'", "rows of something that is not whole"),
        ("UPDATE steps SET right = right + 1 WHERE run_key = '{step}'", "right is"),
        ("UPDATE steps SET skill_after = skill_before", "accept left"),
        ("UPDATE steps SET step = 2 WHERE run_key = '{step}'", "its row is of 1, Counting Problem"),
        ("DELETE FROM traces WHERE step = 1", "n_steps"),
        ("DELETE FROM outcomes WHERE " + _FIRST.format(key=STEP + "/rollout"), "have no outcome"),
        ("DELETE FROM diagnoses", "diagnosed []"),
        ("DELETE FROM decisions WHERE run_key = '{step}'", "result accept, decision None"),
        ("UPDATE decisions SET wins = wins + 1, ties = ties - 1", "W, L, T"),
        (
            "UPDATE outcomes SET outcome = iif(outcome = 'right', 'wrong', 'right') WHERE "
            + _FIRST.format(key=STEP + "/gate/b0"),
            "looks",
        ),
        ("UPDATE baseline SET right = 1 - right WHERE task_type = 'Counting Problem'", "looks"),
        ("UPDATE baseline SET draw = 1", "draws [1]"),
        ("UPDATE baseline SET source = 'rollout'", "outcome None"),
        ("DELETE FROM edits WHERE position = 0", "positions"),
        ("DELETE FROM documents", "is nowhere"),
        ("UPDATE evaluations SET right = right - 1 WHERE kind = 'final'", "right is"),
        ("UPDATE evaluations SET soft = soft + 1e-9", "soft is"),
        ("DELETE FROM evaluations WHERE kind = 'final'", "0 rows final on val in epoch 1"),
        (
            "INSERT INTO evaluations SELECT 'e1/val/final2', epoch, pool, kind, skills_version,"
            " prompts_version, planned, right, missing, soft, mixed, outcomes_key"
            " FROM evaluations WHERE kind = 'final'",
            "2 rows final on val in epoch 1",
        ),
        ("UPDATE evaluations SET skills_version = 'v1' WHERE kind = 'fast'", "another text"),
        ("UPDATE slow_updates SET losses = losses + 1", "losses is"),
        ("DELETE FROM rejected", "0 rows in the rejected ledger"),
        ("UPDATE epochs SET epoch = 2", "epochs: [2]"),
        ("UPDATE epochs SET accepted = accepted + 1", "accepted is"),
        ("UPDATE epochs SET skills_version = 'v1'", "manifest.json: current"),
        ("DELETE FROM attempts WHERE role = 'search'", "0 answers to the agent"),
        ("UPDATE attempts SET seconds = -1", "below zero"),
        ("UPDATE attempts SET attempt = 2 WHERE outcome = 'ok'", "none before it"),
        ("UPDATE attempts SET prompt_tokens = prompt_tokens + 1", "tokens that nobody billed"),
        ("INSERT INTO rejected SELECT 'x/y', task_type, candidate_hash, edits, notes, verdict,"
         " e_value, wins, losses, document FROM rejected LIMIT 1", "is the name of nothing"),
    ],
)  # fmt: skip  # a table
def test_a_wrong_row_is_found(copied: Path, statement: str, says: str) -> None:
    """Lost, doubled or changed: by whichever number no longer agrees."""
    with closing(sqlite3.connect(copied / "run.db")) as connection, connection:
        assert connection.execute(statement.format(step=STEP)).rowcount > 0
    found = broken(copied)
    assert any(says in line for line in found), found


def test_a_row_that_is_there_twice_is_found(copied: Path) -> None:
    """A table that lost its key keeps what our own code would have replaced."""
    with closing(sqlite3.connect(copied / "run.db")) as connection, connection:
        connection.execute("CREATE TABLE other AS SELECT * FROM steps")
        connection.execute("DROP TABLE steps")
        connection.execute("ALTER TABLE other RENAME TO steps")
        connection.execute("INSERT INTO steps SELECT * FROM steps LIMIT 1")
    assert any("is there twice" in line for line in broken(copied))


def test_files_that_disagree_are_found(copied: Path) -> None:
    """What a writer left behind, and a manifest of another epoch."""
    (copied / "skills" / ".v9.1.0.tmp").mkdir()
    manifest = copied / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"epoch": 1', '"epoch": 0'))
    found = broken(copied)
    assert any("left behind" in line for line in found)
    assert any("manifest.json is at epoch 0" in line for line in found)
