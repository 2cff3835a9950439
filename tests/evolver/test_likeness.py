"""What counts as the same in other words, and what never does."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.evolver.likeness import alike, folded, gist

unhurried = settings(deadline=None)
SHARE = 0.85
RULE = "Compare the start times of the two events before you answer."
OPENERS = [
    "Keep in mind: ",
    "Keep in mind that ",
    "Make it a habit. ",
    "Remember to ",
    "Always remember: ",
    "Note that ",
    "Important: ",
    "Please ",
    "Make sure to ",
    "Be sure that ",
    "Do not forget to ",
    "Don't forget: ",
    "It is vital to ",
    "You must always ",
    "Reminder: make sure that you should ",
]
NOUNS = ["scene", "event", "moment", "subtitle", "card", "frame", "option", "detail", "speaker"]
VERBS = ["read", "check", "compare", "quote", "view", "name", "count", "describe"]
clauses = st.builds(
    lambda verb, nouns: f"{verb} the {' of the '.join(nouns)}",
    st.sampled_from(VERBS),
    st.lists(st.sampled_from(NOUNS), min_size=2, max_size=5, unique=True),
)
rules = st.lists(clauses, min_size=1, max_size=3, unique=True).map(" and ".join)
texts = st.one_of(rules, st.text(max_size=40))


def like(one: str, other: str, share: float = SHARE) -> bool:
    return alike(gist(one), gist(other), share)


@unhurried
@given(texts, st.sampled_from(OPENERS), st.sampled_from(["", "- ", "* ", "**"]))
def test_case_punctuation_and_openers_do_not_count(text: str, opener: str, mark: str) -> None:
    assume(gist(text).words)
    assert like(f"{mark}{opener}{text}", text)
    assert like(f"{mark}{text}!", text)
    assert like(text, "  ".join(text.split()) + " .")


@unhurried
@given(rules)
def test_capitals_do_not_count(rule: str) -> None:
    assert like(rule, rule.upper())


@unhurried
@given(rules, st.sampled_from(["never", "do not", "don't", "avoid to", "by no means do"]))
def test_a_negation_turns_the_sense(rule: str, denial: str) -> None:
    denied = f"{denial} {rule}"
    assert not like(rule, denied)
    assert not like(f"always {rule}", denied)
    assert like(denied, f"Keep in mind: {denied}!")
    assert like(f"never {rule}", f"do not {rule}")


@unhurried
@given(rules, rules, st.sampled_from([("before", "after"), ("first", "last"), ("more", "less")]))
def test_contrasts_turn_the_sense(one: str, two: str, pair: tuple[str, str]) -> None:
    said, turned = (f"{one} {word} {two}" for word in pair)
    assert like(said, said.upper())
    assert not like(said, turned)


@unhurried
@given(texts, texts)
def test_likeness_is_symmetric_and_reflexive(one: str, two: str) -> None:
    assert like(one, one)
    assert like(one, two) == like(two, one)


@unhurried
@given(texts, texts, st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_lower_share_never_tells_more_apart(one: str, two: str, a: float, b: float) -> None:
    if like(one, two, max(a, b)):
        assert like(one, two, min(a, b))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("- Compare start times of the two events before answer", True),
        ("Compare carefully the start times of the two events before you answer.", True),
        ("Compare the start times of the two events after you answer.", False),
        ("Compare the end times of the two events before you answer.", False),
        ("Compare the start times of the three events before you answer.", False),
        ("Do not compare the start times of the two events before you answer.", False),
        ("Before you answer, compare the subtitles of the two scenes.", False),
        ("Answer before the two events of the start times compare you.", False),
        ("Look twice.", False),
        ("", False),
    ],
)
def test_a_rule_and_others(other: str, expected: bool) -> None:
    assert like(RULE, other) is expected


def test_a_negation_belongs_to_its_word() -> None:
    """Most words are common; the denied one is not."""
    one = "Search the subtitles of the scene that the question names; do not open its card."
    two = "Do not search the subtitles of the scene that the question names; open its card."
    assert not like(one, two)


def test_numbers_are_part_of_a_rule() -> None:
    assert not like("View at least 3 frames of the event.", "View at least 30 frames of the event.")


def test_texts_without_words_are_alike_only_if_equal() -> None:
    assert not like("---", "***")
    assert like("---", " --- ")
    assert not like("a the", "of")
    assert folded("- Look  TWICE. ") == "- look twice"


def test_scripts_without_spaces() -> None:
    assert like("先比较两个事件的开始时间,再回答问题。", "先比较两个事件的开始时间,再回答问题吧")
    assert not like("先比较两个事件的开始时间", "打开场景的字幕再看一遍")


def test_the_lines_of_real_skills_are_told_apart() -> None:
    """Among rules that people wrote no two are alike, and each is like itself reworded."""
    folder = Path(__file__).parents[2] / "seeds" / "demo" / "skills" / "v1"
    lines = {line for path in folder.glob("*.md") for line in path.read_text("utf-8").splitlines()}
    rules = sorted(line for line in lines if line.startswith("- "))
    assert len(rules) > 100
    gists = [gist(rule) for rule in rules]
    assert not [
        (rules[a], rules[b])
        for a, b in combinations(range(len(rules)), 2)
        if alike(gists[a], gists[b], SHARE)
    ]
    assert all(like(rule, f"- Keep in mind: {rule[2:]}") for rule in rules)
