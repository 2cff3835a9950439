"""The atomic write: order, failure at every call, a real kill, and the sweep (P1-7)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actors.workspace.atomic import folder_aside, sweep_tmp, write_atomic
from tests.workspace.material import Failing, Recording

ROOT = Path(__file__).parents[2]

DIE_BEFORE_REPLACE = """
import os, sys
from pathlib import Path
from actors.workspace.atomic import FileSystem, write_atomic

class Dies(FileSystem):
    def replace(self, source, target):
        os.kill(os.getpid(), 9)

write_atomic(Path(sys.argv[1]), b"new" * 1000, files=Dies())
"""


def test_p1_7_order_of_calls(tmp_path: Path) -> None:
    """P1-7: content is on disk before the name points at it, and the name before we go on."""
    files = Recording()
    write_atomic(tmp_path / "manifest.json", b"new", files=files)
    assert files.calls == [
        "create",
        "write",
        "fsync",
        "replace manifest.json",
        f"sync {tmp_path.name}",
    ]
    assert (tmp_path / "manifest.json").read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", range(4), ids=["create", "write", "fsync", "replace"])
def test_p1_7_failure_leaves_the_old_file(tmp_path: Path, at: int, error: BaseException) -> None:
    """P1-7: whichever call fails, the old file is whole and nothing lies beside it."""
    path = tmp_path / "manifest.json"
    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        write_atomic(path, b"new and longer", files=Failing(at, error))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("at", range(1, 3), ids=["write", "fsync"])
def test_a_full_disk_is_told_with_the_file(tmp_path: Path, at: int) -> None:
    """What the system says of a descriptor names no file; the operator needs one."""
    files = Failing(at, OSError(28, "No space left on device"))
    with pytest.raises(OSError, match=r"No space left on device: '.*manifest.json'"):
        write_atomic(tmp_path / "manifest.json", b"new", files=files)


def test_p1_7_kill_before_replace(tmp_path: Path) -> None:
    """P1-7: a process that is killed leaves the old file, and a name that the sweep removes."""
    path = tmp_path / "manifest.json"
    path.write_bytes(b"old")
    child = subprocess.run(
        [sys.executable, "-c", DIE_BEFORE_REPLACE, str(path)], cwd=ROOT, check=False, timeout=30
    )
    assert child.returncode == -9
    assert path.read_bytes() == b"old"
    (left,) = [other for other in tmp_path.iterdir() if other != path]
    assert left.read_bytes() == b"new" * 1000
    assert sweep_tmp(tmp_path) == (left,)
    assert list(tmp_path.iterdir()) == [path]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take less than it was given."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    write_atomic(tmp_path / "f", b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    """Everything in it is synced before it gets its name; a failure leaves nothing."""
    target = tmp_path / "v2"
    files = Recording()
    with folder_aside(target, files=files) as aside:
        (aside / "deep").mkdir()
        (aside / "deep" / "a.md").write_text("a", encoding="utf-8")
        assert not target.exists()
    assert files.calls == [
        "fsync",
        "sync deep",
        f"sync {aside.name}",
        "replace v2",
        f"sync {tmp_path.name}",
    ]
    assert (target / "deep" / "a.md").read_text(encoding="utf-8") == "a"
    with pytest.raises(FileExistsError), folder_aside(target):
        pytest.fail("an existing folder is never replaced")
    with pytest.raises(IsADirectoryError), folder_aside(tmp_path / "v3") as aside:
        aside.write_text("the block itself fails", encoding="utf-8")
    for at in range(3):
        with (
            pytest.raises(OSError, match="full"),
            folder_aside(tmp_path / "v3", files=Failing(at, OSError("full"))) as aside,
        ):
            (aside / "a.md").write_text("a", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["v2"]


def test_sweep_spares_the_living_and_the_foreign(tmp_path: Path) -> None:
    """Another living process may be writing; other names are not ours."""
    living = tmp_path / f".x.json.{os.getppid()}.0.tmp"
    own = tmp_path / f".x.json.{os.getpid()}.999999.tmp"
    folder = tmp_path / ".v2.999999999.0.tmp"
    folder.mkdir()
    (folder / "a.md").write_text("a", encoding="utf-8")
    for path in (living, own, tmp_path / "x.tmp", tmp_path / ".hidden"):
        path.touch()
    assert set(sweep_tmp(tmp_path)) == {own, folder}
    assert {path.name for path in tmp_path.iterdir()} == {living.name, "x.tmp", ".hidden"}
