"""A run's exit code stands, and its result is kept, whatever stdout does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.commands.outputs import ASCII, Stdout, ended
from tests.system.runs import SMALL, events, settings

LATIN = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended while nobody read its stdout, in a folder whose name is not ASCII."""
    workspace = tmp_path_factory.mktemp("odd") / "日本"
    done = ended("train", "--workspace", workspace, *settings(SMALL), stdout="unread")
    assert done.returncode == 0
    told = done.stderr.decode().splitlines()[-1]
    assert told.startswith("bin/train: stdout cannot be written (Broken pipe); the result is kept")
    assert f"bin/trm report {workspace}" in told.replace("'", "")
    return workspace


@pytest.mark.parametrize("stdout", ["unread", "full", "closed"])
def test_the_exit_code_stands(finished: Path, stdout: Stdout) -> None:
    """What the log says at the end is what the shell gets."""
    done = ended("train", "--resume", finished, stdout=stdout)
    last = events(finished)[-1]
    assert (last["event"], last["exit_code"], done.returncode) == ("run.ended", 0, 0)
    assert b"the result is kept" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("stdout", ["unread", "full", "closed"])
def test_so_it_does_for_programs(finished: Path, stdout: Stdout) -> None:
    """Lines that nobody takes are dropped."""
    done = ended("train", "--resume", finished, "--json", stdout=stdout)
    assert (done.returncode, events(finished)[-1]["exit_code"]) == (0, 0)


@pytest.mark.parametrize("environ", [LATIN, ASCII], ids=["latin-1", "ascii"])
def test_signs_that_stdout_has_not(finished: Path, environ: Mapping[str, str]) -> None:
    """They are spelt out, on stdout and in the log; the result is whole."""
    done = ended("train", "--resume", "日本", environ=environ, folder=finished.parent)
    assert done.returncode == 0
    assert b"All of it on one page" in done.stdout
    assert (rb"\u65e5" if environ is LATIN else rb"\udce6") in done.stdout
    begun = [event for event in events(finished) if event["event"] == "run.resumed"][-1]
    assert str(begun["folder"]).endswith("日本" if environ is LATIN else r"\udce6\udc9c\udcac")


def test_json_of_a_path_beyond_the_locale(finished: Path) -> None:
    """Every line can be read."""
    done = ended("train", "--resume", "日本", "--json", environ=ASCII, folder=finished.parent)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["event"], lines[-1]["event"]) == ("launch", "done")
    assert lines[-1]["workspace"].endswith(r"\udce6\udc9c\udcac")


def test_a_workspace_beyond_the_locale_is_whole(finished: Path) -> None:
    """The check reads its baseline as any other: nothing has to be split anew."""
    done = ended("check", "--resume", "日本", environ=ASCII, folder=finished.parent)
    assert (done.returncode, b"split anew" in done.stdout) == (0, False), done.stdout.decode()


@pytest.mark.parametrize("stdout", ["full", "unread"])
def test_null_comparisons_keep_their_verdict(finished: Path, stdout: Stdout) -> None:
    """The exit code of ``--aa`` is the verdict, which stdout does not change."""
    done = ended("train", "--resume", finished, "--aa", "1", stdout=stdout)
    assert done.returncode == 0
    assert b"the answers are kept" in done.stderr
