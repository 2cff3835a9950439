"""What an editor must not read is not there: letters, long option texts, ids."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prompts.withhold import (
    AN_OPTION,
    THE_QUESTION,
    fitted,
    without_answer,
    without_letters,
)
from protocol.dataset import Question
from tests.diagnoser.make import QUESTION

OPTIONS = (
    "The keeper lights the lamp twice.",
    "A boat enters the harbour slowly.",
    "Rain.",
    "Two gulls fight over bread.",
)
LONG = [option for option in OPTIONS if len(option.split()) >= 4]
SETTINGS = settings(deadline=None, max_examples=60)
Clean = Callable[[str, Question], str]
CLEANERS: tuple[Clean, ...] = (without_answer, without_letters)


def about(letter: str) -> Question:
    """The question with another gold answer."""
    return msgspec.structs.replace(QUESTION, options=OPTIONS, answer=letter)


# A finding as it may come: words, numbers, punctuation, other scripts, and bare letters.
WORDS = st.sampled_from(
    (
        *("the agent", "opened", "no", "node", "a", "card", "He'd", "l'eau", "3", "x2", "[", "("),
        *(
            "Rain",
            "option",
            "answer is",
            "correct:",
            "not",
            "over",
            "—",
            "答案是",
            "ответ",
            "\n",
            "?",
        ),
        *("A", "B", "C", "D", "a", "b", "Ⓑ", "Ａ", "🅱", "A,", "B.", '"C"', "(D)", "**B**", "_A_"),
    )
)
FINDINGS = st.one_of(
    st.lists(WORDS, max_size=14).map(" ".join),
    st.lists(WORDS, max_size=14).map("".join),
    st.text(max_size=80),
    st.text(string.ascii_letters + " .,()'\"", max_size=80),
)
LETTERS = st.sampled_from("ABCD")

# Ways in which a judge gives the answer away.
SAYINGS = (
    "answer is {0}",
    "The answer is {0}.",
    "({0})",
    "option {0}",
    "Option {0}: it was shown.",
    "{0}, not {1}",
    "The correct answer should have been {0}, not {1}.",
    "It chose {1} instead of {0}.",
    "{0} is correct",
    "{0} was right and {1} was wrong",
    "correct: {0}",
    "Gold = {0}",
    '"{0}"',
    "**{0}**",
    "`{0}`",
    "It should pick {0} because the card says so.",
    "between {1} and {0}",
    "{1}/{0}",
    "choice {0}!",
    "答案是{0}。",
    "the letter {0}",
    "\n{0}\n",
)
SAYINGS_IN_SMALL = ("option {0}", "the answer is {0}.", "({0})", "answer: {0}", '"{0}"')


def alone(letter: str, text: str) -> bool:
    """Whether the letter stands in the text by itself; written apart from the code it tests."""
    return letter in re.split(r"[^0-9A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f]+", text)


def said_words(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = " ".join(re.findall(r"[^\W_]+", plain))
    return f" {words} "


@pytest.mark.parametrize("clean", CLEANERS)
@SETTINGS
@given(text=FINDINGS, letter=st.sampled_from("BCD"))
@example("It took B_x_L1_0 for B", "B")
@example("E'B", "B")
def test_no_letter_but_the_article_stands_by_itself(clean: Clean, text: str, letter: str) -> None:
    """Whatever the text: B, C and D are never there as a word (in a node's id they are)."""
    cleaned = re.sub(r"[\w-]+_L\d+_\d+", "", clean(text, about(letter)))
    assert not any(alone(other, cleaned) for other in "BCD")


@pytest.mark.parametrize("clean", CLEANERS)
@pytest.mark.parametrize("saying", SAYINGS)
@SETTINGS
@given(gold=LETTERS, other=LETTERS, before=st.sampled_from(("", "Well: ", "it said ", "no. ")))
def test_the_gold_letter_as_such_is_never_told(
    clean: Clean, saying: str, gold: str, other: str, before: str
) -> None:
    """Every way of saying it, A included, and the other letter goes too."""
    cleaned = clean(before + saying.format(gold, other), about(gold))
    assert AN_OPTION in cleaned
    assert not alone(gold, cleaned)
    assert not alone(other, cleaned)


@pytest.mark.parametrize("saying", SAYINGS_IN_SMALL)
@SETTINGS
@given(gold=LETTERS)
def test_small_letters_that_are_called_an_option(saying: str, gold: str) -> None:
    cleaned = without_answer(saying.format(gold.lower()), about(gold))
    assert AN_OPTION in cleaned
    assert not alone(gold.lower(), cleaned)


@pytest.mark.parametrize("clean", CLEANERS)
@SETTINGS
@given(text=FINDINGS, gold=LETTERS)
@example(text="\uff21 option A", gold="A")  # the article of an option is no letter, then or later
@example(text="option a option A", gold="A")
def test_cleaning_twice_changes_nothing(clean: Clean, text: str, gold: str) -> None:
    once = clean(text, about(gold))
    assert clean(once, about(gold)) == once


@pytest.mark.parametrize("clean", CLEANERS)
@SETTINGS
@given(
    option=st.sampled_from(LONG),
    gold=LETTERS,
    before=FINDINGS,
    after=FINDINGS,
    between=st.sampled_from((" ", "  ", "\n", ", ", "-", " \u200b", "_")),
    change=st.sampled_from((str.upper, str.lower, str.title, str.strip)),
)
def test_long_option_texts_are_never_there(
    clean: Clean,
    option: str,
    gold: str,
    before: str,
    after: str,
    between: str,
    change: Callable[[str], str],
) -> None:
    """Case, punctuation, line breaks and invisible characters do not hide a quotation."""
    quoted = between.join(change(option).split())
    cleaned = clean(f"{before} {quoted} {after}", about(gold))
    assert said_words(option) not in said_words(cleaned)
    assert AN_OPTION in cleaned


@pytest.mark.parametrize("clean", CLEANERS)
@SETTINGS
@given(
    before=FINDINGS,
    after=FINDINGS,
    question_id=st.from_regex(r"[a-z]{1,6}-[0-9]{1,3}(?:-[0-9])?", fullmatch=True),
    dash=st.sampled_from("-\u2010\u2013\u2014"),
)
def test_the_questions_id_is_never_there(
    clean: Clean, before: str, after: str, question_id: str, dash: str
) -> None:
    question = msgspec.structs.replace(about("B"), question_id=question_id)
    written = question_id.upper().replace("-", dash)
    cleaned = clean(f"{before} {written}: {after}", question)
    assert THE_QUESTION in cleaned
    plain = "".join("-" if unicodedata.category(c) == "Pd" else c for c in cleaned)
    found = re.search(rf"(?<![\w-]){re.escape(question_id)}(?![\w-])", plain, re.IGNORECASE)
    assert found is None


@SETTINGS
@given(
    st.text(st.characters(codec="latin-1", categories=("Ll", "Nd", "Po", "Zs")), max_size=60),
    LETTERS,
)
def test_texts_without_any_of_it_stay_as_they_are(text: str, gold: str) -> None:
    """Nothing is touched that is none of the three."""
    words = [word for word in text.split() if len(word) > 2]
    plain = " ".join(words)
    question = msgspec.structs.replace(about(gold), options=("Kiosk.",) * 4, question_id="\u2603-1")
    held = any(len(w) == 1 for w in re.findall(r"[A-Za-z]+", plain)) or "kiosk" in plain
    assert held or without_answer(plain, question) == plain


@pytest.mark.parametrize(
    "finding",
    [
        "The agent took an answer before a second look.",
        "A number in the subtitles was preferred to the frame.",
        "Give the answer a second look. A list has an order.",
        "Boats were confused.",
        "He'd have to open the children; they'd not been read.",
        "Vergleiche jede Szene. Il s'agit d'une suite.",
        "x-A_y_L1_000 was opened twice.",
    ],
)
def test_findings_without_the_answer_stay_as_they_are(finding: str) -> None:
    assert without_answer(finding, about("A")) == finding
    assert without_answer(finding, about("B")) == finding


@pytest.mark.parametrize(
    ("answer", "options", "finding", "cleaned"),
    [
        ("C", OPTIONS, "It overlooked the rain.", f"It overlooked the {AN_OPTION}."),
        ("A", OPTIONS, "It overlooked the rain.", "It overlooked the rain."),
        ("A", ("12", "13", "14", "15"), "It is 12, not 13.", f"It is {AN_OPTION}, not 13."),
        ("A", ("3", "4", "5", "6"), "Step 3 was odd.", "Step 3 was odd."),
        ("B", ("Yes", "No", "x", "y"), "No look at all.", "No look at all."),
    ],
    ids=["gold", "not gold", "number", "one digit", "two letters"],
)
def test_short_gold_texts_leave_findings(
    answer: str, options: tuple[str, ...], finding: str, cleaned: str
) -> None:
    """Only the gold one is the answer; texts of a character or two are ordinary words."""
    question = msgspec.structs.replace(QUESTION, options=options, answer=answer)
    assert without_answer(finding, question) == cleaned


def test_short_texts_stay_in_trajectories() -> None:
    """Evidence is full of them, and which one is gold cannot be seen."""
    assert without_letters("It shows rain.", about("C")) == "It shows rain."


def test_a_placeholder_is_no_option_text() -> None:
    """Even where an option says the same words."""
    question = msgspec.structs.replace(QUESTION, options=("Option", "x", "y", "z"), answer="A")
    once = without_answer("Take A.", question)
    assert once == f"Take {AN_OPTION}."
    assert without_answer(once, question) == once


@pytest.mark.parametrize("answer", ["", "Z", "AB"])
def test_an_answer_that_is_no_letter_does_no_harm(answer: str) -> None:
    question = msgspec.structs.replace(QUESTION, answer=answer)
    assert without_answer("Too early.", question) == "Too early."


@SETTINGS
@given(
    text=st.one_of(FINDINGS, st.sampled_from(("Bright Boats ", "Alpha. ")).map(lambda t: t * 40)),
    gold=LETTERS,
    max_chars=st.integers(80, 200),
)
def test_fitted_texts_fit_and_are_clean(text: str, gold: str, max_chars: int) -> None:
    """A word that the cut leaves as one letter is withheld as well."""
    cleaned = fitted(text, about(gold), max_chars)
    assert len(cleaned) <= max_chars
    assert not any(alone(other, re.sub(r"[\w-]+_L\d+_\d+", "", cleaned)) for other in "BCD")
