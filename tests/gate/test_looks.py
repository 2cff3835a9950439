"""Blocks and accept looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from actors.gate.looks import accept_looks, accept_rule, block_ends
from actors.gate.telling import tell
from protocol.gate import Look


@pytest.mark.parametrize(
    ("n_units", "expected"),
    [
        (0, ()),
        (8, (8,)),
        (20, (20,)),
        (21, (12, 21)),
        (30, (12, 30)),
        (45, (24, 45)),
        (50, (24, 50)),
        (60, (24, 40, 60)),
        (68, (24, 48, 68)),
    ],
)
def test_accept_looks(n_units: int, expected: tuple[int, ...]) -> None:
    """N; max(12, .4 N) and N; .27 N, .6 N and N; rounded up to block ends."""
    assert accept_looks(n_units) == expected


def test_block_ends() -> None:
    """4, 4, 4, 4, 8, 8, and what remains."""
    assert block_ends(30) == (4, 8, 12, 16, 24, 30)


@given(st.integers(1, 400))
def test_every_look_ends_a_block_and_the_last_is_the_end(n_units: int) -> None:
    """Evidence is complete whenever the gate may accept."""
    ends, looks = block_ends(n_units), accept_looks(n_units)
    assert set(looks) <= set(ends)
    assert looks[-1] == ends[-1] == n_units
    assert list(ends) == sorted(set(ends))


@pytest.mark.parametrize("n_units", [8, 20, 21, 45, 68])
def test_the_rule_of_every_look(n_units: int) -> None:
    """Between the accept looks nothing can be accepted; the last one takes the exact test."""
    *early, last = accept_looks(n_units)
    rules = {units: accept_rule(units, n_units) for units in block_ends(n_units)}
    assert {units for units, rule in rules.items() if rule == "core"} == set(early)
    assert [units for units, rule in rules.items() if rule == "endgame"] == [last]
    assert set(rules.values()) <= {"none", "core", "endgame"}


def test_a_look_says_whether_it_may_accept() -> None:
    """An e-value beyond 1 / alpha accepts nothing at a look that may not."""
    with capture_logs() as lines:
        for units in (8, 12, 30):
            look = Look(units=units, wins=6, losses=0, ties=2, missing=0, e=11.4)
            tell("e1/c/s1", look, 30, 0.2)
    assert [(line["accept_rule"], line["accept_from"]) for line in lines] == [
        ("none", 5.0),
        ("core", 5.0),
        ("endgame", 5.0),
    ]
