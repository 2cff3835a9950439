"""The exact chance of an accept: against every future written out, and quick on long ladders.

What it says decides only whether a test goes on; still a wrong figure would give up edits that
could be accepted, or pay for tests that could not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gate.eprocess import UnitResult, exact_alpha, judge
from actors.gate.lattice import lattice_power

SIGNS: tuple[Literal[-1, 0, 1], ...] = (1, -1, 0)
RATES = st.sampled_from([(0.65, 0.08), (0.0, 0.08), (0.65, 0.0), (0.3, 0.3), (0.5, 0.5)])
GROUP = st.tuples(
    st.tuples(st.integers(0, 4), st.integers(0, 3)),  # seen: wins, losses
    st.lists(st.tuples(RATES, st.integers(0, 2)), max_size=2),  # to come
)


def every_future(
    seen: list[tuple[int, int]], to_come: list[list[tuple[float, float]]], alpha: float, passed: int
) -> float:
    """The same probability by judging each combination of results with the exact test."""
    ahead = [(group, rates) for group, units in enumerate(to_come) for rates in units]
    total = 0.0
    for signs in product(SIGNS, repeat=len(ahead)):
        groups = [[UnitResult(sign=1)] * won + [UnitResult(sign=-1)] * lost for won, lost in seen]
        weight = 1.0
        for (group, (win, loss)), sign in zip(ahead, signs, strict=True):
            weight *= {1: win, -1: loss, 0: 1.0 - win - loss}[sign]
            groups[group].append(UnitResult(sign=sign))
        if any(judge(groups, exact_alpha(alpha), ended=True).accepts[passed:]):
            total += weight
    return total


@given(
    groups=st.lists(GROUP, min_size=1, max_size=3),
    alpha=st.sampled_from([0.05, 0.1, 0.2, 0.3]),
    data=st.data(),
)
def test_it_is_the_sum_over_every_future(
    groups: list[tuple[tuple[int, int], list[tuple[tuple[float, float], int]]]],
    alpha: float,
    data: st.DataObject,
) -> None:
    seen = [counts for counts, _ in groups]
    ahead = [[rates for rates, n in units for _ in range(n)] for _, units in groups]
    if sum(map(len, ahead)) > 6:
        ahead = [units[:2] for units in ahead]
    passed = data.draw(st.integers(0, len(seen) - 1))
    power = lattice_power(
        tuple(seen),
        tuple(tuple((win, loss, 1) for win, loss in units) for units in ahead),
        alpha,
        passed,
    )
    assert power == pytest.approx(every_future(seen, ahead, alpha, passed), abs=1e-12)


def test_units_of_one_kind_count_as_often_as_they_are() -> None:
    one_by_one = lattice_power(((3, 1), (0, 0)), ((), ((0.65, 0.08, 1),) * 5), 0.2, 0)
    assert lattice_power(((3, 1), (0, 0)), ((), ((0.65, 0.08, 5),)), 0.2, 0) == one_by_one


def test_a_stake_that_is_met_exactly_is_met() -> None:
    """1.5^1 0.5^0 times 2/3 is 1: as a look of the exact test, it accepts."""
    alpha = 2 / 3
    assert Fraction(3, 2) * exact_alpha(alpha) == pytest.approx(1)
    assert lattice_power(((0, 0), (0, 0)), (((1.0, 0.0, 1),), ()), alpha, 0) == 1.0


def test_a_long_ladder_needs_no_minute() -> None:
    """600 units in two groups, all still open: sixteen times the states of 150.

    Over dictionaries, state by state, 150 took a second and 300 a minute.
    """
    rates = ((0.65, 0.08, 100), (0.0, 0.08, 200))
    power = lattice_power(((0, 0), (0, 0)), (rates, rates), 0.1, 0)
    assert 0.99 < power <= 1.0
