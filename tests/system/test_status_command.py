"""``trm status``: what a folder is, whatever is broken in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.system.runs import SMALL as SHORT
from tests.system.runs import running, settings
from tests.system.seed_commands import (
    Trm,
    asked,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_status_of_a_workspace(trm: Trm, undisturbed: Path) -> None:
    """What it is, what it cost, and that it could go on."""
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    told = trm.json("status", undisturbed)
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    assert (told["kind"], told["consistent"], told["problems"]) == ("workspace", True, [])
    facts = told["facts"]
    assert isinstance(facts, dict)
    assert (facts["epoch"], facts["in_use"], facts["resume"]) == (2, False, "would go on")
    assert facts["calls"] > 0
    assert facts["outcomes"]["missing"] == 0
    assert facts["best"].startswith("skills/v")
    trained = facts["trained_pools"]["val"]
    assert trained == int(facts["val"]["seed"].partition("/")[2])  # what the run has answered
    assert trained < facts["pools"]["val"]


FILES = (
    *("manifest.json", "config.yaml", "checkpoint.json", "run.db", "seed.json", "baseline.db"),
    *("pools.json", "split_manifest.json", "skills/v1/meta.json", "skills/v1/_default.md"),
)


@pytest.mark.parametrize("damage", ["gone", "empty", "garbage", "cut", "folder"])
@pytest.mark.parametrize("name", FILES)
def test_status_never_raises(
    trm: Trm, undisturbed: Path, tmp_path: Path, name: str, damage: str
) -> None:
    """Whatever is broken is named with a remedy; the rest is still told."""
    workspace = Path(shutil.copytree(undisturbed, tmp_path / "run"))
    path = workspace / name
    data = path.read_bytes()
    path.unlink()
    match damage:
        case "empty":
            path.touch()
        case "garbage":
            path.write_bytes(b"\xff\xfe{[" * 50)
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "folder":
            path.mkdir()
    told = trm.json("status", workspace, expect=1)
    assert told["kind"] == "workspace"
    problems = told["problems"]
    assert isinstance(problems, list)
    assert any(name.rpartition("/")[2] in json.dumps(problem) for problem in problems)
    assert all(problem["what"] and problem["remedy"] for problem in problems)
    facts = told["facts"]
    assert isinstance(facts, dict)
    resume = "refused"
    if name == "checkpoint.json" and damage != "folder":  # the one before it is there
        resume = "would go on, from checkpoint.json.prev"
    assert facts["resume"].startswith(resume)
    assert trm("status", workspace, expect=1).out


def test_status_while_a_run_goes_on(trm: Trm, tmp_path: Path) -> None:
    """It says who holds the lock, and stands in nobody's way."""
    workspace = tmp_path / "run"
    with running(*settings(SHORT), "--workspace", str(workspace)) as run:
        run.wait_for("step.done")
        told = trm.json("status", workspace)
        facts = told["facts"]
        assert isinstance(facts, dict)
        assert (facts["in_use"], facts["held_by"]) == (True, run.process.pid)
        assert f"process {run.process.pid} runs on it" in facts["resume"]
        assert facts["calls"] > 0
        run.finish(0)


def test_status_of_nothing(trm: Trm, tmp_path: Path) -> None:
    """Exit 2, and what would have been something."""
    for path in (tmp_path, tmp_path / "none"):
        assert "no workspace and no seed" in trm("status", path, expect=2).err


def test_status_of_what_is_not_finished(trm: Trm, small: Path, whole: Path, tmp_path: Path) -> None:
    """A seed under construction says what comes next; a work folder says what it is for."""
    seed = tmp_path / "seed"
    trm("seed", seed, "--from-db", whole / "baseline.db", *asked(small), "--baseline-only")
    told = trm.json("status", seed)
    facts = told["facts"]
    assert isinstance(facts, dict)
    assert (told["kind"], facts["next"]) == (
        "seed under construction",
        "bin/trm diagnose, bin/trm split, bin/trm seed",
    )
    work = trm.json("status", whole.with_name("seed.work"))
    assert (work["kind"], work["consistent"]) == ("work folder", True)
