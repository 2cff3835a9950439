"""What a ladder can see before a call is spent."""

from __future__ import annotations

import pytest

from actors.gate.power import power_of


@pytest.mark.parametrize(
    ("n_wrong", "alpha", "testable"),
    [
        (4, 0.05, False),
        (5, 0.05, True),
        (3, 0.1, False),
        (4, 0.1, True),
        (2, 0.2, False),
        (3, 0.2, True),
        (1, 0.3, False),
        (2, 0.3, True),
    ],
)
def test_the_fewest_wrong_units(n_wrong: int, alpha: float, testable: bool) -> None:
    """w_min of the study, 1.4: alpha .05 -> 5, .1 -> 4, .2 -> 3, .3 -> 2."""
    assert power_of("c", 12, n_wrong, alpha, 1).testable is testable


def test_an_untestable_class_has_no_gain() -> None:
    """Out of reach is None, not 1."""
    power = power_of("c", 8, 1, 0.1, 1)
    assert (power.testable, power.gain_50, power.gain_80) == (False, None, None)


def test_more_units_see_smaller_gains() -> None:
    """And .8 asks for more than .5."""
    small, large = power_of("c", 30, 10, 0.1, 1), power_of("c", 60, 20, 0.1, 1)
    assert small.gain_50 is not None
    assert large.gain_50 is not None
    assert large.gain_80 is not None
    assert large.gain_50 < small.gain_50
    assert large.gain_50 < large.gain_80 <= 1


def test_three_draws_see_more() -> None:
    """The reason why small classes get them."""
    assert power_of("c", 16, 5, 0.2, 1).gain_50 is None
    assert power_of("c", 16, 5, 0.2, 3).gain_50 is not None


def test_repeatable_and_strict() -> None:
    """Keyed by its arguments; impossible counts are refused."""
    assert power_of("c", 16, 5, 0.2, 3) == power_of("c", 16, 5, 0.2, 3)
    with pytest.raises(ValueError, match="9 wrong of 8"):
        power_of("c", 8, 9, 0.2, 1)


@pytest.mark.parametrize("n_wrong", [16, 22])
def test_no_gain_is_never_enough(n_wrong: int) -> None:
    """However many units are wrong at first, a candidate that changes nothing mostly fails."""
    power = power_of("c", 33, n_wrong, 0.1, 1)
    assert power.gain_50 is not None
    assert power.gain_50 > 0.05


def test_two_stages_cost_power_and_are_worth_it() -> None:
    """30 units, 10 wrong: .3 twice sees more than .1 once, less than .3 once (study, section 3)."""
    levels = ((0.3, 1), (0.3, 2), (0.1, 1))
    found = [power_of("c", 30, 10, alpha, 1, n_stages) for alpha, n_stages in levels]
    assert [power.alpha for power in found] == [0.3, 0.09, 0.1]
    gains = [power.gain_50 for power in found]
    assert None not in gains
    assert gains == sorted(gains, key=lambda gain: gain or 0.0)
