"""Blocks and accept looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gate.looks import accept_looks, block_ends


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
