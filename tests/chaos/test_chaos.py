"""A slice of every kind of disturbance; the whole of it are the programs of this folder.

    python -m tests.chaos.sweep                 death at every durable action
    python -m tests.chaos.sweep --random 100    kill -9 at random moments
    python -m tests.chaos.crashes               actors that crash, many in one run
    python -m tests.chaos.faults                every fifth answer goes wrong
    python -m tests.chaos.disk                  disks that are full or may only be read
    python -m tests.chaos.clock --sweep         a wall clock that jumps

That Redis dies and returns (S17) is in ``tests/system/test_outages.py``.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from tests.chaos import disk
from tests.chaos.clock import lost_answers, moved, span
from tests.chaos.comparing import TINY, differing
from tests.chaos.conftest import Whole
from tests.chaos.crashes import crash_plan, handled, run_crashing
from tests.chaos.disk import CannotMount
from tests.chaos.faults import against_faults, miscounted
from tests.chaos.invariants import broken
from tests.chaos.sweep import KILLED, Kill, go_on, kill_at, run_killed
from tests.system.runs import events, result_of, run_to_end, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def unlike(workspace: Path, whole: Whole) -> list[str]:
    """What is not as in the undisturbed run, or wrong by itself."""
    return [*differing(result_of(workspace), whole.result), *broken(workspace)]


@pytest.mark.parametrize(
    "kill",
    [
        Kill("replace WORKSPACE", 1, "before"),
        Kill("replace checkpoint.json", 2, "before"),
        Kill("commit run.db epochs", 1, "before"),
        Kill("replace manifest.json", 1, "before"),
    ],
    ids=["workspace", "checkpoint", "epoch", "manifest"],
)
def test_a_death_at_a_durable_action_is_made_good(tmp_path: Path, whole: Whole, kill: Kill) -> None:
    """Nothing yet, all but the checkpoint, but the epoch's row, but the manifest: the same end."""
    workspace = tmp_path / "run"
    assert run_killed(kill, workspace, TINY) == KILLED
    assert go_on(workspace, TINY) == ""
    assert unlike(workspace, whole) == []


def test_a_kill_at_a_random_moment_is_made_good(tmp_path: Path, whole: Whole) -> None:
    """kill -9 wherever the run happens to be."""
    workspace = tmp_path / "run"
    kill_at(workspace, random.Random(7).uniform(2.0, 4.0), TINY)
    assert go_on(workspace, TINY) == ""
    assert unlike(workspace, whole) == []


@pytest.mark.parametrize("seed", [0, 4])
def test_actors_that_crash_at_random_cost_nothing(tmp_path: Path, whole: Whole, seed: int) -> None:
    """Several in one run: restarted, or the run ends and is gone on with; the same end."""
    workspace = tmp_path / "run"
    plan = crash_plan(handled(whole.workspace), seed)
    how, problems = run_crashing(workspace, plan, TINY)
    assert (how.partition(",")[0], problems) == ("same", [])
    assert differing(result_of(workspace), whole.result) == []
    crashed = {event["actor"] for event in events(workspace) if event["event"] == "actor.crashed"}
    assert crashed


@pytest.mark.anyio
async def test_every_fifth_answer_goes_wrong_and_nothing_is_lost(
    tmp_path: Path, whole: Whole
) -> None:
    """Every family of faults: the same end, nothing missing, each failure booked by its kind."""
    workspace = tmp_path / "run"
    proxy = await against_faults(workspace, TINY, share=0.2, seed=0)
    assert differing(result_of(workspace), whole.result, other_endpoints=True) == []
    assert broken(workspace) == []
    assert miscounted(workspace, proxy) == []
    assert proxy.booked.total() > 0.15 * proxy.made.total()


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, whole: Whole) -> None:
    """Two days back in the middle: no row replaces another, no duration is below zero."""
    workspace = tmp_path / "run"
    fresh = [*settings(TINY), "--workspace", str(workspace)]
    done, reads = moved(workspace, *fresh, after=600, days=-2)
    assert done.returncode == 0, done.stderr
    assert reads > 600
    assert timedelta(days=2) - span(workspace) < timedelta(minutes=5)
    assert unlike(workspace, whole) == []
    assert lost_answers(workspace) == 0


def test_a_disk_that_fills_up_stops_the_run_and_keeps_it(tmp_path: Path, whole: Whole) -> None:
    """Said with its cause; with room again the run goes on to the same end."""
    try:
        assert disk.full_disk(tmp_path, whole.result) == []
    except CannotMount as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")


def test_a_run_where_nothing_can_be_written_is_refused(tmp_path: Path, whole: Whole) -> None:
    """Read-only from the start: the reason, and no half of a workspace."""
    try:
        assert disk.read_only_start(tmp_path, whole.result) == []
    except CannotMount as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path, whole: Whole) -> None:
    """Before anything is changed, and by its name."""
    workspace = tmp_path / "run"
    (workspace / "logs" / "train.jsonl").mkdir(parents=True)
    for source in whole.workspace.iterdir():
        if source.is_file():
            (workspace / source.name).write_bytes(source.read_bytes())
    done = run_to_end("--resume", str(workspace), "--set", "trainer.epochs=2", expect=2)
    assert "train.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert (workspace / "config.yaml").read_bytes() == (
        whole.workspace / "config.yaml"
    ).read_bytes()
