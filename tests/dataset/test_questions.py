"""Question files: what real files hold is read, what is wrong is said, all of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.dataset.check import strip_labels
from actors.dataset.errors import QuestionsError
from actors.dataset.questions import load_questions
from tests.dataset.material import question, raw, write_jsonl

OFFICIAL = """[
  {"video_id": "601", "duration": "long", "domain": "Knowledge", "sub_category": "Astronomy",
   "questions": [
    {"question_id": "601-2", "task_type": "OCR Problems", "question": "Which\\norder, ①..④?",
     "options": ["A. A.", "B. F.", "C. B.", "D. K."], "answer": "C", "response": ""},
    {"question_id": "601-1", "task_type": "Counting Problem", "question": "A list [1,], {2,}?",
     "options": ["A. A man.", "B. Café.", "C. A man.", "D. Four."], "answer": "A",},
   ],},
]
"""


def problems_of(path: Path) -> list[str]:
    with pytest.raises(QuestionsError) as caught:
        load_questions(path)
    assert str(path) in str(caught.value)
    assert all(problem.remedy for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_official_with_trailing_commas(tmp_path: Path) -> None:
    """The official template's commas are forgiven, and none inside a string is lost."""
    path = tmp_path / "official.json"
    path.write_text(OFFICIAL, encoding="utf-8")
    first, second = load_questions(path)
    assert (first.question_id, second.question_id) == ("601-1", "601-2")
    assert first.question == "A list [1,], {2,}?"
    assert first.options == ("A man.", "Café.", "A man.", "Four.")  # a tie is a fact, no problem
    assert second.options == ("A.", "F.", "B.", "K.")
    assert second.question == "Which\norder, ①..④?"
    assert (second.domain, second.sub_category, second.duration) == (
        "Knowledge",
        "Astronomy",
        "long",
    )


@pytest.mark.parametrize(
    ("options", "bodies"),
    [
        pytest.param(("A. A.", "B. F.", "C. B.", "D. K."), ("A.", "F.", "B.", "K."), id="letters"),
        pytest.param(("A. A cat.", "B. A."), ("A cat.", "A."), id="article"),
        pytest.param(("A. Lincoln", "Grant"), ("A. Lincoln", "Grant"), id="an initial, no label"),
        pytest.param(("B. Two", "A. One"), ("B. Two", "A. One"), id="labels of other positions"),
        pytest.param(("A.", "B."), ("A.", "B."), id="bare letters"),
        pytest.param(("A man", "Boy"), ("A man", "Boy"), id="no label"),
    ],
)
def test_labels_of_their_own_position(options: tuple[str, ...], bodies: tuple[str, ...]) -> None:
    """Only the label of an option's own position goes, and only when all have theirs."""
    assert strip_labels(options) == bodies


@given(st.lists(st.text(min_size=1).filter(lambda s: s == s.strip() and s != ""), max_size=8))
def test_labelled_bodies_come_back(bodies: list[str]) -> None:
    """Whatever a body is, labelling and stripping returns it."""
    labelled = [f"{letter}. {body}" for letter, body in zip("ABCDEFGH", bodies, strict=False)]
    assert strip_labels(labelled) == tuple(bodies)


def test_options_as_python_list_string(tmp_path: Path) -> None:
    """Some tables keep the list as its repr."""
    item = raw(question(1)) | {"options": "['A. It\\'s red.', 'B. Blue.']"}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(item), encoding="utf-8")
    assert load_questions(path)[0].options == ("It's red.", "Blue.")


def test_jsonl_round_trip(tmp_path: Path) -> None:
    """A BOM and blank lines are fine; order is by id."""
    items = [question(2), question(1, 2), question(1, 1)]
    path = write_jsonl(tmp_path / "q.jsonl", items)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\n\n")
    assert load_questions(path) == (items[2], items[1], items[0])


