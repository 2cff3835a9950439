"""Other rules on stored answers: what is known of them, and nothing beyond."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.replay_rules import (
    Asked,
    StoredTest,
    parse_rule,
    redecide,
)
from actors.gate.decide import Answers, LadderUnit
from actors.gate.looks import block_ends
from protocol.rows import DecisionRow
from tests.gate.world import SETTINGS
from tests.protocol.samples import sample

RULES = ("always", "strict", "minibatch:3", "minibatch:8", "mcnemar")
GATES = ("gate", "gate:balanced", "gate:growth", "gate:audit")


def asked(
    outcomes: str, n_blocks: int | None = None, missing: frozenset[int] = frozenset()
) -> Asked:
    """A ladder of one-question units from letters: W, L, R (right in both), F (wrong in both).

    n_blocks: how many blocks were answered; None: all.
    """
    ladder = tuple(
        LadderUnit(unit_id=str(i), draws=((letter in "LR",),)) for i, letter in enumerate(outcomes)
    )
    answers: list[Answers] = [
        (None if i in missing else letter in "WR",) for i, letter in enumerate(outcomes)
    ]
    return in_blocks(ladder, answers, n_blocks)


def in_blocks(
    ladder: tuple[LadderUnit, ...], answers: list[Answers], n_blocks: int | None
) -> Asked:
    """The answers of the first blocks."""
    ends = (0, *block_ends(len(ladder)))
    blocks = tuple(tuple(answers[a:b]) for a, b in pairwise(ends))
    return Asked(ladder=ladder, blocks=blocks[:n_blocks])


def stored(*stages: Asked) -> StoredTest:
    """With a row that no rule reads."""
    return StoredTest(row=cast("DecisionRow", sample(DecisionRow)), stages=stages)


def verdict(rule: str, *stages: Asked) -> str:
    """Of a rule."""
    return redecide(parse_rule(rule, SETTINGS), stored(*stages)).verdict


@pytest.mark.parametrize(
    ("rule", "outcomes", "n_blocks", "expected"),
    [
        ("always", "LLLLLLLL", 1, "accept"),
        ("strict", "WRRRRRRR", None, "accept"),
        ("strict", "WLRRRRRR", None, "reject"),  # no better is not better
        ("strict", "WRRRFFFF", 1, "accept"),  # nothing of the rest can be lost
        ("strict", "WRRRRRRR", 1, "unknown"),
        ("strict", "LRRRRRRR", 1, "reject"),  # nothing of the rest can be won
        ("minibatch:3", "RRRWWWWW", None, "reject"),  # the baseline has no mistake there
        ("minibatch:3", "FWRLLLLL", 1, "accept"),
        ("minibatch:3", "FRRWWWWW", 1, "reject"),
        ("minibatch:8", "WRRRRRRR", 1, "unknown"),
        ("minibatch:8", "WWWWRRRF", 1, "accept"),
        ("mcnemar", "WWWRRRRR", None, "accept"),  # 1/8 <= .2
        ("mcnemar", "WWRRRRRR", None, "reject"),  # 1/4
        ("mcnemar", "FFRRRRRR", 0, "untestable"),  # two wins at most
        ("mcnemar", "WWWFRRRRRRRR", 1, "unknown"),
        ("mcnemar", "WWWWFFFFFFFF", 1, "accept"),  # nothing can be lost any more
        ("gate", "WWWRRRRR", None, "accept"),
        ("gate:growth", "WWRRRRRR", None, "accept"),  # 1/4 <= .3
        ("gate:growth", "WWFFFFRR", 1, "unknown"),
    ],
)
def test_a_rules_verdict(rule: str, outcomes: str, n_blocks: int | None, expected: str) -> None:
    """By hand, at the level of a small class, .2."""
    assert verdict(rule, asked(outcomes, n_blocks)) == expected


def test_unknown_says_how_much_is_lacking() -> None:
    """Four of eight were asked."""
    found = redecide(parse_rule("strict", SETTINGS), stored(asked("WRRRRRRR", 1)))
    assert (found.units, found.lacking, found.wins, found.losses) == (4, 4, 1, 0)


def test_audit_needs_a_second_stage() -> None:
    """Not run: unknown. Run: both must accept."""
    first = asked("WWWWRRRR")
    assert verdict("gate:audit", first) == "unknown"
    assert verdict("gate:audit", first, asked("WWWRRRRR")) == "accept"
    assert verdict("gate:audit", first, asked("WLRRRRRR", 1)) == "reject"
    assert verdict("gate:audit", first, asked("RRRRRRRR", 0)) == "reject"  # untestable there
    assert verdict("gate:balanced", first, asked("WLRRRRRR", 1)) == "accept"


def test_a_missing_answer_is_no_pair() -> None:
    """P1_4: neither right nor wrong, whatever the rule."""
    assert verdict("strict", asked("WRRRRRRR", missing=frozenset({0}))) == "reject"
    assert verdict("strict", asked("WLRRRRRR", missing=frozenset({1}))) == "accept"
    assert verdict("minibatch:3", asked("FLWRRRRR", missing=frozenset({1}))) == "accept"


def test_only_the_first_draw_is_read_by_rules_that_draw_once() -> None:
    """Three draws: the gate reads all of them, the others the oldest."""
    ladder = tuple(LadderUnit(unit_id=str(i), draws=((i >= 3, True, True),)) for i in range(8))
    whole = in_blocks(ladder, [(True,)] * 8, None)
    assert verdict("mcnemar", whole) == "accept"  # 1/8; with all draws it would be (3/4)^3
    assert verdict("gate", whole) == "untestable"
    assert redecide(parse_rule("strict", SETTINGS), stored(whole)).wins == 3


@pytest.mark.parametrize("text", ["", "minibatch", "minibatch:0", "gate:", "gate:x", "strict:3"])
def test_an_unknown_rule_is_refused_with_those_that_there_are(text: str) -> None:
    """Usage."""
    with pytest.raises(ValueError, match=r"is none of always, strict, minibatch:N"):
        parse_rule(text, SETTINGS)


@st.composite
def made_tests(draw: st.DrawFn) -> tuple[tuple[LadderUnit, ...], list[Answers]]:
    """A ladder of units with one to three questions and one to three draws, all answered."""
    k = draw(st.integers(1, 3))
    ladder: list[LadderUnit] = []
    answers: list[Answers] = []
    for i in range(draw(st.integers(1, 26))):
        n = draw(st.integers(1, 3))
        bits = st.lists(st.booleans(), min_size=k, max_size=k)
        ladder.append(LadderUnit(unit_id=str(i), draws=tuple(tuple(draw(bits)) for _ in range(n))))
        answers.append(tuple(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
    return tuple(ladder), answers


@given(made=made_tests(), n_blocks=st.integers(0, 7), rule=st.sampled_from((*RULES, *GATES)))
def test_what_is_known_of_a_part_holds_of_the_whole(
    made: tuple[tuple[LadderUnit, ...], list[Answers]], n_blocks: int, rule: str
) -> None:
    """A verdict on the first blocks is the one on all of them, or else it is unknown."""
    settings = msgspec.structs.replace(SETTINGS, futility_power=0.0)  # sampled where k > 1: slow
    chosen = parse_rule(rule, settings)
    part, whole = (in_blocks(*made, n) for n in (n_blocks, None))
    second = (whole,) if rule == "gate:audit" else ()
    of_part = redecide(chosen, stored(part, *second)).verdict
    of_whole = redecide(chosen, stored(whole, *second)).verdict
    assert of_whole != "unknown"
    assert of_part in ("unknown", of_whole) or {of_part, of_whole} == {"untestable", "reject"}
