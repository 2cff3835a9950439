"""Settings that change on a resume: whenever the process dies, one whole set of them is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from actors import launch_settings
from actors.config import ConfigError
from actors.launch import fresh, resume, resume_problems
from actors.workspace.manifest import read_manifest

KEY = "gate.alpha_small"
CHANGE = ([f"{KEY}=0.3"], [KEY])


class Died(BaseException):
    """The process is gone."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Of a run that began with the demo's settings."""
    begun = fresh(None, (), tmp_path / "run")
    begun.lock.release()
    return begun.paths.workspace


def go_on(workspace: Path, assignments: list[str], accept: list[str]) -> float:
    """Resume, and let go again; returns the setting that is in force."""
    launch = resume(None, assignments, workspace, accept)
    launch.lock.release()
    return launch.config.gate.alpha_small


def dies(monkeypatch: pytest.MonkeyPatch, at: int, *, when: str) -> None:
    """The process dies at the nth file that is put in place."""
    left = [at]

    def mortal(write: Callable[..., None]) -> Callable[..., None]:
        def put(*arguments: object) -> None:
            left[0] -= 1
            if left[0] == 0 and when == "before":
                raise Died
            write(*arguments)
            if left[0] == 0:
                raise Died

        return put

    for name in ("write_atomic", "write_manifest"):
        monkeypatch.setattr(launch_settings, name, mortal(getattr(launch_settings, name)))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("at", "made"), [(1, False), (2, False), (3, True)])
def test_a_death_between_two_files_is_made_good(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, at: int, made: bool, when: str
) -> None:
    """The change was made when the manifest was replaced, the second file, and not before."""
    with monkeypatch.context() as mortal:
        dies(mortal, at, when=when)
        with pytest.raises(Died):
            go_on(workspace, *CHANGE)
    made = made or (at, when) == (2, "after")
    assert resume_problems(workspace) == ((), ())
    assert go_on(workspace, [], []) == (0.3 if made else 0.2)
    assert len(read_manifest(workspace).changes) == made
    assert not list(workspace.glob("config.next*"))
    if not made:
        assert go_on(workspace, *CHANGE) == 0.3
    assert len(read_manifest(workspace).changes) == 1


def test_a_file_that_fits_nothing_is_no_help(workspace: Path) -> None:
    """Nothing is guessed: settings that the manifest does not name are refused."""
    config = workspace / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("alpha_small: 0.2", "alpha_small: 0.4"), encoding="utf-8")
    (workspace / "config.next.yaml").write_text(
        text.replace("alpha_small: 0.2", "alpha_small: 0.5"), encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="is not what the run was begun with"):
        go_on(workspace, [], [])
    assert (workspace / "config.next.yaml").is_file()
