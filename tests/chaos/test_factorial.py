"""Deaths under the factorial gate, and that the checker finds what is wrong with its rows.

The whole of it: ``python -m tests.chaos.sweep --design factorial``.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.comparing import FACTORIAL, differing
from tests.chaos.conftest import Whole
from tests.chaos.invariants import broken
from tests.chaos.kept import changed, written
from tests.chaos.sweep import KILLED, Kill, go_on, run_killed
from tests.system.runs import result_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

PAIR = "task_type = 'Counting Problem' AND pair = 12"
ARM = "run_key LIKE 'factorial/counting-problem/%/12/a'"
EDIT = "edit_id = 'e2/counting-problem/1'"  # adopted
COMMON = "edit_id = 'e1/_prompts/1'"
PROPOSED = "run_key = 'e1/_prompts/s1'"
OTHER = "edit_id = 'e1/counting-problem/1'"
SENTINEL = "edit_id = 'counting-problem/sentinel'"
DESIGN = "(SELECT min(run_key) FROM outcomes WHERE run_key LIKE 'e1/counting-problem/s1/rollout')"


@pytest.mark.parametrize(
    "kill",
    [
        Kill("commit run.db factorial_edits factorial_schedule", 1, "after"),
        # The second of these is the prompts' step, or the epoch's next: all wait for each other.
        Kill("commit run.db documents factorial_edits steps", 2, "after"),
        # How many there are depends on what a commit happens to hold: 12 to 15 of them.
        Kill("commit run.db pairs", 6, "before"),
        Kill("commit run.db factorial_edits factorial_run", 1, "after"),
    ],
    ids=["schedule", "prompts", "pairs", "decision"],
)
def test_a_death_is_made_good(tmp_path: Path, factorial: Whole, kill: Kill) -> None:
    """No coin is drawn again, no answer asked again, and the end is the undisturbed one."""
    workspace = tmp_path / "run"
    assert run_killed(kill, workspace, FACTORIAL) == KILLED
    before = written(workspace)
    assert before.schedules
    assert go_on(workspace, FACTORIAL) == ""
    assert changed(workspace, before) == []
    assert differing(result_of(workspace), factorial.result) == []
    assert broken(workspace) == []


def test_an_undisturbed_run_holds(factorial: Whole) -> None:
    """Under the factorial gate, too."""
    assert broken(factorial.workspace) == []
    assert changed(factorial.workspace, written(factorial.workspace)) == []


@pytest.fixture
def copied(factorial: Whole, tmp_path: Path) -> Path:
    """A workspace to be tampered with."""
    return Path(shutil.copytree(factorial.workspace, tmp_path / "copied"))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DELETE FROM factorial_schedule", "without a schedule"),
        ("DELETE FROM factorial_schedule WHERE task_type LIKE 'C%'", "without a schedule"),
        ("UPDATE factorial_schedule SET design = gate", "units of both folds"),
        ("UPDATE factorial_schedule SET seed = seed + 1", "is not its own"),
        (f"DELETE FROM pairs WHERE {PAIR}", "answered without a coin"),
        ("DELETE FROM pairs WHERE pair = 1", "planned"),
        (f"UPDATE pairs SET unit_id = 'x/y' WHERE {PAIR}", "planned"),
        (f"UPDATE pairs SET coins = replace(coins, ',1,', ',-1,') WHERE {PAIR}", "not its own"),
        (f"UPDATE pairs SET coins = '[]' WHERE {PAIR}", "by the edits"),
        ("UPDATE pairs SET coins = replace(coins, 'true', 'false')", "by the edits"),
        (f"UPDATE pairs SET outcome = 1 - outcome WHERE {PAIR}", "counted"),
        (f"UPDATE pairs SET right_a = '[true,true]' WHERE {PAIR}", "its outcomes"),
        (f"UPDATE pairs SET state = 'open' WHERE {PAIR}", "open pairs"),
        (f"UPDATE pairs SET state = 'void' WHERE {PAIR}", "is void"),
        (f"UPDATE outcomes SET skill_hash = 'x' WHERE {ARM}", "another document"),
        (f"UPDATE outcomes SET video_id = 'x' WHERE {ARM}", "x answered, of"),
        (f"DELETE FROM outcomes WHERE {ARM}", "its outcomes"),
        (f"UPDATE outcomes SET video_id = 'x' WHERE run_key = {DESIGN}", "not of the design fold"),
        (f"UPDATE factorial_edits SET wins = wins + 1 WHERE {EDIT}", "wins is"),
        (f"UPDATE factorial_edits SET losses = 1 WHERE {EDIT}", "losses is"),
        (f"UPDATE factorial_edits SET seen = seen + 1 WHERE {OTHER}", "seen is"),
        (f"UPDATE factorial_edits SET p = p / 2 WHERE {EDIT}", "p is"),
        (f"UPDATE factorial_edits SET state = 'dropped' WHERE {EDIT}", "by its pairs"),
        (f"UPDATE factorial_edits SET state = 'adopted' WHERE {OTHER}", "by its pairs"),
        (f"UPDATE factorial_edits SET state = 'rejected' WHERE {SENTINEL}", "by its pairs"),
        (f"UPDATE factorial_edits SET sentinel = 0 WHERE {SENTINEL}", "must be the sentinel"),
        (f"UPDATE factorial_edits SET position = 9 WHERE {EDIT}", "edits at"),
        (f"UPDATE factorial_edits SET born = 1 WHERE {EDIT}", "born in 1, proposed by"),
        (f"DELETE FROM factorial_edits WHERE {SENTINEL}", "must be the sentinel"),
        (f"UPDATE outcomes SET prompts_version = 'v1+x' WHERE {ARM}", "under prompts v1+x"),
        (f"UPDATE factorial_edits SET wins = wins + 1 WHERE {COMMON}", "wins is"),
        (f"UPDATE factorial_edits SET born = 2 WHERE {COMMON}", "born in 2, proposed by"),
        (f"UPDATE steps SET result = 'no_edits' WHERE {PROPOSED}", "no_edits, "),
        ("DELETE FROM factorial_run", "before the run has decided"),
        ("UPDATE factorial_run SET n_edits = n_edits + 2", "n_edits is"),
        ("UPDATE factorial_run SET sentinel_wins = 0", "sentinel_wins is"),
        ("UPDATE factorial_run SET cut = NULL", "by its pairs"),
        ("INSERT INTO factorial_run SELECT 2, q, cap, n_edits, tau, cut, passed, adopted,"
         " sentinel_wins, sentinel_losses, sentinel_p, ok FROM factorial_run", "2 rows"),
        ("UPDATE steps SET result = 'no_edits' WHERE step = 1", "no_edits, "),
        ("UPDATE steps SET skill_after = 'x' WHERE step = 1", "before the run had decided"),
        ("DELETE FROM steps WHERE step = 2", "no step says so"),
        ("UPDATE steps SET skill_after = skill_before WHERE step = 2", "skill_after is"),
    ],
)  # fmt: skip  # a table
def test_a_wrong_row_is_found(copied: Path, statement: str, says: str) -> None:
    """Lost, doubled or changed: by whichever number no longer agrees."""
    with closing(sqlite3.connect(copied / "run.db")) as connection, connection:
        assert connection.execute(statement).rowcount > 0
    found = broken(copied)
    assert any(says in line for line in found), found


def test_what_a_resumed_run_must_not_touch(copied: Path) -> None:
    """Another schedule, a coin or an outcome that changed, an answer that was asked again."""
    before = written(copied)
    with closing(sqlite3.connect(copied / "run.db")) as connection, connection:
        connection.execute("UPDATE factorial_schedule SET budget = budget + 2")
        connection.execute(f"UPDATE pairs SET coins = '[]' WHERE {PAIR}")
        connection.execute("UPDATE pairs SET outcome = 1 - outcome WHERE pair = 3")
    run_key, question_id = sorted(before.answered)[0]
    log = copied / "logs" / "train.jsonl"
    line = f'{{"event":"rollout.done","run_key":"{run_key}","question_id":"{question_id}"}}\n'
    log.write_text(log.read_text(encoding="utf-8") + line, encoding="utf-8")
    found = changed(copied, before)
    assert found[0] == "the schedule is another"
    assert sum("was PairRow" in line for line in found) == 3
    assert found[-1] == f"{run_key} {question_id}: answered again"
