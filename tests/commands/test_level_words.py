"""The error level of a run is that of its decisions."""

from __future__ import annotations

import pytest

from actors.commands.level_words import level_words
from actors.config import load_config

OF_SETTINGS = "profile balanced, error level 0.2 for classes of at most 24 units, 0.1 for larger"


@pytest.mark.parametrize(
    ("alphas", "changed", "expected"),
    [
        ((), False, OF_SETTINGS),
        ((0.2, 0.1, 0.2), False, OF_SETTINGS),
        ((0.2, 0.2), True, "profile balanced, error level of the decisions 0.2"),
        ((0.3, 0.2, 0.1), True, "profile balanced, error level of the decisions 0.1 to 0.3"),
        ((0.25,), False, "profile balanced, error level of the decisions 0.25"),
    ],
)
def test_levels(alphas: tuple[float, ...], changed: bool, expected: str) -> None:
    """Once a setting was changed, or a decision had another level, the settings say nothing."""
    assert level_words(load_config(None).gate, alphas, changed=changed).startswith(expected)


def test_a_profile_has_levels_of_its_own() -> None:
    """``growth`` does not read alpha_small."""
    gate = load_config(None, ["gate.profile=growth"]).gate
    assert level_words(gate, (0.3,), changed=False).startswith("profile growth, error level 0.3")
