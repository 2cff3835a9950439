"""The made-up long part has the shape that it claims, and is one data set in every form."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from actors.dataset.exclude import excluded
from actors.dataset.fingerprint import dataset_fingerprint
from actors.dataset.questions import load_questions
from actors.dataset.split import choose_videos
from tests.support import long_part

FINGERPRINT = "d787d9e7241eee62315a59ee0b5e9568f038278e99b3e04d22b005f6089fbcf9"


def test_counts_of_the_long_part() -> None:
    """Questions, videos, classes, domains and gold letters."""
    questions = long_part.questions()
    assert [q.question_id for q in questions] == [
        f"{video}-{number}" for video in range(601, 901) for number in (1, 2, 3)
    ]
    videos: defaultdict[str, set[str]] = defaultdict(set)
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for question in questions:
        videos[question.task_type].add(question.video_id)
        classes[question.video_id].add(question.task_type)
    asked = Counter(question.task_type for question in questions)
    assert {name: (asked[name], len(videos[name])) for name in asked} == long_part.CLASSES
    assert Counter(map(len, classes.values())) == {1: 12, 2: 116, 3: 172}
    assert Counter(question.answer for question in questions) == long_part.GOLD
    home = {question.video_id: (question.domain, question.sub_category) for question in questions}
    assert set(Counter(home.values()).values()) == {10}
    assert Counter(domain for domain, _ in set(home.values())) == long_part.DOMAINS
    assert {question.duration for question in questions} == {"long"}


def test_irregular_rows_of_the_long_part() -> None:
    """As many of each kind as the real annotation has, where a count is known."""
    questions = {question.question_id: question for question in long_part.questions()}
    kinds = long_part.kinds()
    assert sum("\n" in question.question for question in questions.values()) == 41
    assert max(len(question.question) for question in questions.values()) == 813
    assert max(len(body) for question in questions.values() for body in question.options) == 382
    tied = [q for q in questions.values() if len(set(q.options)) < 4]
    gold = [q.answer for q in tied if q.options.count(q.options["ABCD".index(q.answer)]) > 1]
    assert (len(tied), sorted(gold)) == (4, ["B", "D"])
    (letters,) = kinds["letter bodies"]
    assert (questions[letters].options, questions[letters].answer) == (
        ("A.", "F.", "B.", "K."),
        "C",
    )
    first, second = (questions[question_id] for question_id in kinds["same question"])
    assert (first.question, first.options) == (second.question, second.options)
    assert first.video_id != second.video_id
    youtube = long_part.youtube_ids()
    assert len(set(youtube.values())) == 300
    assert {len(medium) for medium in youtube.values()} == {11}
    assert sum(medium[0] in "-_" for medium in youtube.values()) == 7


def test_it_is_the_same_everywhere() -> None:
    """Nothing in it depends on the machine, the order of a set or the time."""
    assert dataset_fingerprint(long_part.questions()) == FINGERPRINT


@pytest.mark.parametrize("form", ["official", "parquet", "owner_layout", "jsonl"])
def test_every_form_is_the_same_data_set(tmp_path: Path, form: str) -> None:
    """900 questions and one fingerprint; the owner's files alone hold no sub-category."""
    found = load_questions(getattr(long_part, f"write_{form}")(tmp_path))
    assert dataset_fingerprint(found) == FINGERPRINT
    described = {(q.domain, q.sub_category, q.duration) for q in found}
    assert len(described) == (1 if form == "owner_layout" else 30)


def test_exclusions_change_the_data_set(tmp_path: Path) -> None:
    """The two ties that hold the gold, left out."""
    questions = long_part.questions()
    ids = [*long_part.kinds()["tie with the gold B"], *long_part.kinds()["tie with the gold D"]]
    path = tmp_path / "wrong.txt"
    path.write_text("\n".join(ids), encoding="utf-8")
    out = excluded(questions, path)
    assert out == tuple(sorted(ids))
    left = [question for question in questions if question.question_id not in out]
    assert dataset_fingerprint(left) != FINGERPRINT


def test_a_hundred_videos_are_a_third_of_every_sub_category() -> None:
    """Three or four of each ten go to trainval, as a split by sub-category can."""
    categories = {q.video_id: q.sub_category for q in long_part.questions()}
    trainval, test = choose_videos(categories, n_trainval=100, n_test=200, seed=1)
    assert len(trainval | test) == 300
    taken = Counter(categories[video_id] for video_id in trainval)
    assert set(taken.values()) <= {3, 4}
    assert len(taken) == 30
