"""360 questions that a loader and a reader can rely on, and the awkward ones among them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from tests.seeds.committed import Question, questions, trees

_SIZES = {
    "Action Recognition": 90,
    "Counting Problem": 72,
    "Temporal Reasoning": 60,
    "Object Recognition": 48,
    "Attribute Perception": 42,
    "OCR Problems": 33,
    "Information Synopsis": 9,  # micro: too small to train
    "Spatial Perception": 6,  # micro
}


def _texts() -> list[str]:
    return [question.question for question in questions()]


def _options() -> list[str]:
    return [option for question in questions() for option in question.options]


def test_counts() -> None:
    """120 videos, three questions each, eight classes of which two are micro."""
    assert Counter(question.task_type for question in questions()) == _SIZES
    per_video = Counter(question.video_id for question in questions())
    assert set(per_video) == set(trees())
    assert (len(per_video), set(per_video.values())) == (120, {3})
    assert sorted(_SIZES.values())[:2] == [6, 9]


def test_ids_are_unique() -> None:
    """Question ids, and video ids whatever a file system makes of their case."""
    ids = [question.question_id for question in questions()]
    assert len(set(ids)) == len(ids) == 360
    assert len({video_id.casefold() for video_id in trees()}) == 120
    assert all(len(video_id) == 11 for video_id in trees())


def test_every_question_has_four_different_options_and_one_answer() -> None:
    """Bodies without labels; none is empty or padded."""
    for question in questions():
        bodies = [option.casefold() for option in question.options]
        assert len(set(bodies)) == len(bodies) == 4, question.question_id
        assert all(option and option == option.strip() for option in question.options)
        assert question.answer in "ABCD"
        assert question.question.strip() == question.question != ""


def test_gold_letters_are_balanced() -> None:
    """90 each, and within each class as even as its size allows: a letter tells nothing."""
    assert Counter(question.answer for question in questions()) == dict.fromkeys("ABCD", 90)
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions():
        by_class[question.task_type][question.answer] += 1
    for name, letters in by_class.items():
        counts = [letters[letter] for letter in "ABCD"]
        assert max(counts) - min(counts) <= 1, name


def test_a_video_agrees_with_its_tree() -> None:
    """Domain and duration class are told twice and are the same."""
    for question in questions():
        tree = trees()[question.video_id]
        assert question.domain == tree.domain
        assert question.duration == tree.duration_category


def test_some_units_hold_two_questions() -> None:
    """A unit is a video within a class: most have one question, a few have two."""
    units = Counter((question.task_type, question.video_id) for question in questions())
    assert Counter(units.values()) == {1: 350, 2: 5}
    twins = defaultdict(list)
    for question in questions():
        twins[question.task_type, question.video_id].append(question.question)
    assert all(len(set(texts)) == len(texts) for texts in twins.values())


def _repeated() -> list[Question]:
    texts = Counter(question.question for question in questions())
    return [question for question in questions() if texts[question.question] > 1]


@pytest.mark.parametrize(
    ("found", "at_least"),
    [
        pytest.param(
            lambda: [q for q in questions() if "\n" in q.question], 20, id="several lines"
        ),
        pytest.param(
            lambda: [q for q in questions() if not q.question.isascii()], 20, id="no ASCII"
        ),
        pytest.param(lambda: [o for o in _options() if not o.isascii()], 5, id="option no ASCII"),
        pytest.param(_repeated, 30, id="repeated text"),
        pytest.param(lambda: [o for o in _options() if o.startswith("A ")], 50, id="begins with A"),
        pytest.param(
            lambda: [o for o in _options() if len(o) == 2 and o[0].isalpha() and o[1] == "."],
            8,
            id="a single letter",
        ),
        pytest.param(lambda: [o for o in _options() if o.isdigit()], 50, id="a number"),
        pytest.param(lambda: [v for v in trees() if v[0] in "-_"], 4, id="id begins with a sign"),
    ],
)
def test_irregularities_are_there(found: Callable[[], list[object]], at_least: int) -> None:
    """What real data holds and what loaders stumble over is in the demo too."""
    assert len(found()) >= at_least


def test_a_repeated_text_has_different_answers_in_its_videos() -> None:
    """So that nothing keyed by the text alone can be right."""
    golds = defaultdict(set)
    for question in _repeated():
        golds[question.question].add(question.options["ABCD".index(question.answer)])
    assert max(len(bodies) for bodies in golds.values()) >= 4


def test_a_lone_letter_is_an_answer_somewhere_under_another_letter() -> None:
    """Body ``C.`` as option A: whoever takes the body for the label answers wrong."""
    golds = [q.options["ABCD".index(q.answer)] for q in questions()]
    lone = [
        (body[0], question.answer)
        for body, question in zip(golds, questions(), strict=True)
        if len(body) == 2 and body[0].isalpha()
    ]
    assert lone
    assert any(body != letter for body, letter in lone)
