"""The four forms: told apart by what they are; every problem of a source in one report."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from actors.dataset.errors import DataError, Problem, QuestionsError
from actors.dataset.questions import load_questions
from tests.dataset.material import question, raw, write_jsonl
from tests.support.question_files import FORMS, write_owner_layout, write_parquet

TWO = (question(1), question(2))


def problems_of(path: Path) -> list[str]:
    with pytest.raises(QuestionsError) as caught:
        load_questions(path)
    assert str(path) in str(caught.value)
    assert all(problem.remedy for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def owner(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files, named ``<key>.json``."""
    folder.mkdir()
    for name, data in files.items():
        path = folder / f"{name}.json"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def listed(*items: dict[str, object]) -> str:
    """One video's list in the owner's layout: no video_id inside."""
    return json.dumps([{k: v for k, v in item.items() if k != "video_id"} for item in items])


# which form it is


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["as written", "questions", "questions.csv", "questions.json.bak"])
def test_a_form_is_what_it_is_not_its_name(tmp_path: Path, form: str, name: str) -> None:
    """A renamed file is read as well."""
    path = FORMS[form](tmp_path, TWO)
    if name != "as written":
        path = path.rename(tmp_path / name)
    assert [q.question_id for q in load_questions(path)] == ["001-1", "002-1"]


def test_json_lines_named_json(tmp_path: Path) -> None:
    """And a nested file named .jsonl."""
    lines = write_jsonl(tmp_path / "lines.json", TWO)
    assert len(load_questions(lines)) == 2
    nested = FORMS["official"](tmp_path, TWO).rename(tmp_path / "nested.jsonl")
    assert len(load_questions(nested)) == 2


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        pytest.param("q.csv", b"question_id,video_id\n", "unknown form '.csv'", id="table"),
        pytest.param("q", b"", "unknown form; give Video-MME's Parquet", id="empty, no name"),
        pytest.param("q.jsonl", b"", "holds no question", id="empty lines"),
        pytest.param("q.json", b"", "not JSON", id="empty nested"),
        pytest.param("q.json", b"[]", "holds no question", id="no video"),
        pytest.param("q.json", '[{"a": "1"}]'.encode("utf-16"), "UTF-16", id="UTF-16"),
        pytest.param("q.jsonl", "{}\n{}\n".encode("utf-16"), "UTF-16", id="UTF-16 lines"),
        pytest.param("q.jsonl", '{"a": "é"}'.encode("latin-1"), "line 1: not UTF-8", id="Latin-1"),
        pytest.param("q.json", b'[\n{"video_id": \n', "line 3 column 1", id="cut off"),
        pytest.param("q.json", b"[" * 100_000, "not JSON", id="nested absurdly"),
        pytest.param("q.json", b"null", "expected a list of videos, got NoneType", id="null"),
        pytest.param("q.parquet", b"PAR1 and no more", "not readable Parquet", id="cut Parquet"),
        pytest.param(
            "q.parquet",
            b"version https://git-lfs.example/spec/v1\noid sha256:0\n",
            "git lfs pull",
            id="pointer",
        ),
        pytest.param(
            "q.json",
            json.dumps([raw(question(1))]).encode(),
            "is a list of questions, not of videos",
            id="flat list",
        ),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    """One problem, with a remedy."""
    path = tmp_path / name
    path.write_bytes(data)
    (problem,) = problems_of(path)
    assert says in problem


# the official form


def test_official_problems_come_together(tmp_path: Path) -> None:
    """Duplicates, contradictions and broken videos of the whole file in one report."""
    asked = {k: v for k, v in raw(question(1)).items() if k not in ("video_id", "domain")}
    other = asked | {"question_id": "001-2", "answer": "e"}
    videos = [
        {"video_id": "001", "duration": "long", "url": "yt1", "questions": [asked, 7]},
        {"video_id": "001", "duration": "long", "url": "yt1", "questions": [other]},
        {"video_id": "002", "questions": [asked | {"video_id": "009", "question_id": "002-1"}]},
        {"video_id": 3, "questions": [asked | {"question_id": "003-1"}]},
        {"video_id": "004", "questions": []},
        {"video_id": "005", "url": "yt1", "questions": [asked | {"question_id": "005-1"}]},
        {"video_id": "006", "questions": [asked]},
        "007",
    ]
    path = tmp_path / "q.json"
    path.write_text(json.dumps(videos), encoding="utf-8")
    assert [problem.partition(";")[0] for problem in problems_of(path)] == [
        "video 001, question 2: expected an object, got int",
        "video 001, question 1 (001-2): answer 'e' is no letter of its 4 options",
        "video 002, question 1: video_id is '009', but its video says '002'",
        "video 4, question 1 (003-1): video_id is int, not a string",
        "video 004: questions is missing or empty",
        "video 8: is no object",
        "video 001: stands 2 times: elements 1, 2",
        "001-1: question_id stands 2 times: video 001, question 1, video 006, question 1",
        "videoID yt1: the same video has the video_ids 001, 005",
    ]


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    """The first answer would be lost without a word."""
    line = json.dumps(raw(question(1)))[:-1] + ', "answer": "C"}'
    path = tmp_path / "q.jsonl"
    path.write_text(line, encoding="utf-8")
    assert problems_of(path) == [
        "line 1 (001-1): keys that stand twice in one object: 'answer'; keep one of them"
    ]


