"""``trm report``: a run as one page, whatever state it is in and whatever its texts hold."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from tests.commands.house import CLASS, Made, Trm, add_rows, fresh_workspace
from tests.commands.pages import HOSTILE, make_hostile, parse, policy_hash, unpacked


def told(trm: Trm, workspace: Path, *options: str | Path) -> str:
    """The page that the command writes."""
    out = workspace.parent / "page.html"
    trm("report", workspace, "--out", out, *options)
    return out.read_text(encoding="utf-8")


def change(made: Made, statement: str) -> None:
    """Change rows of the ledger."""
    with closing(sqlite3.connect(made.path / "run.db")) as connection, connection:
        connection.execute(statement)


def test_what_is_on_the_page(trm: Trm, made: Made) -> None:
    """Verdict, curves, edits with reasons and evidence, slow update, documents, questions."""
    page = parse(told(trm, made.path))
    for words in (
        "The trained documents are not shown to be better on test.",
        "On test, which training never sees",
        "On val, which decides about packages",
        "- Guess boldly.",
        "- Count twice.",
        "target found several times",
        "a rule was lacking",
        "epoch 1, step 2",
        "gain at least",
        "+5.0 points",
        "Kept",
        "Say how sure you are.",
        "How many red boats lie in the harbour at noon today?",
        "oracle",
    ):
        assert words in page.words, words
    places = set(page.having("id"))
    assert all(href[1:] in places for href in page.having("href"))


def test_it_is_closed_off(trm: Trm, made: Made) -> None:
    """One script and one style sheet, let in by their hashes; nothing is loaded from anywhere."""
    text = told(trm, made.path)
    page = parse(text)
    policy = next(held for held in page.having("content") if "default-src" in held)
    run = [body for held, body in page.scripts if held.get("type") != "text/plain"]
    assert len(run) == 1
    assert "default-src 'none'" in policy
    assert f"script-src {policy_hash(run[0])};" in policy
    assert f"style-src {policy_hash(page.styles[0])};" in policy
    assert "unsafe" not in policy
    for attribute in ("src", "style", "srcdoc", "action"):
        assert page.having(attribute) == []
    assert all(href.startswith("#") for href in page.having("href"))
    assert not re.search(r"https?://|@import|url\(", run[0] + page.styles[0])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", run[0])


def test_hostile_texts_stay_texts(trm: Trm, made: Made) -> None:
    """Tags in skills, subtitles, replies and ids are read, never obeyed."""
    make_hostile(made.path)
    text = told(trm, made.path)
    page = parse(text)
    names = {name for name, _ in page.elements}
    assert not names & {"iframe", "img", "object", "embed", "form"}
    assert len([1 for held, _ in page.scripts if held.get("type") != "text/plain"]) == 1
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]*", body) for held, body in page.scripts if held)
    assert not [key for _, held in page.elements for key in held if key.startswith("on")]
    for line in HOSTILE[:5]:
        assert line in page.words, line
    assert "\x1b" not in text
    assert "\x00" not in text
    index = cast("dict[str, list[dict[str, object]]]", unpacked(text, "data-index"))
    assert any(one["id"] == "001-2" for one in index["questions"])
    # an edit's evidence leads to the question, in the pass that the editor read
    asked = [held for name, held in page.elements if name == "a" and held.get("data-q")]
    assert any(held.get("data-p") for held in asked)


def test_without_transcripts(trm: Trm, made: Made) -> None:
    """What the agent read is left out, its outcomes stay."""
    make_hostile(made.path)
    whole, less = told(trm, made.path), told(trm, made.path, "--no-transcripts")
    assert 'id="data-0"' in whole
    assert 'id="data-0"' not in less
    assert "outcomes only" in parse(less).words
    assert unpacked(less, "data-index")


def test_the_same_page_twice(trm: Trm, made: Made) -> None:
    """Nothing of the moment is in it."""
    assert told(trm, made.path) == told(trm, made.path)


def test_a_workspace_without_a_ledger(trm: Trm, tmp_path: Path) -> None:
    """There is nothing to report: no page is written, what lacks is named, and what to do."""
    workspace = fresh_workspace(tmp_path)
    err = trm("report", workspace, expect=2).err
    assert f"{workspace}: has no run.db" in err
    assert f"bin/train --resume {workspace}" in err
    assert not (workspace / "report.html").exists()


def test_a_run_that_has_not_begun(trm: Trm, tmp_path: Path) -> None:
    """A ledger without a row: it says so, and shows the questions."""
    workspace = fresh_workspace(tmp_path)
    add_rows(workspace)
    page = parse(told(trm, workspace))
    assert "This run has not begun" in page.words
    assert "No package was evaluated yet." in page.words
    assert "Who waves?" in page.words


def test_a_run_that_was_stopped(trm: Trm, made: Made) -> None:
    """Two of its epochs are whole: how many were planned, and how to go on."""
    change(made, "UPDATE epochs SET epochs_since_best_improved = 0")
    page = parse(told(trm, made.path))
    assert "bin/train --resume goes on with it" in page.words


def test_a_run_under_way(trm: Trm, made: Made) -> None:
    """While a process holds the workspace the page says so, and takes no lock itself."""
    from actors.workspace.lock import WorkspaceLock

    with WorkspaceLock(made.path):
        page = parse(told(trm, made.path))
    assert "Under way: 2 of" in page.words


def test_what_cannot_be_read_is_told(trm: Trm, made: Made) -> None:
    """The questions are gone and a look is damaged: the page and the terminal name both."""
    (made.path.parent / "questions.jsonl").unlink()
    out = made.path.parent / "page.html"
    done = trm("report", made.path, "--out", out)
    words = parse(out.read_text(encoding="utf-8")).words
    for text in (words, done.err):
        assert "the questions’ texts" in text or "the questions' texts" in text
        assert "looks of e1/counting-problem/s1" in text
    assert "its text is not at hand" in words


def test_a_text_of_unknown_origin(trm: Trm, made: Made) -> None:
    """A version that was changed by hand is shown as that, and the rest is told."""
    path = made.path / "skills" / "v4" / "counting-problem.md"
    path.write_text(made.texts[3] + "- By hand.\n", encoding="utf-8")
    assert "was changed after meta.json" in parse(told(trm, made.path)).words


def test_where_it_writes(trm: Trm, made: Made) -> None:
    """report.html in the workspace if nothing is said; nothing else is touched."""
    before = {path: path.stat().st_mtime_ns for path in made.path.rglob("*") if path.is_file()}
    out = trm("report", made.path).out
    assert str(made.path / "report.html") in out
    after = {path: path.stat().st_mtime_ns for path in made.path.rglob("*") if path.is_file()}
    assert set(after) - set(before) == {made.path / "report.html"}
    assert all(after[path] == stamp for path, stamp in before.items())


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--out", "no/such/folder/x.html"], "is not there"), (["--out", "."], "is a folder")],
)
def test_an_unusable_out(trm: Trm, made: Made, options: list[str], said: str) -> None:
    """Told before anything is read."""
    assert said in trm("report", made.path, *options, expect=2).err


def test_no_workspace(trm: Trm, tmp_path: Path) -> None:
    """A folder without a manifest is none."""
    assert "no manifest.json" in trm("report", tmp_path, expect=2).err


def test_a_damaged_ledger(trm: Trm, made: Made) -> None:
    """No traceback, and what to do; an older page stays as it was."""
    (made.path / "report.html").write_text("older", encoding="utf-8")
    (made.path / "run.db").write_bytes(b"no database" * 500)
    assert "restore it" in trm("report", made.path, expect=2).err
    assert (made.path / "report.html").read_text(encoding="utf-8") == "older"


def test_missing_answers_are_not_wrong(trm: Trm, made: Made) -> None:
    """P1_4: a missing outcome has its own mark, in the list and among the failures."""
    change(
        made,
        "UPDATE outcomes SET outcome = 'missing', missing_kind = 'timeout' "
        "WHERE run_key LIKE 'e2/%'",
    )
    page = parse(told(trm, made.path))
    marks = [held for held in page.having("data-marks") if "x" in held]
    assert marks
    assert "timeout" in page.words
    assert CLASS in page.words


@pytest.mark.parametrize("name", ["run.db", "manifest.json"])
def test_nothing_but_a_page_is_replaced(trm: Trm, made: Made, name: str) -> None:
    """A workspace is only read: ``--out`` on its ledger once made an HTML file of it."""
    before = (made.path / name).read_bytes()
    err = trm("report", made.path, "--out", made.path / name, expect=2).err
    assert "no earlier report" in err
    assert (made.path / name).read_bytes() == before
