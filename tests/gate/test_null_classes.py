"""Null candidates through ladder, baseline and gate code: the level holds, and is seen to break.

A few classes of every kind; ``python -m tests.bench.null_classes`` is the whole table, 2,000
classes for each row.
"""

from __future__ import annotations

from typing import Literal

import pytest

from tests.bench.null_classes import KEPT, Order, Setting, measure, settings_of

Profile = Literal["balanced", "growth", "audit"]


@pytest.mark.parametrize("order", KEPT)
@pytest.mark.parametrize(
    ("profile", "k", "n_units"),
    [("balanced", 1, 16), ("balanced", 3, 30), ("growth", 1, 30), ("audit", 3, 16)],
)
def test_a_null_candidate_passes_at_most_alpha(
    order: Order, profile: Profile, k: int, n_units: int
) -> None:
    """P1-1a, T1, T2, T5: under every order that the gate makes, and every profile.

    Limit: alpha and three standard errors of so many independent tests at alpha, .05 to .08.
    """
    n_classes = 25 if order == "reused" else 150
    found = measure(Setting(order, settings_of(profile, k), n_units), n_classes)
    print(f"{order} {profile} {k=} {n_units=}: {found}")
    assert found.rate <= found.limit


def test_an_order_that_has_seen_the_snapshot_is_found_out() -> None:
    """The counter-example: baseline-wrong units first, 60 units at .1."""
    found = measure(Setting("wrong first", settings_of("balanced", 1), 60), 150)
    print(found)
    assert found.rate > 0.4 > found.limit


def test_a_model_that_drifts_is_found_out() -> None:
    """Not covered: the served model becomes better between snapshot and candidate (study, 8)."""
    found = measure(Setting("drift", settings_of("balanced", 1), 60), 150)
    print(found)
    assert found.rate > found.limit


def test_the_second_stage_holds_what_a_bad_order_broke() -> None:
    """T5 needs no order: with wrong units first the audit's .3 of the second stage remains.

    The first stage alone passes nearly every null candidate.
    """
    found = measure(Setting("wrong first", settings_of("audit", 1), 30), 150)
    alone = measure(Setting("wrong first", settings_of("growth", 1), 30), 150)
    print(found, alone)
    assert alone.rate > 0.45
    assert found.rate < 0.3 * alone.rate + 0.1