# the owner's layout


def test_owner_layout_takes_the_video_from_the_file_name(tmp_path: Path) -> None:
    """Other files and hidden ones are not questions."""
    folder = owner(
        tmp_path / "Video-MME",
        {"717": listed(raw(question(1))), "-a_b": listed(raw(question(2)))},
    )
    (folder / "README.md").write_text("not JSON", encoding="utf-8")
    (folder / "._717.json").write_bytes(b"\x00\x05\x16\x07")
    (folder / "older").mkdir()
    found = load_questions(folder)
    assert {(q.question_id, q.video_id) for q in found} == {("001-1", "717"), ("002-1", "-a_b")}


def test_owner_layout_problems_of_all_files(tmp_path: Path) -> None:
    """Every file is looked at: what is wrong in one hides nothing in the next."""
    one, two = raw(question(1)), raw(question(2))
    folder = owner(
        tmp_path / "q",
        {
            "601": listed(one),
            "602": listed(one),
            "603": "[{",
            "604": b'[\n"\xe9"]',
            "605": "[]",
            "606": json.dumps({"question_id": "606-1"}),
            "607": json.dumps([two]),
            "608": json.dumps([{"video_id": "608", "questions": [one]}]),
            "609": "[1]",
            "610": "[]".encode("utf-16"),
            "6 11": listed(two | {"question_id": "611-1"}),
        },
    )
    (folder / "612.json").mkdir()
    (folder / "601.JSON").write_text(listed(two | {"question_id": "601-2"}), encoding="utf-8")
    found = problems_of(folder)
    for expected in (
        "6 11.json, question 1 (611-1): video_id '6 11' cannot be the name of its tree's file",
        "603.json: not JSON",
        "604.json, line 2: not UTF-8: byte 0xe9",
        "605.json: expected a list of questions, got an empty list",
        "606.json: expected a list of questions, got dict",
        "607.json, question 1: video_id is '002', but the file's name says '607'",
        "608.json: is Video-MME's nested JSON",
        "609.json, question 1: expected an object, got int",
        "610.json: is UTF-16",
        "612.json: cannot be read: Is a directory",
        "video 601: stands in 601.JSON and 601.json",
        "001-1: question_id stands 2 times: 601.json, question 1, 602.json, question 1",
    ):
        assert any(problem.startswith(expected) for problem in found), (expected, found)
    assert len(found) == 12


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        pytest.param(lambda f: None, "give the folder with one <video_id>.json", id="empty"),
        pytest.param(
            lambda f: write_owner_layout(f, TWO), "name one of: Video-MME/", id="one level up"
        ),
        pytest.param(
            lambda f: write_parquet(f, TWO),
            "name one of: test-00000-of-00001.parquet",
            id="the folder of a file",
        ),
    ],
)
def test_a_folder_without_json(tmp_path: Path, make: Callable[[Path], object], remedy: str) -> None:
    """The message names what is there instead."""
    make(tmp_path)
    (problem,) = problems_of(tmp_path)
    assert problem.startswith(f"folder: holds no .json file; {remedy}")


# Parquet


def table(**changed: Sequence[object] | None) -> pyarrow.Table:
    """Two good rows, with columns changed or (None) taken out."""
    columns: dict[str, Sequence[object]] = {
        key: [raw(item)[key] for item in TWO]
        for key in ("video_id", "question_id", "task_type", "question", "options", "answer")
    }
    columns |= {"videoID": ["yt1", "yt2"], "url": ["watch?v=yt1", "watch?v=yt2"]}
    for key, values in changed.items():
        if values is None:
            del columns[key]
        else:
            columns[key] = values
    return pyarrow.table(columns)


def test_parquet_names_the_video_by_video_id(tmp_path: Path) -> None:
    """Not by videoID or url, which name the media; other columns are not read."""
    parquet.write_table(table(more=[1, 2]), tmp_path / "q.parquet")
    assert [q.video_id for q in load_questions(tmp_path / "q.parquet")] == ["001", "002"]


