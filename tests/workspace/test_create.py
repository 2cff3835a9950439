"""Workspaces: made whole from a seed, numbered, locked (W-1)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from actors.workspace.create import latest_workspace, next_workspace
from actors.workspace.errors import BadFile, SeedError, WorkspaceError, WorkspaceInUse
from actors.workspace.lock import WorkspaceLock, lock_holder
from actors.workspace.manifest import read_manifest, write_manifest
from actors.workspace.seed import open_seed
from actors.workspace.versions import read_prompts, read_skills
from protocol.documents import Package
from tests.workspace.material import Failing, new_workspace, unchanged

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from actors.workspace.lock import WorkspaceLock

lock = WorkspaceLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_w_1_the_frozen_split_comes_along(seed_dir: Path, tmp_path: Path) -> None:
    """W-1: pools.json and split_manifest.json are copied; the seed is only read (P2-2)."""
    workspace = tmp_path / "workspaces" / "demo-001"
    with unchanged(*(path for path in seed_dir.rglob("*") if path.is_file())):
        manifest = new_workspace(seed_dir, workspace, "run-1")
    for name in ("baseline.db", "pools.json", "split_manifest.json", "seed.json"):
        assert (workspace / name).read_bytes() == (seed_dir / name).read_bytes()
    assert read_skills(workspace / "skills", "v1") == read_skills(seed_dir / "skills", "v1")
    assert read_prompts(workspace / "prompts", "v1") == read_prompts(seed_dir / "prompts", "v1")
    assert read_manifest(workspace) == manifest
    assert (manifest.run_id, manifest.seed_name, manifest.epoch) == ("run-1", "made-up", 0)
    assert manifest.current == manifest.best_hard == Package(skills="v1", prompts="v1")
    with pytest.raises(WorkspaceError, match="exists already"):
        new_workspace(seed_dir, workspace, "run-2")


@pytest.mark.parametrize("at", range(22))
def test_half_made_workspace_never_exists(seed_dir: Path, tmp_path: Path, at: int) -> None:
    """A full disk at any call: nothing, or all of it."""
    root = tmp_path / "workspaces"
    files = Failing(at, OSError(28, "No space left on device"))
    with contextlib.suppress(OSError):
        new_workspace(seed_dir, root / "demo-001", "run-1", files=files)
    for workspace in root.iterdir():
        assert workspace.name == "demo-001"
        assert read_manifest(workspace).run_id == "run-1"
        open_seed(workspace)  # a workspace holds all that a seed does


def test_broken_seed_makes_no_workspace(seed_dir: Path, tmp_path: Path) -> None:
    """What is wrong with the seed is said before anything is written."""
    (seed_dir / "baseline.db").unlink()
    with pytest.raises(SeedError, match=r"baseline\.db"):
        new_workspace(seed_dir, tmp_path / "workspaces" / "demo-001", "run-1")
    assert not (tmp_path / "workspaces").exists()


def test_numbers(tmp_path: Path) -> None:
    """One more than the highest; other names and files do not count."""
    root = tmp_path / "workspaces"
    assert latest_workspace(root, "demo") is None
    assert next_workspace(root, "demo") == root / "demo-001"
    for name in ("demo-001", "demo-009", "demo-1000", "demo-x-011", "other-500", "demo-12"):
        (root / name).mkdir(parents=True)
    (root / "demo-2000").touch()
    assert latest_workspace(root, "demo") == root / "demo-1000"
    assert next_workspace(root, "demo") == root / "demo-1001"
    assert next_workspace(root, "demo-x") == root / "demo-x-012"


def test_p1_7_manifest_is_replaced_whole(seed_dir: Path, tmp_path: Path) -> None:
    """P1-7: a failure between the write and the replace leaves the old manifest."""
    workspace = tmp_path / "w"
    old = new_workspace(seed_dir, workspace, "run-1")
    with pytest.raises(OSError, match="full"):
        write_manifest(workspace, old, files=Failing(3, OSError("full")))
    assert read_manifest(workspace) == old


def test_bad_manifest_names_file_and_key(tmp_path: Path) -> None:
    """So that it can be mended."""
    (tmp_path / "manifest.json").write_text('{"type":"Manifest","run_id":1}', encoding="utf-8")
    with pytest.raises(BadFile, match=r"manifest\.json.*run_id"):
        read_manifest(tmp_path)


def test_second_run_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    """The lock names its holder and goes with it, even when it is killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
            with pytest.raises(WorkspaceInUse, match=f"process {child.pid}") as caught:
                WorkspaceLock(tmp_path).acquire()
            seen = lock_holder(tmp_path)
            assert seen is not None
            assert seen.pid == child.pid
            assert caught.value.pid == child.pid
        finally:
            child.kill()
            child.wait(timeout=30)
    with WorkspaceLock(tmp_path):
        assert (tmp_path / "lock").read_text(encoding="ascii") == f"{os.getpid()}\n"
        with pytest.raises(WorkspaceInUse):
            WorkspaceLock(tmp_path).acquire()
    lock = WorkspaceLock(tmp_path)
    lock.acquire()
    with pytest.raises(RuntimeError, match="already"):
        lock.acquire()
    lock.release()
    lock.release()


def test_looking_at_a_lock_takes_and_makes_nothing(tmp_path: Path) -> None:
    """So that a status may be asked for while a run goes on, or is about to."""
    assert lock_holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    with WorkspaceLock(tmp_path):
        assert lock_holder(tmp_path) is not None
    assert lock_holder(tmp_path) is None
    with WorkspaceLock(tmp_path):
        pass