@pytest.mark.parametrize("video_id", ["-a_B3cdEfg", "_zzzzzzzzz", "601", "é"])
def test_video_ids_as_they_come(tmp_path: Path, video_id: str) -> None:
    """Ids that begin with - or _ are no mistake."""
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(raw(question(1)) | {"video_id": video_id}), encoding="utf-8")
    assert load_questions(path)[0].video_id == video_id


def test_every_problem_is_named(tmp_path: Path) -> None:
    """One error, one line per problem, each with its place and remedy (row fail-loud)."""
    lines = [
        raw(question(1)),
        raw(question(1)),
        raw(question(2)) | {"answer": "E"},
        raw(question(3)) | {"options": ["A. x"]},
        {key: value for key, value in raw(question(4)).items() if key != "task_type"},
        raw(question(5)) | {"question": None, "answer": "b"},
        raw(question(6)) | {"video_id": "../6"},
        raw(question(7)) | {"options": ["A. x", "", 3, "D. y"]},
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    path = tmp_path / "q.jsonl"
    path.write_bytes(data + b'\n{"question_id": "\xff"}\nnot json\n[1]\n')
    found = problems_of(path)
    for expected in (
        "001-1: question_id stands 2 times: line 1, line 2",
        "line 3 (002-1): answer 'E' is no letter of its 4 options",
        "line 4 (003-1): 1 options, expected 2 to 8",
        "line 5 (004-1): task_type is missing",
        "line 6 (005-1): question is null, not a string",
        "line 6 (005-1): answer 'b' is no letter",
        "line 7 (006-1): video_id '../6' cannot be the name of its tree",
        "line 8 (007-1): option 2 is empty or no text",
        "line 8 (007-1): option 3 is empty or no text",
        "line 9: not UTF-8: byte 0xff",
        "line 10: not JSON",
        "line 11: expected an object, got list",
    ):
        assert any(problem.startswith(expected) for problem in found), (expected, found)


def test_official_wants_four_options(tmp_path: Path) -> None:
    """Video-MME has four; our own form allows two to eight."""
    item = raw(question(1)) | {"options": ["x", "y"]}
    video = {"video_id": "001", "questions": [item]}
    official = tmp_path / "q.json"
    official.write_text(json.dumps([video]), encoding="utf-8")
    assert problems_of(official) == [
        "video 001, question 1 (001-1): 2 options, expected 4; give 4 options"
    ]
    own = tmp_path / "q.jsonl"
    own.write_text(json.dumps(item), encoding="utf-8")
    assert len(load_questions(own)) == 1


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("q.jsonl", b"\n", "holds no question"),
        ("q.json", b"{}", "expected a list of videos"),
        ("q.json", b"[1, {}]", "questions is missing"),
        ("q.json", b'[\n"\xe9"]', "line 2: not UTF-8"),
        ("q.json", b"[", "not JSON"),
        ("q.csv", b"", "unknown form '.csv'"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    """Each says what is wrong."""
    path = tmp_path / name
    path.write_bytes(data)
    assert expected in "\n".join(problems_of(path))


def test_missing_file(tmp_path: Path) -> None:
    """The setting to look at is named."""
    assert "data.questions" in problems_of(tmp_path / "none.jsonl")[0]


def test_clashes_between_questions(tmp_path: Path) -> None:
    """Two spellings of a class would share a skill file; a video has one sub-category."""
    items = [
        question(1, 1, "OCR Problems", sub_category="Art"),
        question(1, 2, "OCR-Problems", sub_category="Law"),
    ]
    text = "\n".join(problems_of(write_jsonl(tmp_path / "q.jsonl", items)))
    assert "share the file name 'ocr-problems'" in text
    assert "sub_category differs" in text


def test_half_a_surrogate_is_a_problem(tmp_path: Path) -> None:
    """It would crash the first write to disk, hours later."""
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(raw(question(1)) | {"question": "\ud83d"}), encoding="utf-8")
    assert "surrogate" in problems_of(path)[0]
