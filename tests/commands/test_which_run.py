"""Which run a command takes that was given none, and what it says of how that run goes on."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from actors.commands.status_report import inspect_folder
from actors.commands.watch import _Refused
from actors.launch import fresh
from actors.workspace.lock import WorkspaceLock
from tests.commands.house import Made, Trm


@pytest.fixture
def root(tmp_path: Path, history: Made, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are by default: three, ``three`` written last."""
    monkeypatch.setattr("actors.commands.workspace_view.to_write", lambda name: tmp_path / name)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "workspaces"
    folder.mkdir()
    for age, name in enumerate(("three", "two", "one")):
        shutil.copytree(history.path, folder / name)
        _written(folder / name, age)
    shutil.copy(history.path.parent / "questions.jsonl", folder)
    return folder


def _written(workspace: Path, age: int) -> None:
    os.utime(workspace / "manifest.json", (2e9 - age, 2e9 - age))


def _half_made(root: Path) -> Path:
    half = root / "half-001"
    half.mkdir()
    (half / "manifest.json").touch()
    _written(half, -1)
    return half


# -- live ones ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("control", "status"), ("control", "stop"), ("watch",)])
def test_a_run_under_way_comes_before_one_that_is_over(
    command: tuple[str, ...], root: Path, trm: Trm
) -> None:
    """However long ago it last wrote."""
    with WorkspaceLock(root / "one"):
        done = trm(*command, expect=0 if command[0] == "watch" else 1)
    assert f"bin/trm {command[0]}: workspaces/one, the run under way in {root}\n" in done.err
    if command[0] == "control":
        assert "workspaces/one: no run is listening there" in done.err


def test_several_runs_under_way_are_named_and_none_is_stopped(root: Path, trm: Trm) -> None:
    """A word to the wrong one could not be taken back; to look at one costs nothing."""
    with WorkspaceLock(root / "one"), WorkspaceLock(root / "two"):
        refused = trm("control", "stop", expect=2).err
        seen = trm("watch").err
    assert f"2 runs are under way in {root}; name one of them: workspaces/two, workspaces/one" in (
        refused
    )
    assert f"workspaces/two, of the runs under way in {root} the latest (also: one)" in seen


@pytest.mark.parametrize("command", [("status",), ("report", "--out", "r.html")])
def test_other_commands_stay_with_the_latest(
    command: tuple[str, ...], root: Path, trm: Trm
) -> None:
    with WorkspaceLock(root / "one"):
        done = trm(*command, expect=1 if command[0] == "status" else 0)
    assert f"bin/trm {command[0]}: workspaces/three, the latest of {root}\n" in done.err


@pytest.mark.parametrize(
    "command",
    [
        ("blame", "system"),
        ("blame",),
        ("diff", "v1", "v2"),
        ("diff", "v1", "workspaces/one/skills/v2"),
        ("tensorboard", "--out", "boards"),
    ],
    ids=" ".join,
)
def test_all_commands_mean_the_same_run(command: tuple[str, ...], root: Path, trm: Trm) -> None:
    """The latest of any name, said once."""
    code = 1 if command[0] == "diff" else 2 if command == ("blame",) else 0
    done = trm(*command, expect=code)
    line = f"bin/trm {command[0]}: workspaces/three, the latest of {root}\n"
    assert done.err.count(line) == done.err.count("the latest of") == 1


def test_two_folders_need_no_run(root: Path, trm: Trm) -> None:
    done = trm("diff", "workspaces/one/skills/v1", "workspaces/two/skills/v2", expect=1)
    assert done.err == ""


# -- those that cannot be read ----------------------------------------------------------------


def test_a_half_made_workspace_is_passed_over_and_named(root: Path, trm: Trm) -> None:
    """It counts only where there is no other."""
    half = _half_made(root)
    assert f"workspaces/three, the latest of {root} that can be read (not half-001)\n" in (
        trm("watch").err
    )
    for name in ("one", "two", "three"):
        (root / name / "manifest.json").unlink()
    assert f"workspaces/{half.name}, the latest of {root}\n" in trm("status", expect=1).err


def test_a_folder_that_is_being_made_is_none_yet(root: Path, trm: Trm) -> None:
    (root / ".four.tmp").mkdir()
    (root / ".four.tmp" / "manifest.json").write_bytes((root / "one/manifest.json").read_bytes())
    _written(root / ".four.tmp", -1)
    assert "workspaces/three, the latest" in trm("watch").err


# -- how it goes on ---------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [None, "pools.json", "config.yaml", "baseline.db"])
def test_watch_offers_what_status_would_not_refuse(
    damage: str | None, tmp_path: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One decision; the line may be pasted where the user stands."""
    place = tmp_path / ("my runs" + " and more" * 9) / "-d1"
    place.parent.mkdir()
    fresh(None, (), place).lock.release()
    if damage:
        (place / damage).unlink()
    monkeypatch.chdir(place.parent)
    resume = str(inspect_folder(place).facts["resume"])
    lines = trm("watch", str(place)).out.splitlines()
    bin_ = Path(__file__).parents[2] / "bin"
    if damage is None:
        assert resume == "would go on"
        assert f"go on with: {shlex.quote(str(bin_ / 'train'))} --resume ./-d1" in lines
        monkeypatch.chdir(tmp_path)  # from here the line is longer than a screen is wide
        line = f"--resume {shlex.quote(str(place.relative_to(tmp_path)))}\n"
        assert line in trm("watch", str(place)).out
    else:
        assert resume.startswith("refused: ")
        assert f"--resume is refused; why: {bin_ / 'trm'} status ./-d1" in lines
        assert not any("go on with" in line for line in lines)


def test_a_half_made_workspace_is_offered_no_resume(root: Path, trm: Trm) -> None:
    out = trm("watch", _half_made(root)).out
    assert "--resume is refused" in out
    assert "go on with" not in out


def test_whether_it_goes_on_is_asked_once_per_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture a second must not read every file of a workspace."""
    asked: list[Path] = []

    def refused(workspace: Path) -> bool:
        asked.append(workspace)
        return False

    monkeypatch.setattr("actors.commands.watch.resume_refused", refused)
    seen = _Refused()
    log = root / "one" / "logs" / "train.jsonl"
    for stamp in (1e9, 1e9, 2e9, 2e9):
        log.touch()
        os.utime(log, (stamp, stamp))
        assert not seen(root / "one")
    assert len(asked) == 2


# -- words that are no numbers ------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["", "abc", "0", "-3", "9" * 30, "80"])
def test_watch_draws_whatever_columns_says(
    columns: str, root: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = trm("watch", "workspaces/one", "--once").out.splitlines()
    assert lines[0].startswith("one")
    assert max(map(len, lines)) <= (1000 if len(columns) > 5 else 80)


@pytest.mark.parametrize("number", ["²", "٣", "1e3", "9" * 5000])
def test_control_takes_only_a_number(number: str, root: Path, trm: Trm) -> None:
    assert "only a number may follow concurrency" in (
        trm("control", "workspaces/one", "concurrency", number, expect=2).err
    )
