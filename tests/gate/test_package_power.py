"""What a pool can resolve of a whole package's gain."""

from __future__ import annotations

import math
import random

import pytest

from actors.gate.package_power import enough_questions, package_power
from actors.gate.power import REDRAW


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
