"""What a pool can resolve of a whole package's gain."""

from __future__ import annotations

import math
import random

import pytest

from actors.gate.package_power import (
    enough_questions,
    forecast_power,
    package_power,
    seed_pass_power,
)
from actors.gate.power import REDRAW
from protocol.rows import EvaluationRow


def chance(n: int, wrong: int, strength: float, alpha: float, draws: int) -> float:
    """How often McNemar's test finds the gain, by drawing."""
    draw = random.Random(f"{n}/{wrong}/{strength}")
    p = 1 - wrong / n
    again, lost = REDRAW * p, REDRAW * (1 - p)
    found = 0
    for _ in range(draws):
        won = sum(draw.random() < again + strength * (1 - again) for _ in range(wrong))
        less = sum(draw.random() < lost for _ in range(n - wrong))
        discordant = won + less
        tail = sum(math.comb(discordant, k) for k in range(won, discordant + 1))
        found += discordant > 0 and tail / 2**discordant <= alpha
    return found / draws


@pytest.mark.parametrize(("n", "wrong"), [(120, 38), (60, 30)])
def test_the_gain_is_found_as_often_as_said(n: int, wrong: int) -> None:
    """The exact numbers against draws from the model."""
    power = package_power(n, wrong)
    again = REDRAW * (1 - wrong / n)
    for gain, wanted in ((power.gain_50, 0.5), (power.gain_80, 0.8)):
        assert gain is not None
        strength = gain / ((1 - again) * wrong / n)
        assert chance(n, wrong, strength, 0.05, 2000) == pytest.approx(wanted, abs=0.04)


def test_more_questions_see_less() -> None:
    """A larger pool resolves a smaller gain; too small a one resolves none."""
    gains = [package_power(n, n // 3).gain_50 for n in (60, 120, 240, 600)]
    assert gains == sorted(gains, key=lambda gain: -(gain or 9))
    assert package_power(20, 5).gain_50 is None
    assert package_power(0, 0).gain_50 is None
    assert package_power(3000, 1000).gain_50 is not None  # no float overflows
    with pytest.raises(ValueError, match="4 wrong of 3"):
        package_power(3, 4)


def test_how_many_questions_are_enough() -> None:
    """So many of the same kind bring a gain within reach; a tenth less do not; else None."""
    power = package_power(90, 20)
    enough = enough_questions(power)
    assert power.gain_80 is None
    assert enough is not None
    assert package_power(enough, round(enough * 20 / 90)).gain_80 is not None
    fewer = round(enough * 0.9)
    assert package_power(fewer, round(fewer * 20 / 90)).gain_80 is None
    assert enough_questions(package_power(120, 38)) is None  # within reach already
    assert enough_questions(package_power(30, 0)) is None
    assert enough_questions(package_power(20, 1)) is None  # not even with four times as many


def test_a_pool_that_is_answered_afresh_is_as_hard_as_trainval() -> None:
    """The share of trainval's questions, and it is called an estimate."""
    made = forecast_power(90, 108, 231)
    assert (made.n_questions, made.n_wrong, made.basis) == (90, 42, "trainval")
    assert (made.gain_50, made.gain_80) == (
        package_power(90, 42).gain_50,
        package_power(90, 42).gain_80,
    )
    assert forecast_power(0, 0, 0).gain_50 is None


def test_chosen_answers_forecast_less_than_trainval_does() -> None:
    """Easy and hard questions, the pool chosen by one pass: the share over all is no worse off.

    The luckier half of 400 questions of the same hardness has no wrong answer in the pass that
    chose it; in a fresh one as many as trainval's share says.
    """
    draw = random.Random(7)
    first = [draw.random() < 0.4 for _ in range(400)]
    chosen = sorted(range(400), key=lambda one: first[one])[:200]
    own = sum(first[one] for one in chosen)
    fresh = sum(draw.random() < 0.4 for _ in chosen)
    said = forecast_power(200, sum(first), 400).n_wrong
    assert own == 0
    assert abs(said - fresh) < abs(own - fresh) / 4


def test_the_seeds_own_pass_counts_more() -> None:
    """Its row on val, what is missing left out; no other pool, no other package."""

    def row(pool: str, kind: str, planned: int, right: int, missing: int) -> EvaluationRow:
        return EvaluationRow(
            run_key=f"evaluation/{pool}/{kind}",
            epoch=0,
            pool=pool,
            kind=kind,
            skills_version="v1",
            prompts_version="v1",
            planned=planned,
            right=right,
            missing=missing,
            soft=0.5,
            mixed=0.5,
            outcomes_key="k",
        )

    others = [row("test", "seed", 120, 60, 0), row("val", "fast", 92, 70, 0)]
    assert seed_pass_power(others) is None
    made = seed_pass_power([*others, row("val", "seed", 92, 54, 2)])
    assert made == package_power(90, 36, basis="run")
