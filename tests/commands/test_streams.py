"""Whatever becomes of stdout, no command ends with a traceback, and each says what it lost."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

from actors.main import main
from actors.streams import StdoutLost, json_text, ready_streams
from tests.commands.house import Made
from tests.commands.outputs import ASCII, Stdout, ended

NUMBERS = '[{"id": "e1", "W": 9, "L": 1}]'
COMMANDS = {
    "check": ("check", "none.yaml"),
    "check --json": ("check", "none.yaml", "--json"),
    "factorial": ("factorial", "EDITS", "--q", ".15"),
    "help": ("--help",),
    "report": ("report", "RUN", "--out", "FOLDER/page.html"),
    "status": ("status", "RUN"),
    "watch": ("watch", "--once", "RUN"),
}


def named(command: str, made: Made, folder: Path) -> list[str]:
    """The command's arguments; what it is about lies in the folder."""
    edits = folder / "edits.json"
    edits.write_text(NUMBERS, encoding="utf-8")
    names = {"EDITS": str(edits), "RUN": str(made.path), "FOLDER": str(folder)}
    given = list(COMMANDS[command])
    for short, name in names.items():
        given = [word.replace(short, name) for word in given]
    return given


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("stdout", "code", "words"),
    [("unread", 141, ""), ("full", 1, "No space left"), ("closed", 1, "Bad file descriptor")],
)
def test_a_stdout_that_takes_nothing(
    made: Made, tmp_path: Path, command: str, stdout: Stdout, code: int, words: str
) -> None:
    """A reader who left is no fault and gets no word; the rest is one line."""
    done = ended(*named(command, made, tmp_path), stdout=stdout)
    told = done.stderr.decode().splitlines()
    assert (done.returncode, len(told)) == (code, 1 if words else 0), told
    if words:
        name = "bin/trm" if command == "help" else f"bin/trm {COMMANDS[command][0]}"
        assert told[0].startswith(f"{name}: stdout cannot be written ({words}")


def test_a_command_that_says_nothing_loses_nothing() -> None:
    """It is not the closed stdout that is a fault, but what was to be written to it."""
    done = ended("factorial", "none.json", "--q", ".15", stdout="closed")
    assert (done.returncode, b"none.json: cannot be read" in done.stderr) == (2, True)


def test_all_three_closed(tmp_path: Path) -> None:
    """Nobody hears anything; a file that is opened later takes no stream's number."""
    done = ended("factorial", "-", "--q", ".15", shell="<&- 2>&-", stdout="closed")
    assert (done.returncode, done.stderr) == (2, b"")
    done = ended("factorial", "-", "--q", ".15", shell="<&-")
    assert (done.returncode, b"stdin: " in done.stderr) == (2, True)
    (tmp_path / "edits.json").write_text(NUMBERS, encoding="utf-8")
    done = ended("factorial", "edits.json", "--q", ".15", shell="<&- 2>&-", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1][:14]) == (0, b"1 of 1 adopted")


@pytest.mark.parametrize("command", ["status", "watch", "report", "tensorboard", "check", "json"])
def test_a_path_beyond_the_locale(made: Made, tmp_path: Path, command: str) -> None:
    """Its bytes are spelt out; what is written on stdout is UTF-8 all the same."""
    odd = tmp_path / "日本"
    made.path.rename(odd)
    given = {
        "status": ("status", "日本"),
        "watch": ("watch", "--once", "日本"),
        "report": ("report", "日本"),
        "tensorboard": ("tensorboard", "日本"),
        "check": ("check", "日本/none.yaml"),
        "json": ("status", "--json", "日本"),
    }[command]
    done = ended(*given, environ=ASCII, folder=tmp_path)
    wanted = {"status": 1, "json": 1, "check": 2}  # the made-up settings have another fingerprint
    assert done.returncode == wanted.get(command, 0), done.stderr
    assert b"udce6" in done.stdout
    if command == "json":
        assert json.loads(done.stdout)["path"].endswith(r"\udce6\udc9c\udcac")
    assert done.stdout.decode()


def test_a_path_that_a_run_cannot_keep(tmp_path: Path) -> None:
    """Said as such, by the check and by the run, before anything is written."""
    odd = tmp_path / "日本"
    odd.mkdir()
    (odd / "q.jsonl").write_text("", encoding="utf-8")
    (odd / "my.yaml").write_text("data: {questions: q.jsonl}\n", encoding="utf-8")
    done = ended("check", "日本/my.yaml", environ=ASCII, folder=tmp_path)
    assert (done.returncode, b"give LC_ALL=C.UTF-8" in done.stdout) == (2, True)
    done = ended("train", "日本/my.yaml", "--workspace", "run", environ=ASCII, folder=tmp_path)
    assert (done.returncode, b"give LC_ALL=C.UTF-8" in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def test_what_no_encoding_takes_is_spelt_out(made: Made, tmp_path: Path) -> None:
    """On a stdout of a small encoding, and in JSON."""
    made.path.rename(tmp_path / "日本")
    small = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C.UTF-8"}
    done = ended("watch", "--once", "日本", environ=small, folder=tmp_path)
    assert (done.returncode, rb"\u65e5\u672c" in done.stdout) == (0, True)
    assert json.loads(json_text({"path": "a\udce6", "n": [1, ("é",)]})) == {
        "path": "a\\udce6",
        "n": [1, ["é"]],
    }
    assert json_text({"at": Path("x")}) == '{"at":"PosixPath(\'x\')"}'


def test_only_lost_names_are_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any other text that cannot be encoded is our own fault, and no line hides it."""

    def command(text: str) -> None:
        monkeypatch.setattr("actors.main._run", lambda _: text.encode("ascii"))

    command("path-\udce6")
    assert main(["status"]) == 2
    assert "bin/trm status: not text in this locale: 'path-\\udce6'" in capsys.readouterr().err
    command("é")
    with pytest.raises(UnicodeEncodeError):
        main(["status"])


def test_a_lost_stdout_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who catches it may go on: what is written afterwards is dropped."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as true:
        monkeypatch.setattr(sys, "stdout", true)
        monkeypatch.setattr(sys, "__stdout__", true)
        ready_streams()
        made = sys.stdout
        assert made is not true
        ready_streams()
        assert sys.stdout is made  # once is enough
        made.write("first")
        with pytest.raises(StdoutLost, match=os.strerror(errno.EPIPE)) as lost:
            made.flush()
        assert lost.value.by_reader
        made.write("second")
        made.flush()
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        ready_streams()
        assert isinstance(sys.stdout, io.StringIO)  # a test's, or somebody's who embeds us
