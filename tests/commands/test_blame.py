"""``trm blame``: where every line of a document comes from."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from actors.workspace.versions import META, read_meta
from protocol.rows import DocumentRow
from tests.commands.house import CLASS, Made, Trm, fresh_workspace, make_history


def blamed(trm: Trm, *arguments: str | Path) -> dict[str, object]:
    told: dict[str, object] = json.loads(trm("blame", *arguments, "--json").out)
    return told


def widest(out: str) -> int:
    """Of the lines; a path is as long as it is."""
    return max(len(line) for line in out.splitlines() if not line.startswith("in /"))


def origins(told: dict[str, object]) -> dict[str, str]:
    lines = told["lines"]
    assert isinstance(lines, list)
    return {line["text"]: line["origin"] for line in lines}


def test_every_kind_of_origin(trm: Trm, made: Made) -> None:
    """Seed, edit, note and momentum, each with what let it in."""
    told = blamed(trm, CLASS, "--workspace", made.path)
    by_text = origins(told)
    assert told["version"] == "skills/v4"
    assert by_text["- Look twice."] == "seed"
    assert by_text["- Count twice."] == "e1/counting-problem/s2/proposal#1"
    assert by_text["- Name the unit."] == "e2/counting-problem/s1/proposal#0"
    assert by_text["- Read every option."] == "e2/counting-problem/s1/proposal#1"
    assert by_text["<!-- APPENDIX_START -->"] == "e2/counting-problem/s1/proposal#1"
    assert by_text["Keep counting in order."] == "e1/slow/momentum/counting-problem#0"
    edits = told["edits"]
    assert isinstance(edits, dict)
    assert len(edits) == 4
    step = edits["e1/counting-problem/s2/proposal#1"]
    assert (step["epoch"], step["step"], step["op"]) == (1, 2, "insert_after")
    assert (step["verdict"], step["p_gate"], step["lower_bound"]) == ("accept", 0.04, 0.05)
    assert step["evidence"] == ["001-1"]
    assert step["reason"] == "a rule was lacking"
    slow = edits["e1/slow/momentum/counting-problem#0"]
    assert (slow["step"], slow["verdict"], slow["wins"], slow["losses"]) == (None, "kept", 4, 1)
    assert (slow["p_harm"], slow["p_gate"]) == (0.97, None)


def test_the_table(trm: Trm, made: Made) -> None:
    """Plain where nobody looks: no colour, nothing cut, nothing behind the lines, 100 columns."""
    out = trm("blame", "counting-problem", "--workspace", made.path).out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())
    assert widest(out) <= 100
    assert "] e1 s2 accept  - Count twice." in out
    assert "] e1 slow kept  Keep counting in order." in out
    assert "accept, p_gate 0.04, gain >= +5.0%, 9 won 2 lost" in out  # the list below
    assert "kept, p_harm 0.97" in out
    assert "001-2, 002-1, 003-1" in out
    assert "none recorded" in out
    lines = [line for line in out.splitlines() if line.split()[1:2] == ["seed"]]
    assert len(lines) == len(made.texts[0].splitlines())


def test_a_long_line_is_broken_where_the_terminal_ends(
    trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between words, its rest below its beginning; without a terminal a hundred columns."""
    note = " ".join(["Mind every boat that lies in the harbour at noon."] * 6)
    made = make_history(tmp_path, note=note)
    for wide in (100, 72):
        if wide == 72:
            monkeypatch.setattr("actors.commands.console.on_terminal", lambda: True)
            monkeypatch.setenv("COLUMNS", "72")
        out = trm("blame", CLASS, "--workspace", made.path).out
        plain = re.sub("\x1b\\[[0-9;]*m", "", out)
        assert widest(plain) <= wide
        assert note in " ".join(plain.split())
        (begun,) = (line for line in plain.splitlines() if "- Mind every boat" in line)
        place = begun.index("- Mind")
        rest = plain.splitlines()[plain.splitlines().index(begun) + 1]
        assert rest[:place].strip() == ""
        assert rest[place] != " "


@pytest.mark.parametrize("named", [True, False])
def test_without_a_document_it_says_which_there_are(trm: Trm, made: Made, named: bool) -> None:
    """A folder in the document's place, or nothing at all."""
    given = [made.path] if named else ["--workspace", made.path]
    err = trm("blame", *given, expect=2).err
    assert "bin/trm blame 'Counting Problem' --workspace" in err
    assert "skills (v4): _default, Counting Problem" in err
    assert "prompts (v2): system, view_node" in err
    assert "no manifest.json" in trm("blame", made.path.parent, expect=2).err


def test_an_older_version(trm: Trm, made: Made) -> None:
    """v2 knows nothing of what came later; v1 is the seed's alone."""
    by_text = origins(blamed(trm, CLASS, "--workspace", made.path, "--version", "v2"))
    assert "- Name the unit." not in by_text
    assert set(by_text.values()) == {"seed", "e1/counting-problem/s2/proposal#1"}
    seed = blamed(trm, CLASS, "--workspace", made.path, "--version", "v1")
    assert set(origins(seed).values()) == {"seed"}