def test_parquet_options_as_text(tmp_path: Path) -> None:
    """Some copies hold the list as its repr."""
    texts = ["['A. It\\'s.', 'B. Is.']", "['x', 'y', 'z']"]
    parquet.write_table(table(options=texts), tmp_path / "q.parquet")
    first, second = load_questions(tmp_path / "q.parquet")
    assert (first.options, second.options) == (("It's.", "Is."), ("x", "y", "z"))


def test_parquet_problems_of_columns(tmp_path: Path) -> None:
    """A missing column is one problem, not one per row, and all of them are told."""
    parquet.write_table(table(video_id=None, answer=None), tmp_path / "q.parquet")
    found = problems_of(tmp_path / "q.parquet")
    assert [problem.partition(";")[0] for problem in found] == [
        "column video_id: is missing",
        "column answer: is missing",
    ]
    assert "this one has question_id, task_type, question, options, videoID, url" in found[0]


def test_parquet_problems_of_rows(tmp_path: Path) -> None:
    """A number lost its zeros, an answer is absent, two ids stand for one video."""
    parquet.write_table(
        table(video_id=[1, 2], answer=["B", None], options=[["A. x", "B. y"], ["A. x"]]),
        tmp_path / "q.parquet",
    )
    assert [problem.partition(";")[0] for problem in problems_of(tmp_path / "q.parquet")] == [
        "row 1 (001-1): video_id is int, not a string",
        "row 2 (002-1): video_id is int, not a string",
        "row 2 (002-1): 1 options, expected 2 to 8",
        "row 2 (002-1): answer is null, not a string",
    ]
    parquet.write_table(table(videoID=["yt1", "yt1"]), tmp_path / "q.parquet")
    assert problems_of(tmp_path / "q.parquet")[0].startswith(
        "videoID yt1: the same video has the video_ids 001, 002"
    )


def test_one_video_id_for_two_videos(tmp_path: Path) -> None:
    """The other way round: a tree belongs to one of them only."""
    parquet.write_table(table(video_id=["001", "001"]), tmp_path / "q.parquet")
    assert problems_of(tmp_path / "q.parquet")[0].startswith(
        "video 001: stands for several videos: yt1, yt2"
    )


def test_parquet_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Every bad cell is named; the row's other problems too."""
    bad = pyarrow.array([b"Wh\xe4t?", b"How\xff?"]).view(pyarrow.string())
    columns = table()
    columns = columns.set_column(columns.column_names.index("question"), "question", bad)
    parquet.write_table(columns, tmp_path / "q.parquet")
    found = problems_of(tmp_path / "q.parquet")
    assert found[0].startswith("row 1: question is not UTF-8: byte 0xe4")
    assert found[1].startswith("row 2: question is not UTF-8: byte 0xff")


def test_without_pyarrow_the_install_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other forms need nothing."""
    path = write_parquet(tmp_path, TWO)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (problem,) = problems_of(path)
    assert "needs pyarrow" in problem
    assert f"{sys.executable} -m pip install 'pyarrow>=" in problem
    assert "videomme" in problem
    assert len(load_questions(FORMS["official"](tmp_path, TWO))) == 2


# the report


def test_the_list_is_capped_and_everything_counted(tmp_path: Path) -> None:
    """2700 rows of one mistake hide neither their number nor the other mistake."""
    lines = [json.dumps(raw(question(n)) | {"answer": "E"}) for n in range(300)]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join([*lines, "oops"]), encoding="utf-8")
    with pytest.raises(QuestionsError) as caught:
        load_questions(path)
    assert len(caught.value.problems) == 301
    head, *shown, last = str(caught.value).split("\n")
    assert head == f"{path}: 301 problems"
    assert len(shown) == 50
    assert any("line 301: not JSON" in line for line in shown)
    assert last == "  ... and 251 more"


def test_a_short_list_is_whole() -> None:
    """Fifty are shown, in their order."""
    problems = [Problem(f"p{n}", "w", f"r{n % 2}") for n in range(50)]
    assert str(DataError(Path("q"), problems)).split("\n")[1:] == [f"  {p}" for p in problems]


# never anything but questions or a QuestionsError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("A"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*raw(question(1)), "questions", "videoID", "url", "x"]),
            inner,
            max_size=9,
        )
    ),
    max_leaves=25,
)


@given(data=st.binary(max_size=60), name=st.sampled_from(["q.json", "q.jsonl", "q"]))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    """Whatever the file holds."""
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    with suppress(QuestionsError):
        load_questions(path)


@given(value=VALUES)
def test_any_json(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    """Whatever the JSON says, as a file, as lines and in a folder."""
    folder = tmp_path_factory.mktemp("any")
    data = json.dumps(value)
    for path in (folder / "q.json", folder / "q.jsonl", folder):
        if path != folder:
            path.write_text(data, encoding="utf-8")
        with suppress(QuestionsError):
            load_questions(path)
