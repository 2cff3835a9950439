"""``bin/trm factorial``: reads a list of edits, decides it, says what is wrong with it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import msgspec
import pytest

from tests.commands.house import Trm

CASES = Path(__file__).parents[1] / "gate" / "cases" / "factorial_vectors.json"


class Case(msgspec.Struct):
    name: str
    q: str
    edits: msgspec.Raw
    adopted: list[str]
    tau: float
    cut: float | None


class Cases(msgspec.Struct):
    decision: list[Case]


@pytest.mark.parametrize(
    "case",
    msgspec.json.decode(CASES.read_bytes(), type=Cases).decision,
    ids=lambda case: case.name,
)
def test_vectors(trm: Trm, tmp_path: Path, case: Case) -> None:
    """Every vector, as a file."""
    path = tmp_path / "edits.json"
    path.write_bytes(bytes(case.edits))
    found = json.loads(trm("factorial", path, "--q", case.q, "--json").out)
    assert found["adopted"] == case.adopted
    assert (found["tau"], found["cut"]) == (pytest.approx(case.tau), pytest.approx(case.cut))
    assert found["n"] == len(case.adopted)


def test_for_people(trm: Trm, tmp_path: Path) -> None:
    """A line per edit, in the order given; control characters of an id are spelt out."""
    path = tmp_path / "edits.json"
    path.write_text(
        json.dumps(
            [
                {"id": "a", "W": 9, "L": 0, "group": "g"},
                {"id": "b", "W": 8, "L": 0, "group": "g"},
                {"id": "c\u001b", "W": 1, "L": 2},
                {"id": "d", "W": 0, "L": 2, "dropped": True, "D_seen": 5},
            ]
        )
    )
    lines = trm("factorial", path, "--q", "0.2").out.splitlines()
    assert lines[0] == "a: W 9  L 0  D 9  p 0.001953  adopt"
    assert lines[1].endswith("reject (another of its group is adopted)")
    assert lines[2] == "c^[: W 1  L 2  D 3  p 0.875  reject"
    assert lines[3] == "d: W 0  L 2  D 5  p 1  dropped"
    assert lines[4].startswith("1 of 4 adopted; tau 0.0")


def test_from_stdin_and_with_a_cap(trm: Trm, monkeypatch: pytest.MonkeyPatch) -> None:
    """- is stdin; a smaller cap turns down what a larger one takes."""

    def decide(*options: str) -> dict[str, object]:
        data = b'[{"id": "e", "W": 4, "L": 0}]'
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        found: dict[str, object] = json.loads(
            trm("factorial", "-", "--q", "3/20", "--json", *options).out
        )
        return found

    assert decide()["adopted"] == ["e"]
    assert decide("--cap", "1/20") == {
        "adopted": [],
        "tau": 0.0,
        "cut": None,
        "p": [1 / 16],
        "n": 0,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "wanted: ["),
        ('{"edits": []}', "wanted: ["),
        ('[{"id": "e", "W": 1}]', "missing required field `L` - at `$[0]`"),
        ('[{"id": "e", "W": 1.5, "L": 0}]', "at `$[0].W`"),
        ('[{"id": "e", "W": 1, "L": 0, "won": 3}]', "unknown field `won`"),
        ('[{"id": "e", "W": 1, "L": -1}]', "edits[0].W, L and D_seen cannot be negative"),
        ('[{"id": "e", "W": 1, "L": 1, "dropped": true}]', "edits[0].D_seen: is missing"),
        ('[{"id": "e", "W": 1, "L": 1, "D_seen": 1}]', "edits[0].D_seen: 1 is less than W + L, 2"),
        ('[{"id": "e", "W": 1, "L": 1}, {"id": "e", "W": 1, "L": 1}]', "edits[1].id: 'e' comes"),
        ('[{"id": "", "W": 1, "L": 1}]', "edits[0].id: is empty"),
        ('[{"id": " ", "W": 1, "L": 1}]', "edits[0].id: is empty"),
        ('[{"id": "e", "W": 1, "L": 1, "group": ""}]', "edits[0].group: of 'e' is empty"),
        (
            '[{"id": "d", "W": 1, "L": 1}, {"id": "e", "W": 1, "L": 1, "W": 9}]',
            "edits[1].W: is given twice",
        ),
        ('[{"id": "e", "W": 5001, "L": 0}]', "edits[0].more than 5000"),
    ],
)
def test_what_cannot_be_read(trm: Trm, tmp_path: Path, text: str, message: str) -> None:
    """Named by file and key, exit code 2, nothing on stdout."""
    path = tmp_path / "edits.json"
    path.write_text(text)
    done = trm("factorial", path, "--q", "3/20", "--json", expect=2)
    assert f"bin/trm factorial: {path}: " in done.err
    assert message in done.err
    assert done.out == ""


def test_a_file_that_is_not_there(trm: Trm, tmp_path: Path) -> None:
    """No file, a folder, bytes that are not UTF-8."""
    for name, content in (("none.json", None), ("latin.json", b'[{"id": "\xe9", "W": 1, "L": 0}]')):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        assert name in trm("factorial", tmp_path / name, "--q", "3/20", expect=2).err
    assert "cannot be read" in trm("factorial", tmp_path, "--q", "3/20", expect=2).err


@pytest.mark.parametrize("q", ["0", "1", "20/3", "3/0", "x", "nan", "-1", "1e-2", "9" * 50])
def test_q_is_a_probability(trm: Trm, tmp_path: Path, q: str) -> None:
    """Above 0 and below 1, written as a fraction or a decimal."""
    assert "above 0 and below 1" in trm("factorial", tmp_path / "e", f"--q={q}", expect=2).err
