"""Where the program's files are, and what its commands are called, in a checkout and installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from actors import places
from actors.commands.splitting import TOOL_VERSION
from actors.config import ConfigError, load_config, resolve_path
from actors.launch import DEMO
from actors.main import main
from actors.places import INSTALLED, ROOT, as_called, launcher, shown_path, to_write, version


def test_a_checkout_writes_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From whatever folder it is called; an absolute path is taken as it is."""
    monkeypatch.chdir(tmp_path)
    assert not INSTALLED
    assert to_write("workspaces") == ROOT / "workspaces"
    assert to_write(str(tmp_path / "mine")) == tmp_path / "mine"


def test_an_installed_one_writes_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never among the packages."""
    monkeypatch.setattr(places, "INSTALLED", True)
    monkeypatch.chdir(tmp_path)
    assert to_write("workspaces/embeddings") == tmp_path / "workspaces" / "embeddings"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("bin/trm gate: BLOCKS", "trm gate: BLOCKS"),
        ("start one with bin/train", "start one with trm train"),
        (
            "`bin/trm seed --from-db X`, bin/train --resume",
            "`trm seed --from-db X`, trm train --resume",
        ),
        ("tmux new 'bin/train-videomme'", "tmux new 'bin/train-videomme'"),
        ("/home/me/trm/bin/train --resume", "/home/me/trm/bin/train --resume"),
        ("bin/trm2 cabin/trm", "bin/trm2 cabin/trm"),
    ],
)
def test_commands_as_they_are_called(text: str, called: str) -> None:
    """Only whole command names are another's; in a checkout nothing is."""
    assert as_called(text, installed=True) == called
    assert as_called(text, installed=False) == text


def test_the_launcher_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line to paste must be right where the user stands."""
    monkeypatch.chdir(ROOT)
    assert launcher() == "bin/train"
    monkeypatch.chdir(tmp_path)
    assert launcher() == str(ROOT / "bin" / "train")


def test_the_launcher_of_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``trm`` only if the shell finds this very one."""
    mine, other = tmp_path / "a b" / "trm", tmp_path / "other" / "trm"
    for script in (mine, other):
        script.parent.mkdir()
        script.write_text("#!/bin/sh\n", encoding="utf-8")
        script.chmod(0o755)
    monkeypatch.setattr(places, "INSTALLED", True)
    monkeypatch.setattr(sys, "argv", [str(mine), "train"])
    monkeypatch.setenv("PATH", str(mine.parent))
    assert launcher() == "trm train"
    monkeypatch.setenv("PATH", str(other.parent))
    assert launcher() == f"'{mine}' train"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "main.py"), "train"])
    assert launcher() == f"{sys.executable} -m actors.main train"


@pytest.mark.parametrize(
    ("below", "shown"),
    [
        ("workspaces/my-001", "workspaces/my-001"),
        ("-dd2", "./-dd2"),
        ("-d d", "'./-d d'"),
        ("my runs/it's", """'my runs/it'"'"'s'"""),
        ("~x", "'~x'"),
        (".", "{here}"),
        ("../other", "{other}"),
    ],
)
def test_a_path_to_be_pasted(
    below: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short from the current folder, quoted, no option; ``.`` would mean the latest run."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    place = (here / below).resolve()
    wanted = shown.format(here=here, other=tmp_path / "other")
    assert shown_path(place) == wanted
    if not below.startswith("."):
        assert shown_path(Path(below)) == wanted


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` says it and where the configurations lie; seeds record the same one."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"trm {version()} (Python ")
    assert str(ROOT) in said
    assert f"trm {version()}" == TOOL_VERSION


def test_what_came_along_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration, and what a configuration names; what lies here comes first."""
    monkeypatch.chdir(tmp_path)
    named = Path("config/demo.yaml")
    assert load_config(named) == load_config(DEMO)
    assert resolve_path("seeds/demo", named) == ROOT / "seeds" / "demo"
    (tmp_path / "seeds" / "demo").mkdir(parents=True)
    assert resolve_path("seeds/demo", named) == tmp_path / "seeds" / "demo"
    with pytest.raises(ConfigError, match="no such file"):
        load_config(Path("config/none.yaml"))
