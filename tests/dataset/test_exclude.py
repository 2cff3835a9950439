"""Questions left out by name: the ids of a file, and nothing by mistake."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.dataset.errors import PoolsError, QuestionsError
from actors.dataset.exclude import excluded
from actors.dataset.fingerprint import dataset_fingerprint
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset, load_questions
from protocol.dataset import Question
from tests.dataset.material import freeze, pools_of, question, write_jsonl
from tests.support import long_part

CASES = Path(__file__).parent / "cases"
THREE = (question(1), question(2), question(3))


def problems_of(questions: tuple[Question, ...], path: Path) -> list[str]:
    with pytest.raises(QuestionsError) as caught:
        excluded(questions, path)
    assert caught.value.path == path
    return [str(problem) for problem in caught.value.problems]


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "wrong.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_ids_comments_and_blank_lines() -> None:
    """An id twice counts once; comments stand alone or behind an id."""
    questions = (
        *load_questions(CASES / "same_text.jsonl"),
        *load_questions(CASES / "gold_in_a_tie.jsonl"),
    )
    assert excluded(questions, CASES / "known_to_be_wrong.txt") == ("703-2", "708-1")


def test_an_id_with_a_hash_and_windows_lines(tmp_path: Path) -> None:
    """A whole line that is an id is that id; BOM and CRLF are fine."""
    named = msgspec.structs.replace(question(1), question_id="q #1")
    path = write(tmp_path, b"\xef\xbb\xbfq #1\r\n002-1#\r\n# end")
    odd = msgspec.structs.replace(question(2), question_id="002-1#")
    assert excluded((named, odd, question(3)), path) == ("002-1#", "q #1")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing is wrong\n"])
def test_an_empty_list_excludes_nothing(tmp_path: Path, text: str) -> None:
    """A file of comments is no mistake."""
    assert excluded(THREE, write(tmp_path, text)) == ()


def test_unknown_ids_are_all_named_with_the_nearest(tmp_path: Path) -> None:
    """A typing error must not leave the wrong question in."""
    path = write(tmp_path, "001-1\n# x\n02-1\n\n001-1, 002-1\nzzzzzzz\n")
    assert problems_of(THREE, path) == [
        "line 3: no question has the id '02-1'; did you mean '002-1'?",
        "line 5: no question has the id '001-1, 002-1'; did you mean '002-1'?",
        "line 6: no question has the id 'zzzzzzz'; write one question id a line",
    ]


def test_excluding_everything_is_an_error(tmp_path: Path) -> None:
    """Nothing would be left to ask."""
    path = write(tmp_path, "001-1\n002-1\n003-1\n")
    assert problems_of(THREE, path) == ["file: all 3 questions are excluded; leave some in"]


def test_unreadable_lists(tmp_path: Path) -> None:
    """The setting to look at is named; bytes that are no text have their line."""
    assert "data.exclude" in problems_of(THREE, tmp_path / "none.txt")[0]
    assert problems_of(THREE, write(tmp_path, b"001-1\n\xff\n"))[0].startswith(
        "line 2: not UTF-8: byte 0xff"
    )


def test_a_dataset_without_them(tmp_path: Path) -> None:
    """Fewer questions, another fingerprint, and the ids to record."""
    path = write_jsonl(tmp_path / "q.jsonl", THREE)
    whole = load_dataset(path, None)
    assert (whole.questions, whole.excluded) == (THREE, ())
    less = load_dataset(path, write(tmp_path, "002-1"))
    assert (less.questions, less.excluded) == ((THREE[0], THREE[2]), ("002-1",))
    assert dataset_fingerprint(less.questions) != dataset_fingerprint(whole.questions)


def test_w_2_the_list_of_the_split_is_the_list_of_the_run(tmp_path: Path) -> None:
    """W-2: a run without the split's list, or with a longer one, is told what to give."""
    path = write_jsonl(tmp_path / "q.jsonl", THREE)
    split = load_dataset(path, write(tmp_path, "002-1"))
    manifest, _ = freeze(
        tmp_path, pools_of(split.questions[:1], split.questions[1:], ()), split.questions
    )
    recorded = msgspec.structs.replace(manifest, excluded=split.excluded)
    (tmp_path / "split_manifest.json").write_bytes(msgspec.json.encode(recorded))
    assert load_frozen(tmp_path, split.questions).questions == split.questions
    with pytest.raises(PoolsError) as caught:
        load_frozen(tmp_path, load_dataset(path, None).questions)
    text = str(caught.value)
    assert "1 questions that the split left out are back: 002-1; name them in data.exc" in text
    longer = load_dataset(path, write(tmp_path, "002-1\n003-1\n"))
    with pytest.raises(PoolsError, match=r"ids without a question: 003-1.*data\.exclude"):
        load_frozen(tmp_path, longer.questions)


def test_one_duration_class(tmp_path: Path) -> None:
    """A run trains on one of Video-MME's three: its other rows need no trees."""
    path = long_part.write_official(tmp_path)
    assert len(load_dataset(path, None, duration="long").questions) == 900
    with pytest.raises(QuestionsError, match=r"no question has the duration 'short'.*: long"):
        load_dataset(path, None, duration="short")