def test_a_prompt(trm: Trm, made: Made) -> None:
    """The system prompt by its name, and a tool that nothing changed."""
    told = blamed(trm, "system", "--workspace", made.path)
    assert told["version"] == "prompts/v2"
    assert origins(told) == {
        "You answer questions.": "seed",
        "Say how sure you are.": "e1/slow/system#0",
    }
    assert set(origins(blamed(trm, "view_node", "--workspace", made.path)).values()) == {"seed"}


def test_by_file(trm: Trm, made: Made) -> None:
    """The file says workspace, version and document."""
    told = blamed(trm, made.path / "skills" / "v2" / "counting-problem.md")
    assert (told["document"], told["version"]) == (CLASS, "skills/v2")
    told = blamed(trm, made.path / "prompts" / "v1" / "tools" / "view_node.md")
    assert (told["document"], told["version"]) == ("view_node", "prompts/v1")


def test_before_the_first_step(trm: Trm, tmp_path: Path) -> None:
    """A workspace without a ledger holds the seed's lines alone."""
    told = blamed(trm, CLASS, "--workspace", fresh_workspace(tmp_path))
    assert set(origins(told).values()) == {"seed"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Juggling"], "_default, Counting Problem, system, view_node"),
        ([CLASS, "--version", "v9"], "v1, v2, v3, v4"),
        (["view_node", "--version", "v9"], "v1, v2"),
        (["no/such/file.md"], "no such file"),
    ],
)
def test_what_is_not_there(trm: Trm, made: Made, arguments: list[str], said: str) -> None:
    """The message names what there is."""
    code = 1 if said.startswith("v1") else 2
    err = trm("blame", *arguments, "--workspace", made.path, expect=code).err
    assert said in err


def test_no_workspace(trm: Trm, tmp_path: Path) -> None:
    """A folder without a manifest is none."""
    assert "no manifest.json" in trm("blame", CLASS, "--workspace", tmp_path, expect=2).err


def rewritten(workspace: Path, version: str, text: str) -> None:
    """Change a skill by hand, and its hash too, as somebody with good intentions would."""
    from actors.workspace.files import pretty_json, sha256_hex

    folder = workspace / "skills" / version
    meta = read_meta(workspace / "skills", version)
    (folder / "counting-problem.md").write_text(text, encoding="utf-8")
    files = meta.files | {"counting-problem.md": sha256_hex(text.encode())}
    (folder / META).write_bytes(pretty_json(msgspec.structs.replace(meta, files=files)))


def test_a_text_edited_by_hand_is_refused(trm: Trm, made: Made) -> None:
    """Whether or not its hash was mended: the ledger does not know it."""
    path = made.path / "skills" / "v4" / "counting-problem.md"
    path.write_text(made.texts[3] + "- By hand.\n", encoding="utf-8")
    err = trm("blame", CLASS, "--workspace", made.path, expect=1).err
    assert "was changed after meta.json" in err
    rewritten(made.path, "v4", made.texts[3].replace("Name", "Call"))
    err = trm("blame", CLASS, "--workspace", made.path, expect=1).err
    assert "does not know" in err
    assert "trm diff skills/v3 skills/v4" in err
    rewritten(made.path, "v3", made.texts[2].replace("Keep", "Stop"))
    err = trm("blame", CLASS, "--workspace", made.path, "--version", "v3", expect=1).err
    assert "does not hold this text" in err


def test_a_text_that_the_ledger_lost(trm: Trm, made: Made) -> None:
    """Without the text between two steps there is no way back."""
    with closing(sqlite3.connect(made.path / "run.db")) as connection, connection:
        connection.execute(f"DELETE FROM {DocumentRow.TABLE}")
    err = trm("blame", CLASS, "--workspace", made.path, expect=1).err
    assert "is not in run.db" in err


def test_a_ledger_of_another_version(trm: Trm, made: Made) -> None:
    """A lacking column is told: SQLite would answer with the column's name."""
    with closing(sqlite3.connect(made.path / "run.db")) as connection, connection:
        connection.execute("ALTER TABLE edits DROP COLUMN document")
    err = trm("blame", CLASS, "--workspace", made.path, expect=2).err
    assert "another version" in err
    assert "edits.document" in err


def test_a_damaged_ledger(trm: Trm, made: Made) -> None:
    """No traceback, and what to do."""
    (made.path / "run.db").write_bytes(b"no database" * 500)
    assert "restore it" in trm("blame", CLASS, "--workspace", made.path, expect=2).err


def test_control_characters_are_shown_not_sent(trm: Trm, tmp_path: Path) -> None:
    """A document must not steer the terminal of who reads it."""
    made = make_history(tmp_path, note="Mind \x1b[31mthis.")
    out = trm("blame", CLASS, "--workspace", made.path).out
    assert "\x1b" not in out
    assert "Mind ^[[31mthis." in out


def test_it_changes_nothing(trm: Trm, made: Made) -> None:
    """Not even a file of SQLite's beside the database."""
    before = {path: path.stat().st_mtime_ns for path in made.path.rglob("*")}
    trm("blame", CLASS, "--workspace", made.path)
    assert {path: path.stat().st_mtime_ns for path in made.path.rglob("*")} == before
