"""Whole trainings over HTTP against the simulator: ends, stops, crashes, refusals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT
from tests.system.runs import SMALL, events, result_of, run_to_end, running, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

ACTORS = (
    "ledger@40",
    "cache@150",
    "llm@150",
    "video@60",
    "rollout@60",
    "baseline@2",
    "gate@2",
    "dataset@5",
    "diagnoser@5",
    "evolver@3",
    "workspace@2",
    "trainer@1",
)


def test_a_run_learns_and_says_what_it_did(
    undisturbed: Path, undisturbed_result: dict[str, object]
) -> None:
    """The loop closes: edits are accepted, versions written, epochs whole."""
    steps = undisturbed_result["steps"]
    assert isinstance(steps, list)
    assert {row["result"] for row in steps} >= {"accept", "reject"}
    assert len(steps) == 2 * 2  # epochs x trainable classes, one batch each
    manifest = msgspec.json.decode((undisturbed / "manifest.json").read_bytes())
    assert manifest["epoch"] == 2
    assert manifest["best_hard"]["skills"] != "v1"
    names = {event["event"] for event in events(undisturbed)}
    assert {"run.started", "step.done", "evaluation.done", "epoch.done"} <= names


def test_P0_2_every_answered_question_has_its_steps(undisturbed_result: dict[str, object]) -> None:
    """P0-2: traces are there, in number as the outcome says, for every rollout of the run."""
    outcomes, traces = undisturbed_result["outcomes"], undisturbed_result["traces"]
    assert isinstance(outcomes, list)
    assert isinstance(traces, list)
    counted: dict[tuple[str, str], int] = {}
    for row in traces:
        key = (row["run_key"], row["question_id"])
        counted[key] = counted.get(key, 0) + 1
    assert outcomes
    assert all(
        counted[row["run_key"], row["question_id"]] == row["n_steps"] > 0 for row in outcomes
    )


def test_P2_2_the_seed_is_untouched(undisturbed: Path) -> None:
    """P2-2: after a whole run the baseline's bytes are the seed's, in both places."""
    seed = ROOT / "seeds" / "demo" / "baseline.db"
    assert (undisturbed / "baseline.db").read_bytes() == seed.read_bytes()
    assert not list(seed.parent.glob("baseline.db-*"))


def test_the_same_seed_gives_the_same_run(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """Nothing depends on time, interleaving or where the workspace lies."""
    run_to_end(*settings(SMALL), "--workspace", str(tmp_path / "again"))
    assert result_of(tmp_path / "again") == undisturbed_result


@pytest.mark.parametrize("signals", [1, 2], ids=["drained", "stopped at once"])
def test_a_stopped_run_resumes_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object], signals: int
) -> None:
    """SIGTERM in the middle of an epoch, then --resume: same rows, same documents."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("step.done", "epoch=1")
        for _ in range(signals):
            run.signal(signal.SIGTERM)
        printed = run.finish(75 if signals == 1 else 130)
    assert printed == ""
    done = run_to_end("--resume", str(workspace))
    assert "Training ended after 2 epochs" in done.stdout
    assert result_of(workspace) == undisturbed_result


def test_a_killed_run_resumes_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """kill -9 after the first checkpoint: the other process finds whole files only."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("epoch.start", "epoch=2")
        run.signal(signal.SIGKILL)
        run.finish(-signal.SIGKILL)
    run_to_end("--resume", str(workspace))
    assert result_of(workspace) == undisturbed_result


@pytest.mark.parametrize("crash", ACTORS)
def test_a_crashed_actor_costs_nothing(
    tmp_path: Path, undisturbed_result: dict[str, object], crash: str
) -> None:
    """An injected crash in each actor in turn: restarted, and the run ends the same."""
    workspace = tmp_path / "run"
    run_to_end(
        *settings((*SMALL, f"runtime.inject_crash=[{crash}]")), "--workspace", str(workspace)
    )
    assert result_of(workspace) == undisturbed_result
    crashed = [event for event in events(workspace) if event["event"] == "actor.crashed"]
    assert [event["actor"] for event in crashed] == [crash.partition("@")[0]]


def test_a_killed_simulator_is_started_again(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """The endpoint dies in the middle of the run: its actor restarts it, calls are repeated."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        pid = int(run.wait_for("simulator is up").rpartition("pid=")[2])
        run.wait_for("evaluation.done")
        os.kill(pid, signal.SIGKILL)
        run.finish(0)
    assert result_of(workspace) == undisturbed_result


def test_a_changed_setting_is_refused_with_a_diff(tmp_path: Path, undisturbed: Path) -> None:
    """Resume refuses what would make it another run, names it, and writes nothing."""
    before = result_of(undisturbed)
    done = run_to_end("--resume", str(undisturbed), "--set", "gate.alpha_small=0.01", expect=2)
    assert "gate.alpha_small: 0.2 -> 0.01" in done.stderr
    assert "--accept-change gate.alpha_small" in done.stderr
    assert result_of(undisturbed) == before


def test_a_second_run_on_one_workspace_is_refused(tmp_path: Path) -> None:
    """The lock names the process that holds it."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("simulator is up")
        done = run_to_end("--resume", str(workspace), expect=2)
        assert str(run.process.pid) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "trainer.epoch=1"], "did you mean 'trainer.epochs'"),
        (["--set", "data.questions=nowhere.jsonl"], "data.questions"),
        (["--set", "data.seed=config"], "seed.json"),
        (["--resume", "/nonexistent"], "no workspace"),
        (["no-such.yaml"], "no-such.yaml"),
        (
            [
                "--set",
                "llm.endpoints=[{name: a, base_url: 'http://x', model: m, "
                "roles: [search, judge, evolve], api_key_env: NOT_THERE}]",
            ],
            "NOT_THERE",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    """The message names the file or key; no workspace appears."""
    workspace = tmp_path / "run"
    extra = [] if "--resume" in arguments else ["--workspace", str(workspace)]
    done = run_to_end(*arguments, *extra, expect=2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not workspace.exists()


@pytest.mark.parametrize("command", [[], ["train"], ["gate"], ["answers"]])
def test_help_of_every_command(command: list[str]) -> None:
    """--help teaches, and does nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "actors.main", *command, "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0
    assert "usage:" in done.stdout
