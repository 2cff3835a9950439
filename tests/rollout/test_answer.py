"""The extractor: the shared cases, their families, and what holds for every value."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.rollout.answer import Letter, as_text, extract, rescore

CASES = Path(__file__).parent / "cases"
OPTIONS = ("A person walking a dog.", "A red car.", "A bunch of berries.", "A blue umbrella.")


class Case(msgspec.Struct, frozen=True):
    text: object
    options: list[str]
    expected: str
    why: str


def _cases(name: str) -> list[Case]:
    return msgspec.json.decode((CASES / name).read_bytes(), type=list[Case])


ALL = [*_cases("answers.json"), *_cases("answer_families.json")]


@pytest.mark.parametrize("case", ALL, ids=[f"{n}-{case.why}"[:60] for n, case in enumerate(ALL)])
def test_a_case_is_read_as_a_careful_person_would(case: Case) -> None:
    found = rescore(case.text, case.options)
    assert found["letter"] == case.expected, found["why"]
    assert found["why"]


@pytest.mark.parametrize("case", ALL, ids=[f"{n}-{case.why}"[:60] for n, case in enumerate(ALL)])
def test_labels_on_the_options_change_nothing(case: Case) -> None:
    labelled = [
        option if option[1:3] == ". " else f"{chr(ord('A') + place)}. {option}"
        for place, option in enumerate(case.options)
    ]
    bodies = [option[3:] for option in labelled]
    assert rescore(case.text, bodies)["letter"] == case.expected
    assert rescore(case.text, labelled)["letter"] == case.expected


@pytest.mark.parametrize("letter", "ABCDEFGH")
def test_every_letter_that_has_an_option_can_be_given(letter: str) -> None:
    options = [f"thing {place}" for place in range("ABCDEFGH".index(letter) + 1)]
    for text in (letter, letter.lower(), f"({letter})", f"The answer is {letter}."):
        assert rescore(text, options)["letter"] == letter
        assert rescore(text, options[:-1])["letter"] == "no answer"


def test_options_that_look_like_labels_are_not_cut() -> None:
    assert rescore("B. F.", ["A.", "F.", "B.", "K."])["letter"] == "B"
    assert rescore("K", ["A.", "F.", "B.", "K."])["letter"] == "D"


def test_a_number_that_is_not_finite_is_no_answer() -> None:
    for value in (float("nan"), float("inf"), -float("inf")):
        assert rescore(value, OPTIONS)["letter"] == "no answer"


def _nested(depth: int) -> object:
    value: object = "B"
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: list[object] = [
    "\ud800",
    "B\x00",
    "\ud800B\udfff",
    10**5000,
    -(10**5000),
    1e308,
    float("nan"),
    {"a" * 10_000: ["\ud800", {"\x00": 10**5000}]},
    {"answer": 10**5000},
    _nested(5_000),
    [[[[[[[["B"]]]]]]]],
    {"answer": {"answer": {"answer": {"answer": {"answer": {"answer": {"answer": {}}}}}}}},
    '{"answer": ' + "1" * 5000 + "}",
    "[" * 100_000,
    "{" * 100_000,
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_P0_4_any_value_is_read_and_becomes_storable_text(value: object) -> None:
    """P0-4: a value that is not a plain text never breaks reading or storing."""
    extract(value, OPTIONS)
    _store(as_text(value))


_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=40)
    | st.sampled_from(["A", "b", "(C)", "answer: D", "A red car", "not B"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["answer", "choice", "args", "action", "x", "B"]) | st.text(max_size=5),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(value=_json_values, count=st.integers(0, 9))
def test_P0_4_no_json_value_raises_and_all_can_be_stored(value: object, count: int) -> None:
    """P0-4: total over JSON values; a letter is always one that has an option."""
    options = [*OPTIONS, "Two.", "No.", "3", "B.", "The red car"][:count]
    found = extract(value, options)
    if isinstance(found, Letter):
        assert found.letter in "ABCDEFGHI"[:count]
    _store(as_text(value))


_VOCABULARY = """A B C D E a b the answer is not or and , . : ; ( ) [ ] option it so final wrong
correct red car no yes - / think <think> </think> ** { } " ' 4 because maybe"""
_words = st.lists(st.sampled_from([*_VOCABULARY.split(), "\n"]), max_size=25)


@given(_words)
def test_no_sentence_raises(words: list[str]) -> None:
    extract(" ".join(words), OPTIONS)


@given(
    st.sampled_from(
        [
            "I cannot answer{}",
            "I don't know{}",
            "Unable to determine the answer{}",
            "Sorry, I cannot tell{}",
            "There is not enough information to answer{}",
            "Error: could not read the reply{}",
            "Failed to obtain an answer{}",
            "<think>It is B{}",
        ]
    ),
    st.sampled_from(["", ".", ": A frame is missing.", "!", " from the video.", "\n", " ..."]),
)
def test_a_refusal_never_becomes_a_letter(refusal: str, tail: str) -> None:
    assert rescore(refusal.format(tail), OPTIONS)["letter"] == "no answer"


@pytest.mark.parametrize(
    "text",
    ["A " * 10_000, "B. " * 9_000, "A\n" * 9_000, "a red car " * 5_000, "not " * 9_000 + "B"],
)
def test_degenerate_output_is_read_quickly(text: str) -> None:
    began = time.perf_counter()
    extract(text, OPTIONS)
    assert time.perf_counter() - began < 5.0  # quadratic reading took minutes


def _store(text: str) -> None:
    """Write to a real database and read back."""
    json.dumps(text).encode("utf-8")
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", (text,))
        assert connection.execute("SELECT x FROM t").fetchone() == (text,)
    connection.close()
