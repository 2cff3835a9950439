"""``bin/train-videomme``: the benchmark run, without an argument."""

from __future__ import annotations

import os
import subprocess

import pytest

from actors.config import ROOT

pytestmark = pytest.mark.system

LAUNCHER = ROOT / "bin" / "train-videomme"


def _launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LAUNCHER, *arguments], env=dict(os.environ), capture_output=True, text=True, check=False
    )


def test_run_the_launcher_teaches() -> None:
    """Row run: how to start it under tmux, how to go on, where to read."""
    shown = _launch("--help")
    assert shown.returncode == 0
    for word in ("tmux", "CUDA_VISIBLE_DEVICES=0", "--resume", "docs/runbook.md"):
        assert word in shown.stdout
    assert (ROOT / "docs" / "runbook.md").is_file()


@pytest.mark.skipif((ROOT / "data" / "videomme").exists(), reason="the data is there")
def test_run_what_is_missing_is_named_at_once() -> None:
    """Row run: seed, questions and trees in one report, and nothing is written."""
    before = set(ROOT.iterdir())
    done = _launch()
    assert done.returncode == 2
    for key in ("data.seed", "data.questions", "data.trees"):
        assert key in done.stderr
    assert set(ROOT.iterdir()) - before <= {ROOT / ".venv", ROOT / ".venv.lock"}
    assert not list((ROOT / "workspaces").glob("videomme-long-*"))
