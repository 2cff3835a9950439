"""The command line's table: every command is there, explains itself, and stands alone."""

from __future__ import annotations

import io
import json
import sys

import pytest

from actors.main import COMMANDS, build_parser
from tests.commands.house import Trm


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(trm: Trm, command: str) -> None:
    """--help has an example and the exit codes."""
    out = trm(command, "--help").out
    assert f"bin/{'train' if command == 'train' else 'trm'}" in out
    assert "example" in out.casefold()
    assert "exit codes" in out.casefold()


def test_all_are_listed(trm: Trm) -> None:
    """In the help of the whole, and a wrong name is told what there is."""
    out = trm("--help").out
    assert all(f"    {command}" in out for command in COMMANDS)
    assert "'blame'" in trm("blam", "x", expect=2).err


def test_a_command_loads_no_other() -> None:
    """The parser of one command knows that one alone."""
    assert "diff" not in build_parser("gate").format_help()


def test_gate(trm: Trm) -> None:
    """Outcomes by hand, as text and as JSON."""
    out = trm("gate", "WWWW WWWW", "--alpha", "0.2").out
    assert out.startswith("look 1: W 4  L 0")
    assert "accept" in out
    assert json.loads(trm("gate", "wwww wwww", "--json").out)["verdict"] == "accept"
    assert "bin/trm gate: " in trm("gate", "XYZ", expect=2).err


def test_answers(trm: Trm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter for each line; a line that cannot be read is named."""
    case = json.dumps({"text": "B", "options": ["A. one", "B. two"]})
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{case}\n\n{case}\n"))
    lines = trm("answers").out.splitlines()
    assert [json.loads(line)["letter"] for line in lines] == ["B", "B"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{case}\nnonsense\n"))
    assert "line 2" in trm("answers", expect=2).err
