"""The discrete step-up: against its definition in fractions, and what must never change it."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gate.factorial.binomial import tail, tails
from actors.gate.factorial.stepup import Evidence, StepUp, step_up

Q = Fraction(3, 20)


def edit(edit_id: str, wins: int, losses: int, **more: object) -> Evidence:
    fields: dict[str, object] = {"edit_id": edit_id, "wins": wins, "losses": losses}
    return msgspec.convert(fields | more, Evidence)


@st.composite
def families(draw: st.DrawFn) -> list[Evidence]:
    """Up to 24 edits, a few of them good, a few dropped, some with little to say."""
    found = []
    for place in range(draw(st.integers(0, 24))):
        wins, losses = draw(st.integers(0, 14)), draw(st.integers(0, 9))
        dropped = draw(st.integers(0, 5)) == 0
        later = draw(st.integers(0, 6)) if dropped else 0
        seen = wins + losses + later
        found.append(edit(f"e{place}", wins, losses, dropped=dropped, seen=seen))
    return found


levels = st.sampled_from([Fraction(1, 20), Q, Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)])


def by_definition(edits: list[Evidence], q: Fraction, cap: Fraction) -> tuple[set[str], Fraction]:
    """FACTORIAL's rule, word for word, with nothing but fractions."""
    support = [{_tail(e.discordant, w) for w in range(e.discordant + 1)} for e in edits]
    p = [Fraction(1) if e.dropped else _tail(e.discordant, e.wins) for e in edits]

    def attained(values: set[Fraction], t: Fraction) -> Fraction:
        return max((value for value in values if value <= t), default=Fraction(0))

    tau = Fraction(0)
    for t in sorted({value for values in support for value in values if value <= cap}):
        f = [attained(values, t) for values in support]
        if sum(x / (1 - x) for x in f) <= q * len(edits):
            tau = t
    ordered, n = sorted(p), 0
    for k, at in enumerate(ordered, start=1):
        charged = sum(attained(s, at) / (1 - attained(s, tau)) for s in support)
        if at <= tau and charged <= q * k:
            n = k
    cut = ordered[n - 1] if n else Fraction(-1)
    return {e.edit_id for e, value in zip(edits, p, strict=True) if value <= cut}, tau


def _tail(n: int, at_least: int) -> Fraction:
    return Fraction(sum(comb(n, k) for k in range(at_least, n + 1)), 2**n)


@settings(deadline=None)
@given(families(), levels, st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(3, 4)]))
def test_is_the_definition(edits: list[Evidence], q: Fraction, cap: Fraction) -> None:
    """Integers over a power of two decide as fractions do."""
    decided = step_up(edits, q, cap)
    assert (set(decided.adopted), decided.tau) == by_definition(edits, q, cap)


@settings(deadline=None)
@given(families(), levels, st.randoms(use_true_random=False))
def test_order_is_irrelevant(edits: list[Evidence], q: Fraction, chance: random.Random) -> None:
    """The same edits in another order: the same adopted ones."""
    other = chance.sample(edits, len(edits))
    here, there = step_up(edits, q), step_up(other, q)
    assert set(here.adopted) == set(there.adopted)
    assert (here.tau, here.cut) == (there.tau, there.cut)


@settings(deadline=None)
@given(families(), levels)
def test_adopts_the_smallest_p(edits: list[Evidence], q: Fraction) -> None:
    """Nobody above the cut, everybody at or below it; no dropped edit; never above tau or cap."""
    decided = step_up(edits, q)
    p = {one.edit_id: value for one, value in zip(edits, decided.p, strict=True)}
    if decided.cut is None:
        assert decided.adopted == ()
        return
    assert set(decided.adopted) == {name for name, value in p.items() if value <= decided.cut}
    assert decided.cut <= decided.tau <= Fraction(1, 10)
    assert not any(one.dropped for one in edits if one.edit_id in decided.adopted)


@settings(deadline=None)
@given(families(), levels)
def test_edits_without_a_small_p_add_nothing_to_the_sums(
    edits: list[Evidence], q: Fraction
) -> None:
    """They make the run larger: tau can only rise, and where it does not nobody else changes.

    A larger tau may cost an edit: the charge at its p is divided by 1 - F(tau).
    """
    idle = [edit(f"idle{i}", 1, 2) for i in range(30)]
    without, beside = step_up(edits, q), step_up([*edits, *idle], q)
    assert beside.tau >= without.tau
    if beside.tau == without.tau:
        assert (beside.adopted, beside.cut) == (without.adopted, without.cut)


def test_a_group_gives_one() -> None:
    """The smallest p of an exclusive group; of equal ones the first."""

    def adopted(*edits: Evidence) -> tuple[str, ...]:
        return step_up(edits, Q).adopted

    assert adopted(edit("a", 9, 1, group="g"), edit("b", 12, 0, group="g")) == ("b",)
    assert adopted(edit("a", 9, 0, group="g"), edit("b", 9, 0, group="g")) == ("a",)
    others = edit("c", 12, 0), edit("d", 11, 0, group="h")
    decided = step_up([edit("a", 12, 0, group="g"), edit("b", 12, 0, group="g"), *others], Q)
    assert decided.adopted == ("a", "c", "d")
    assert decided.passed == 4


def test_a_bound_that_is_met_exactly_is_met() -> None:
    """Where the guard bits cannot tell, fractions do: 4 edits at 1/16, sum 4/15 = q k."""
    edits = [edit(f"e{i}", 4, 0) for i in range(4)]
    exact = Fraction(1, 15)
    assert len(step_up(edits, exact).adopted) == 4
    assert step_up(edits, exact - Fraction(1, 2**140)).adopted == ()
    assert step_up(edits, exact + Fraction(1, 2**140)).tau == Fraction(1, 16)


def test_nothing_to_decide() -> None:
    """A run without an edit adopts none."""
    assert step_up([], Q) == StepUp(adopted=(), p=(), tau=Fraction(0), cut=None, passed=0)


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1), Fraction(-1, 5), Fraction(3, 2)])
def test_a_level_is_a_probability(level: Fraction) -> None:
    """q and cap lie between 0 and 1."""
    with pytest.raises(ValueError, match="q must lie"):
        step_up([], level)
    with pytest.raises(ValueError, match="cap must lie"):
        step_up([], Q, level)


def test_an_id_is_one_edit() -> None:
    """Counted twice it would decide twice."""
    with pytest.raises(ValueError, match="twice"):
        step_up([edit("a", 3, 0), edit("a", 3, 0)], Q)


def test_large_runs_decide_quickly() -> None:
    """144 edits with hundreds of discordant pairs each."""
    edits = [edit(f"e{i}", 150 + 5 * (i % 29), 150 + i) for i in range(144)]
    assert len(step_up(edits, Q).p) == 144


@settings(deadline=None)
@given(st.integers(0, 60))
def test_tails(n: int) -> None:
    """Ascending, from all heads to anything."""
    values = tails(n)
    assert [Fraction(v, 2**n) for v in values] == [_tail(n, w) for w in range(n, -1, -1)]
    assert list(values) == sorted(set(values))
    assert tail(n, n) == Fraction(1, 2**n)
    with pytest.raises(ValueError, match="coins"):
        tail(n, n + 1)
