"""A run whose sentinel is no coin: void, said first, with an exit code of its own."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.runs import events, run_to_end, running, settings
from tests.system.test_factorial import SMALL

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

VOID = 3


def test_a_failing_sentinel_voids_the_run(tmp_path: Path) -> None:
    """As if every certifying pair was counted by its sentinel's coin; told again on resume."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("factorial.phase ", "phase=3")
        run.signal(signal.SIGINT)
        run.finish(75)
    _count_by_the_sentinel(workspace)
    done = run_to_end("--resume", str(workspace), expect=VOID)
    assert done.stdout.lstrip().startswith("THE RUN'S CLAIMS ARE VOID")
    assert "No claim stands" in done.stdout
    assert "expected to change nothing" not in done.stdout
    again = run_to_end("--resume", str(workspace), "--json", expect=VOID)
    told = [json.loads(line) for line in again.stdout.splitlines()]
    last = told[-1]
    assert (last["event"], last["status"], last["exit_code"]) == ("done", "claims_void", VOID)
    assert "sentinels" in last["error"]
    assert last["resume"] is None
    assert last["packages"]["best_hard"] == last["packages"]["seed"]
    logged = events(workspace)
    (decided,) = (event for event in logged if event["event"] == "factorial.decided")
    assert (decided["level"], decided["sentinels_ok"]) == ("error", False)
    _a_line_each(logged, workspace)


def _count_by_the_sentinel(workspace: Path) -> None:
    """What is drawn of the last phase, and what waits, has the sentinel's arm as the better one."""
    with closing(sqlite3.connect(workspace / "run.db")) as database, database:
        found = database.execute("SELECT task_type, pair, coins FROM pairs WHERE phase = 3")
        for task_type, pair, coins in found.fetchall():
            signs = {edit_id: sign for edit_id, sign, _ in json.loads(coins)}
            (sign,) = (
                sign
                for name, sign in signs.items()
                if name.endswith("/sentinel") and not name.startswith("_prompts")
            )
            a, b = (json.dumps([sign == side]) for side in (1, -1))
            database.execute(
                "UPDATE pairs SET state = 'drawn', outcome = ?, right_a = ?, right_b = ? "
                "WHERE task_type = ? AND pair = ?",
                (sign, a, b, task_type, pair),
            )


def _a_line_each(logged: list[dict[str, object]], workspace: Path) -> None:
    """One for every pair that was drawn here, and one for every edit of the decision."""
    pairs = [(e["class"], e["pair"]) for e in logged if e["event"] == "factorial.pair"]
    assert len(pairs) == len(set(pairs)) > 0
    with closing(sqlite3.connect(workspace / "run.db")) as database:
        edits = dict(database.execute("SELECT edit_id, state FROM factorial_edits").fetchall())
        (earlier,) = database.execute("SELECT count(*) FROM pairs WHERE phase < 3").fetchone()
    assert len(pairs) >= earlier
    assert {e["edit"]: e["state"] for e in logged if e["event"] == "factorial.edit"} == edits
