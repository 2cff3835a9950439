"""What must not get into a skill."""

from __future__ import annotations

import msgspec
import pytest

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
