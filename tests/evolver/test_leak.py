"""What must not get into a skill."""

from __future__ import annotations

import string
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.evolver.leak import Exposed, find_leak, sentences_with_gold
from tests.evolver.make import question

EXPOSED = Exposed(
    question("q-7-1"),
    ("The sea is calm. At dawn, a boat enters the harbour slowly! Then it rains.", "Gulls."),
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- As in Q-7-1, look twice.", "question id"),
        ("- Prefer: the keeper LIGHTS the lamp", "option"),
        ("- two gulls\nfight over **bread**", "option"),
        ("- At dawn a boat enters the harbour slowly", "option"),
    ],
)
def test_quotations_are_found(text: str, what: str) -> None:
    assert what in (find_leak(text, [EXPOSED]) or "")


@pytest.mark.parametrize(
    "text",
    ["- Rain matters.", "- See q-7-12 and xq-7-1.", "- The keeper lights a lamp.", "- calm sea"],
)
def test_general_rules_pass(text: str) -> None:
    assert find_leak(text, [EXPOSED]) is None


def test_evidence_that_states_a_short_gold_answer() -> None:
    item = Exposed(
        msgspec.structs.replace(question(), answer="C"), ("First comes rain over the bay. Sun.",)
    )
    assert sentences_with_gold(item) == ("First comes rain over the bay.",)
    assert "evidence" in (find_leak("- first comes RAIN over the bay", [item]) or "")
    assert find_leak("- rain over the bay", [item]) is None


def test_what_the_document_says_already_is_no_leak() -> None:
    text = "- The keeper lights the lamp early."
    assert find_leak(text, [EXPOSED], "Example: the keeper lights the lamp.") is None
    assert find_leak(text, [EXPOSED], "Another text.") is not None


def test_scripts_without_spaces() -> None:
    item = Exposed(
        msgspec.structs.replace(question(), options=("灯台の光が", "雨"), answer="A"), ()
    )
    assert find_leak("まず灯台の光がつく", [item]) is not None
    assert find_leak("雨が降る", [item]) is None


def test_an_impossible_gold_letter_is_an_error() -> None:
    item = Exposed(msgspec.structs.replace(question(), answer="E"), ())
    with pytest.raises(ValueError, match="no option 'E'"):
        find_leak("- x", [item])


def test_marks_inside_words_and_broken_lines_hide_nothing() -> None:
    for text in (
        "- the kee**per** lights the lamp",
        "- the kee\u200bper lights the lamp",
        "- the keeper lights the la-\nmp",
        "- the k\u0435\u0435per lights the lamp",
        "- \uff34\uff28\uff25 keeper lights the lamp",
        "- THE KE\u0301EPER LIGHTS THE LAMP",
    ):
        assert "option" in (find_leak(text, [EXPOSED]) or ""), text


@pytest.mark.parametrize(
    "text",
    [
        "_q-7-1_",
        "\u307e\u305aq-7-1\u3092",
        "q-7-1\u2014look",
        "q\u20117\u20131",
        "**Q-7-1**",
        "q-7-\n1",
    ],
)
def test_a_question_id_is_found_whatever_stands_around_it(text: str) -> None:
    assert "question id" in (find_leak(f"- as in {text} too", [EXPOSED]) or "")


def test_a_list_of_numbers_is_no_number() -> None:
    item = Exposed(msgspec.structs.replace(question(), options=("2, 3, 1, 4", "x"), answer="B"), ())
    assert find_leak("- wait 2314 frames", [item]) is None
    assert find_leak("- the order 2-3-1-4", [item]) is not None


def test_a_full_stop_inside_a_number_or_a_name_ends_no_sentence() -> None:
    answer = "3.5"
    item = Exposed(
        msgspec.structs.replace(question(), options=("2", answer), answer="B"),
        ("It sails for 3.5 hours. Then Mr. Hale, of the harbour, waves.",),
    )
    assert sentences_with_gold(item) == ("It sails for 3.5 hours.",)
    named = Exposed(
        msgspec.structs.replace(question(), options=("Mr. Hale", "x"), answer="A"), item.evidence
    )
    assert sentences_with_gold(named) == ("Then Mr. Hale, of the harbour, waves.",)
    assert find_leak("- then mr hale of the harbour waves", [named]) is not None


