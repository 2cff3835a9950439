"""Edits that are switched on and off one by one."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver.compose import compose, render
from actors.evolver.document import validate
from actors.evolver.patch import Limits, apply_edits
from protocol.evolver import Edit
from tests.evolver.make import SKILL, edit
from tests.fuzz.hostile import FROZEN_TITLES, hostile_document, hostile_edit

WIDE = Limits(edits=1, max_chars=10**9, max_growth=1e9)
PLAIN = [
    edit("append", "", "- Compare start times."),
    edit("insert_after", "- Open the scene", "- Note when it begins."),
    edit("replace", "- None yet.", "- The first match is not the first event."),
    edit("append", "", "- Stop early."),
    edit("delete", "- Look twice.\n"),
]


def one_at_a_time(text: str, edits: list[Edit]) -> str:
    for item in edits:
        patched = apply_edits(
            text, [item], WIDE, screen=lambda _: None, frozen_headings=FROZEN_TITLES
        )
        assert patched.applied == 1
        text = patched.text
    return text


def test_every_subset_of_plain_edits_is_a_document() -> None:
    composition = compose(SKILL, PLAIN, 10_000)
    assert composition.groups == ((0,), (1,), (2,), (3,), (4,))
    assert composition.refused == ()
    texts = set()
    for size in range(6):
        for subset in itertools.combinations(range(5), size):
            text = render(composition, subset)
            assert validate(text) == ()
            assert text == one_at_a_time(SKILL, [PLAIN[n] for n in subset])
            texts.add(text)
    assert len(texts) == 32
    assert render(composition, ()) == SKILL


def test_edits_that_meet_are_exclusive() -> None:
    meeting = [
        edit("replace", "- None yet.", "- x"),
        edit("delete", "## Pitfalls\n- None yet."),
        edit("insert_after", "- None yet.", "- y"),
        edit("append", "", "- z"),
        edit("append", "", "- z\n- zz"),
        edit("insert_after", "- Open the scene", "- Note when it begins."),
    ]
    composition = compose(SKILL, meeting, 10_000)
    assert composition.groups == ((0, 1, 2), (3, 4), (5,))
    assert "- y" in render(composition, [5, 2])
    with pytest.raises(ValueError, match="exclusive"):
        render(composition, [0, 2])


def test_an_edit_that_makes_anothers_target_ambiguous_is_exclusive_with_it() -> None:
    pair = [
        edit("append", "", "- Open the scene that holds it. Twice."),
        edit("insert_after", "- Open the scene", "- Note when it begins."),
    ]
    assert compose(SKILL, pair, 10_000).groups == ((0, 1),)


def test_an_edit_on_another_edits_text_does_not_compose() -> None:
    chain = [
        edit("append", "", "- new rule"),
        edit("insert_after", "- new rule", "- newer rule"),
        edit("delete", "- Not there."),
        edit("append", "", "MOMENTUM_END"),
    ]
    composition = compose(SKILL, chain, 10_000)
    assert composition.live == (0,)
    assert [(report.status, report.detail[:19]) for report in composition.refused] == [
        ("no_match", "it does not compose"),
        ("no_match", "the target does not"),
        ("marker", "target or content h"),
    ]
    with pytest.raises(ValueError, match="do not compose"):
        render(composition, [1])


def test_all_edits_on_keep_to_the_budget() -> None:
    text = "- " + "a" * 98
    composition = compose(text, [edit("append", "", "- " + c * 30) for c in "bcd"], 180)
    assert composition.live == (0, 1)
    assert [report.status for report in composition.refused] == ["too_long"]
    assert len(render(composition, composition.live)) <= 180


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 7))
def test_p1_6_every_subset_is_sound_and_keeps_what_is_protected(
    rng: random.Random, n_edits: int
) -> None:
    """P1-6 for a document with any subset of its undecided edits, in whatever order listed."""
    document = hostile_document(rng)
    edits: list[Edit] = []
    for _ in range(n_edits):
        edits.append(hostile_edit(rng, document, edits))
    composition = compose(document.text, edits, 10**6, FROZEN_TITLES)
    assert len(composition.live) + len(composition.refused) == n_edits
    if not document.sound:
        assert composition.live == ()
    for _ in range(4):
        subset = [
            n for n in (rng.choice((None, *group)) for group in composition.groups) if n is not None
        ]
        text = render(composition, subset)
        rng.shuffle(subset)
        assert render(composition, subset) == text
        assert text == one_at_a_time(document.text, [edits[n] for n in sorted(subset)])
        if document.sound:
            assert validate(text) == ()
        assert text.startswith(document.front)
        assert text.endswith(document.tail)
        assert all(section in text for section in document.frozen)
