"""``trm patch``: the engine by hand, its report, and that nothing is written unasked."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from actors.config import ROOT
from actors.evolver.patch import Splice, undo
from protocol.documents import text_hash
from tests.commands.house import Trm
from tests.evolver.make import SKILL

PROMPTS = ROOT / "seeds" / "demo" / "prompts" / "v1"
APPEND = {"op": "append", "content": "- Compare the start times."}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "order.md"
    path.write_bytes(SKILL.encode())
    return path


def edits_file(tmp_path: Path, *edits: object) -> Path:
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(edits), encoding="utf-8")
    return path


def report(out: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(out)
    return told


def statuses(told: dict[str, object]) -> list[str]:
    edits = told["edits"]
    assert isinstance(edits, list)
    return [edit["status"] for edit in edits]


def test_the_report_alone(trm: Trm, document: Path, tmp_path: Path) -> None:
    """Without --out nothing is written, and the report says what would be."""
    done = trm("patch", document, edits_file(tmp_path, APPEND))
    told = report(done.out)
    assert statuses(told) == ["applied"]
    assert (told["document_ok"], told["applied"], told["written"]) == (True, 1, None)
    assert document.read_bytes() == SKILL.encode()
    assert "--out F" in done.err


def test_it_is_written_where_out_says(trm: Trm, document: Path, tmp_path: Path) -> None:
    """The hash is the file's, and the inverse leads back byte for byte."""
    out = tmp_path / "new.md"
    told = report(trm("patch", document, edits_file(tmp_path, APPEND), "--out", out).out)
    text = out.read_bytes().decode()
    assert "- Compare the start times." in text
    assert told["sha256"] == text_hash(text)
    assert told["chars"] == len(text)
    assert told["written"] == str(out)
    inverse = told["inverse"]
    assert isinstance(inverse, list)
    assert undo(text, [Splice(**splice) for splice in inverse]) == SKILL
    assert document.read_bytes() == SKILL.encode()


def test_in_place_when_named(trm: Trm, document: Path, tmp_path: Path) -> None:
    """The document itself may be named, and nothing is left beside it."""
    trm("patch", document, edits_file(tmp_path, APPEND), "--out", document)
    assert document.read_bytes() != SKILL.encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edits.json", "order.md"]


def test_refused_edits_leave_the_others_in_force(trm: Trm, document: Path, tmp_path: Path) -> None:
    """P1_6: each has its status, protected parts stand, and the exit code says so."""
    out = tmp_path / "new.md"
    edits = edits_file(
        tmp_path,
        {"op": "replace", "target": "- Look twice", "content": "- x"},
        {"op": "delete", "target": "task_type: Order"},
        {"op": "append", "content": "<!-- MOMENTUM_START -->"},
        {"op": "replace", "target": "- None yet.", "content": "- None yet."},
        {"op": "append", "content": " "},
        {"op": "delete", "target": "nowhere"},
        APPEND,
    )
    done = trm("patch", document, edits, "--out", out, "--edits", "10", expect=1)
    told = report(done.out)
    assert statuses(told) == [
        *("ambiguous", "protected", "marker", "noop", "empty", "no_match", "applied")
    ]
    assert told["written"] == str(out)
    assert "edit 0: ambiguous" in done.err


def test_nothing_applied_nothing_written(trm: Trm, document: Path, tmp_path: Path) -> None:
    """There is no new document then, and an old one at --out stays."""
    out = tmp_path / "new.md"
    out.write_text("old", encoding="utf-8")
    edits = edits_file(tmp_path, {"op": "delete", "target": "nowhere"})
    done = trm("patch", document, edits, "--out", out, expect=1)
    assert out.read_text(encoding="utf-8") == "old"
    assert "was not written" in done.err
    assert report(trm("patch", document, edits_file(tmp_path), expect=1).out)["edits"] == []


def test_budgets(trm: Trm, document: Path, tmp_path: Path) -> None:
    """The configuration's by default, else as said."""
    many = [{"op": "append", "content": f"- Rule number {n} is another one."} for n in range(6)]
    edits = edits_file(tmp_path, *many)
    told = report(trm("patch", document, edits, "--max-growth", "9", expect=1).out)
    assert statuses(told) == ["applied"] * 4 + ["over_budget"] * 2
    told = report(
        trm("patch", document, edits, "--edits", "9", "--max-growth", "0.1", expect=1).out
    )
    assert "too_long" in statuses(told)
    trm("patch", document, edits, "--edits", "9", "--max-growth", "9")
    told = report(trm("patch", document, edits, "--max-chars", "10", expect=1).out)
    assert set(statuses(told)) == {"too_long"}
    for bad in (["--edits", "0"], ["--edits", "many"], ["--max-growth", "-1"]):
        trm("patch", document, edits, *bad, expect=2)


