"""Whole trainings over HTTP against the simulator: ends, stops, crashes, refusals."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT
from actors.workspace.manifest import read_manifest
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


def test_a_drained_run_resumes_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """SIGTERM in the middle of an epoch, then --resume: same rows, same documents."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("step.done ", " e1 ")
        run.signal(signal.SIGTERM)
        assert run.finish(75) == ""
    done = run_to_end("--resume", str(workspace))
    assert "Training ended after 2 epochs" in done.stdout
    assert result_of(workspace) == undisturbed_result


def test_a_run_stopped_at_once_resumes_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """A second SIGTERM while the first one still waits for an answer: no waiting, same end.

    The simulator is halted, so the drain cannot be over before the second signal; and that
    one is sent only when the first was seen, since two pending signals of a kind are one.
    """
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        twin = int(run.wait_for("twin.up").rpartition("pid=")[2])
        run.wait_for("evaluation.done")
        os.kill(twin, signal.SIGSTOP)
        try:
            run.signal(signal.SIGTERM)
            run.wait_for("runtime.draining")
            run.signal(signal.SIGTERM)
            assert run.finish(130) == ""
        finally:
            with suppress(ProcessLookupError):
                os.kill(twin, signal.SIGCONT)
    run_to_end("--resume", str(workspace))
    assert result_of(workspace) == undisturbed_result


def test_a_killed_run_resumes_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """kill -9 after the first checkpoint: the other process finds whole files only."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("epoch.start ", " e2")
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
        pid = int(run.wait_for("twin.up").rpartition("pid=")[2])
        run.wait_for("evaluation.done")
        os.kill(pid, signal.SIGKILL)
        run.finish(0)
    assert result_of(workspace) == undisturbed_result


def test_a_stop_while_actors_start_is_a_stop(tmp_path: Path) -> None:
    """One SIGTERM before anything was asked: exit 75, and the workspace can be resumed."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("twin.up")
        run.signal(signal.SIGTERM)
        run.finish(75)
    run_to_end("--resume", str(workspace), "--set", "trainer.epochs=1")


def test_another_agent_draws_its_own_baseline(tmp_path: Path) -> None:
    """The seed's answers are another agent's: they are no draw and no line of the test table."""
    workspace = tmp_path / "run"
    done = run_to_end(
        *settings((*SMALL[:-2], "trainer.epochs=1", "llm.search.temperature=0.6")),
        "--workspace",
        str(workspace),
    )
    assert "answered by another agent" in done.stderr
    result = result_of(workspace)
    baseline, evaluations = result["baseline"], result["evaluations"]
    assert isinstance(baseline, list)
    assert isinstance(evaluations, list)
    assert baseline
    assert {row["source"] for row in baseline} == {"rollout"}
    assert ("test", "seed") in {(row["pool"], row["kind"]) for row in evaluations}


def test_a_changed_setting_is_refused_with_a_diff(tmp_path: Path, undisturbed: Path) -> None:
    """Resume refuses what would make it another run, names it, and writes nothing."""
    before = result_of(undisturbed)
    done = run_to_end("--resume", str(undisturbed), "--set", "gate.alpha_small=0.01", expect=2)
    assert "gate.alpha_small: 0.2 -> 0.01" in done.stderr
    assert "--accept-change gate.alpha_small" in done.stderr
    assert result_of(undisturbed) == before


def test_a_second_run_on_one_workspace_is_refused(tmp_path: Path) -> None:
    """The lock names the process that holds it, and the refused one changes nothing."""
    workspace = tmp_path / "run"
    change = ("--set", "gate.alpha_small=0.9", "--accept-change", "gate.alpha_small")
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("twin.up")
        before = (workspace / "config.yaml").read_bytes()
        done = run_to_end("--resume", str(workspace), *change, expect=2)
        assert str(run.process.pid) in done.stderr
        assert (workspace / "config.yaml").read_bytes() == before


@pytest.fixture
def ended(tmp_path: Path, undisturbed: Path) -> Path:
    """A copy of the undisturbed workspace, to be tampered with."""
    return Path(shutil.copytree(undisturbed, tmp_path / "ended"))


def test_an_accepted_change_is_on_record(ended: Path) -> None:
    """What was accepted stands in the log and in every result, and holds for the next resume."""
    change = ("--set", "gate.alpha_small=0.1", "--accept-change", "gate.alpha_small")
    run_to_end("--resume", str(ended), *change)
    accepted = [e["change"] for e in events(ended) if e["event"] == "config.change_accepted"]
    assert accepted == ["gate.alpha_small: 0.2 -> 0.1"]
    done = run_to_end("--resume", str(ended))
    assert "gate.alpha_small: 0.2 -> 0.1 after epoch 2." in done.stdout
    assert [str(one) for one in read_manifest(ended).changes] == [f"{accepted[0]} after epoch 2"]


@pytest.mark.parametrize(
    ("damage", "code", "says"),
    [
        (lambda w: (w / "config.yaml").write_text(""), 2, "config.yaml: holds no setting"),
        (lambda w: (w / "run.db").unlink(), 1, "run.db at epoch 0"),
        (lambda w: (w / "checkpoint.json").write_text("{}"), 0, "Training ended after 2 epochs"),
        (lambda w: (w / "manifest.json").write_text("{"), 2, "manifest.json"),
        (lambda w: (w / "pools.json").write_text("{}"), 2, "pools.json"),
        (lambda w: _flip_baseline(w / "baseline.db"), 2, "baseline.db"),
        (lambda w: (w / "skills/v1/counting-problem.md").unlink(), 2, "skills/v1"),
    ],
    ids=["config", "ledger", "checkpoint", "manifest", "pools", "baseline", "skill"],
)
def test_a_damaged_workspace_is_told_not_obeyed(
    ended: Path, damage: Callable[[Path], object], code: int, says: str
) -> None:
    """Whatever file was lost or changed: never a wrong run, never a traceback at the end."""
    damage(ended)
    done = run_to_end("--resume", str(ended), expect=code)
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def _flip_baseline(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE predictions SET right = 1 - right")


def test_changed_trees_are_another_run(tmp_path: Path) -> None:
    """The agent would see other videos: refused, with the folder's name."""
    trees = Path(shutil.copytree(ROOT / "seeds" / "demo" / "trees", tmp_path / "trees"))
    workspace = tmp_path / "run"
    small = (*SMALL, "trainer.epochs=1", f"data.trees={trees}")
    run_to_end(*settings(small), "--workspace", str(workspace))
    changed = sorted(trees.iterdir())[0]
    changed.write_bytes(changed.read_bytes().replace(b"a", b"b", 1))
    done = run_to_end("--resume", str(workspace), expect=2)
    assert str(trees) in done.stderr
    changed.unlink()
    done = run_to_end(*settings(small), "--workspace", str(tmp_path / "other"), expect=2)
    assert "1 videos have no tree" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "trainer.epoch=1"], "did you mean 'trainer.epochs'"),
        (["--set", "data.questions=nowhere.jsonl"], "data.questions"),
        (["--set", "data.seed=config"], "seed.json"),
        (["--resume", "/nonexistent"], "no workspace"),
        (["no-such.yaml"], "no-such.yaml"),
        (["--set", "twin.world=pyproject.toml"], "twin.world"),
        (["--set", "llm.concurrency=2000000000"], "ulimit -Hn"),
        (["--set", "limits.max_usd=5"], "usd_per_m_prompt"),
        (["--set", "llm.search.extra_body={model: x}"], "which the client writes itself"),
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