words = st.text(string.ascii_lowercase, min_size=2, max_size=8)
joints = st.sampled_from([" ", "  ", "\n", "\r\n  ", ", ", " **", "_ ", " - ", " \u2014 ", "/"])
full_width = {c: chr(ord(c) + 0xFEE0) for c in string.ascii_letters + string.digits}


def _wide(word: str) -> str:
    return "".join(full_width.get(char, char) for char in word)


def _spread(word: str) -> str:
    return "\u200b".join(word)


changes: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [str.lower, str.upper, str.title, _wide, _spread]
)


@st.composite
def disguised(draw: st.DrawFn, passage: list[str]) -> str:
    """The words in other letters, with other things between and around them."""
    shown = []
    for word in passage:
        change = draw(changes)
        shown += [change(word), draw(joints)]
    head, foot = draw(st.sampled_from([("- See: ", "."), ("", ""), ("> *", "*"), ("- (", ")!")]))
    return head + "".join(shown[:-1]) + foot


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(words, min_size=4, max_size=9))
def test_a_quoted_option_is_always_found(data: st.DataObject, option: list[str]) -> None:
    item = Exposed(msgspec.structs.replace(question(), options=(" ".join(option), "x")), ())
    assert find_leak(data.draw(disguised(option)), [item]) is not None


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(words, min_size=3, max_size=9), st.sampled_from("ABC"))
def test_a_quoted_gold_sentence_is_always_found(
    data: st.DataObject, sentence: list[str], letter: str
) -> None:
    gold = data.draw(st.sampled_from(["3.5", "Dr. Hale", "zebra"]))
    sentence.insert(data.draw(st.integers(0, len(sentence))), gold)
    before, behind = data.draw(st.tuples(st.booleans(), st.booleans()))
    evidence = (
        "Nothing stirs. " * before
        + " ".join(sentence)
        + data.draw(
            st.sampled_from([".", "!", "", ". All is quiet.", "\nA new line"][: 5 if behind else 3])
        )
    )
    options = ["one", "two", "three"]
    options["ABC".index(letter)] = gold
    asked = msgspec.structs.replace(question(), options=tuple(options), answer=letter)
    item = Exposed(asked, (evidence,))
    assert find_leak(data.draw(disguised(sentence)), [item]) is not None


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(words, min_size=4, max_size=9, unique=True), words)
def test_a_harmless_rewrite_is_not_found(
    data: st.DataObject, option: list[str], other: str
) -> None:
    """Another word in it, or the first or the last one left out."""
    place = data.draw(st.integers(0, len(option) - 1))
    assume(other not in option and option[place] not in other)
    item = Exposed(msgspec.structs.replace(question(), options=(" ".join(option), "x")), ())
    text = data.draw(disguised([*option[:place], f"{other}q{other}", *option[place + 1 :]]))
    assume("".join(option) not in "".join(option[:place]) + other)
    assert find_leak(text, [item]) is None
    assert find_leak(data.draw(disguised(option[1:])), [item]) is None
    assert find_leak(data.draw(disguised(option[:-1])), [item]) is None


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    st.from_regex(r"[a-zA-Z0-9_-]{3,11}-[0-9]", fullmatch=True),
    st.sampled_from(range(4)),
)
def test_a_quoted_id_is_always_found(data: st.DataObject, question_id: str, change: int) -> None:
    item = Exposed(msgspec.structs.replace(question(), question_id=question_id), ())
    quoted = (question_id, question_id.swapcase(), _wide(question_id), _spread(question_id))[change]
    around = data.draw(st.sampled_from(["{}", "(see {})", "`{}`.", "**{}**:", "_{}_", "a\n{}\nb"]))
    assert "question id" in (find_leak(around.format(quoted), [item]) or "")
    assert find_leak(f"- see 9{question_id} and {question_id}9", [item]) is None