def test_a_whole_reply_and_stdin(trm: Trm, document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor's reply as it came; what is no edit is named, not dropped in silence."""
    reply = json.dumps({"suggestions": [], "edits": [APPEND], "notes": ["Mind it."]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(reply.encode())))
    done = trm("patch", document, "-")
    told = report(done.out)
    assert statuses(told) == ["applied"]
    assert told["ignored"] == ["notes"]
    assert "notes" in done.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'[\n{"op": "append",\n}]', "line 3"),
        (b'[\n"\xff"]', "line 2"),
        (b"", "line 1"),
        (b'{"suggestions": []}', "'edits'"),
        (b'{"edits": [{"op": "move"}]}', "edits[0].op"),
        (b'[{"op": "append", "contents": "x"}]', "contents"),
        (b'[{"content": "x"}]', "op"),
        (b'["append"]', "[0]"),
        (b"7", "int"),
        (b'[{"op": "append", "content": "\\ud800"}]', "edits[0].content"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_edits_that_cannot_be_read(
    trm: Trm, document: Path, tmp_path: Path, data: bytes, said: str
) -> None:
    """The message names line or key and what is wanted; nothing is written."""
    edits = tmp_path / "edits.json"
    edits.write_bytes(data)
    out = tmp_path / "new.md"
    done = trm("patch", document, edits, "--out", out, expect=2)
    assert said in done.err
    assert str(edits) in done.err
    assert not out.exists()
    assert done.out == ""


def test_files_that_cannot_be_used(trm: Trm, document: Path, tmp_path: Path) -> None:
    """Missing, no text, no folder."""
    edits = edits_file(tmp_path, APPEND)
    assert "cannot be read" in trm("patch", tmp_path / "no.md", edits, expect=2).err
    assert "cannot be read" in trm("patch", document, tmp_path / "no.json", expect=2).err
    odd = tmp_path / "odd.md"
    odd.write_bytes("---\nname: x\n---\n".encode("utf-16"))
    assert "not UTF-8" in trm("patch", odd, edits, expect=2).err
    assert "is a folder" in trm("patch", document, edits, "--out", tmp_path, expect=2).err
    nowhere = tmp_path / "no" / "new.md"
    assert "is not there" in trm("patch", document, edits, "--out", nowhere, expect=2).err


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_stay(trm: Trm, tmp_path: Path, mark: str) -> None:
    """P0_6: CR LF and the mark are the document's own; what is added follows them."""
    document = tmp_path / "crlf.md"
    before = (mark + SKILL.replace("\n", "\r\n")).encode()
    document.write_bytes(before)
    edits = edits_file(tmp_path, {"op": "append", "content": "- One.\n- Two."})
    told = report(trm("patch", document, edits, "--out", document).out)
    after = document.read_bytes()
    assert b"- One.\r\n- Two.\r\n" in after
    assert after.count(b"\n") == after.count(b"\r\n")
    inverse = told["inverse"]
    assert isinstance(inverse, list)
    assert undo(after.decode(), [Splice(**splice) for splice in inverse]).encode() == before


def test_a_damaged_document_is_never_written(trm: Trm, tmp_path: Path) -> None:
    """P1_6: what is wrong with it is said, and every edit refused."""
    document = tmp_path / "damaged.md"
    document.write_text(SKILL + "\n<!-- APPENDIX_END -->\n", encoding="utf-8")
    out = tmp_path / "new.md"
    done = trm("patch", document, edits_file(tmp_path, APPEND), "--out", out, expect=1)
    told = report(done.out)
    assert told["document_ok"] is False
    assert told["problems"]
    assert not out.exists()
    assert "mend it by hand" in done.err


@pytest.mark.parametrize(
    ("name", "kind", "frozen"),
    [
        ("system.md", "system", "Reply with one JSON object and nothing else"),
        ("tools/view_node.md", "tool", "copied from what you were shown"),
    ],
)
def test_prompts_keep_their_frozen_sections(
    trm: Trm, tmp_path: Path, name: str, kind: str, frozen: str
) -> None:
    """What a prompt promises about calls and replies is not open to edits."""
    edits = edits_file(tmp_path, {"op": "replace", "target": frozen, "content": "anything"}, APPEND)
    told = report(trm("patch", PROMPTS / name, edits, expect=1).out)
    assert told["kind"] == kind
    assert statuses(told) == ["frozen", "applied"]


def test_a_document_of_unknown_kind(trm: Trm, tmp_path: Path) -> None:
    """Asks for --kind, and takes it."""
    document = tmp_path / "plain.md"
    document.write_text("# Plain\n\nText.\n", encoding="utf-8")
    edits = edits_file(tmp_path, APPEND)
    assert "--kind" in trm("patch", document, edits, "--max-growth", "9", expect=2).err
    trm("patch", document, edits, "--kind", "skill", "--max-growth", "9")
    done = trm("patch", document, edits, "--kind", "tool", "--max-growth", "9", expect=1)
    assert report(done.out)["document_ok"] is False  # nothing of it would be kept


def test_a_link_stays_a_link(trm: Trm, document: Path, tmp_path: Path) -> None:
    """The document that it leads to is replaced."""
    link = tmp_path / "link.md"
    link.symlink_to(document)
    trm("patch", link, edits_file(tmp_path, APPEND), "--out", link)
    assert link.is_symlink()
    assert "- Compare the start times." in document.read_text(encoding="utf-8")


def test_a_device_is_no_document(trm: Trm, tmp_path: Path) -> None:
    """Reading it would never end."""
    err = trm("patch", "/dev/zero", edits_file(tmp_path, APPEND), expect=2).err
    assert "is no file" in err
