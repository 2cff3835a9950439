"""The first sentence of a run: what may be said, and nothing that may not."""

from __future__ import annotations

import pytest

from actors.trainer.score import McNemar, mcnemar
from actors.verdict import Compared, Learnt, verdict

LEARNT = Learnt(steps=36, tested=32, accepted=10)


def paired(won: int, lost: int, ties: int) -> McNemar:
    before = {f"w{n}": False for n in range(won)} | {f"l{n}": True for n in range(lost)}
    after = {f"w{n}": True for n in range(won)} | {f"l{n}": False for n in range(lost)}
    same = {f"t{n}": True for n in range(ties)}
    return mcnemar(before | same, after | same)


def on(won: int, lost: int, ties: int, planned: int | None = None) -> Compared:
    own = paired(won, lost, ties)
    return Compared(planned or own.pairs, lost + ties, won + ties, own)


def test_a_gain_is_told_with_all_that_it_rests_on() -> None:
    """Both shares, the gain, its interval, the exact p."""
    said = verdict(LEARNT, is_seed=False, test=on(42, 12, 48, planned=None))
    assert said.startswith("The trained package answers 88.2 % of the test questions, the seed ")
    assert "58.8 %: +29.4 points [" in said
    assert said.endswith("one-sided exact McNemar p = 2.6e-05.")


@pytest.mark.parametrize(
    ("won", "lost", "begins"),
    [
        (6, 1, "No improvement shown: the trained package"),  # p = .0625
        (7, 1, "The trained package"),
        (3, 3, "No improvement shown: the trained package"),
        (1, 7, "The training did harm: the trained package"),
        (0, 0, "No improvement shown: the trained package"),
    ],
)
def test_only_the_exact_test_lets_a_claim_through(won: int, lost: int, begins: str) -> None:
    """At .05 and one-sided, in either direction."""
    assert verdict(LEARNT, is_seed=False, test=on(won, lost, 20)).startswith(begins)


def test_what_was_lost_is_said() -> None:
    """Shares are of what was planned, the gain is of pairs: where they differ, both are told."""
    said = verdict(LEARNT, is_seed=False, test=on(20, 2, 10, planned=40))
    assert "75.0 % of the test questions" in said
    assert "(on the 32 that both have answered)" in said
    none = Compared(5, 0, 0, mcnemar({}, {}))
    assert "no test question was answered under both" in verdict(LEARNT, is_seed=False, test=none)


def test_val_claims_nothing() -> None:
    """It chose the package."""
    said = verdict(LEARNT, is_seed=False, val=on(30, 2, 10))
    assert said.startswith("No improvement is claimed: test was not evaluated")
    assert "flatters" in said
    assert verdict(LEARNT, is_seed=False).endswith("(trainer.run_holdout_eval).")


@pytest.mark.parametrize(
    ("learnt", "said"),
    [
        (Learnt(0, 0, 0), "Nothing was learnt because no step was made."),
        (Learnt(1, 0, 0), "Nothing was learnt because no edit was proposed in 1 step."),
        (
            Learnt(4, 1, 0),
            "Nothing was learnt because the only edit that the gate looked at was not accepted.",
        ),
        (
            Learnt(36, 32, 0),
            "Nothing was learnt because none of the 32 edits that the gate looked at was accepted.",
        ),
        (
            LEARNT,
            "No improvement shown: 10 of 32 edits were accepted, but no package was better than "
            "the seed's on val.",
        ),
    ],
)
def test_nothing_is_told_with_its_reason(learnt: Learnt, said: str) -> None:
    """Where the seed remained the best; a comparison with itself is none."""
    assert verdict(learnt, is_seed=True, test=on(0, 0, 9)) == said
