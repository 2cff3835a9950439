"""The smallest gain of a whole package that a pool can resolve. Pure.

The test is the one on whole packages: exact one-sided McNemar over the pool's questions, the
seed package's draw against the candidate's (ALGORITHM.md section 6). The model is that of
``power``: two draws of one question under one skill differ now and then although nothing has
changed, and a candidate of strength g wins a share g of the wrong questions that would have
stayed wrong. Nothing is sampled here: the two counts are independent binomials.

The wrong questions that count are those of the seed package's draw in the comparison itself. On
val that draw is made in the run. The baseline's count there does not stand for it: the split chose
val by those very answers, so that a fresh pass regresses to the mean. The share over all of
trainval, which no answer chose, is the estimate (``forecast_power``), until the run has its own
count (``seed_pass_power``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from actors.gate.power import REDRAW
from protocol.rows import EvaluationRow

__all__ = [
    "PACKAGE_ALPHA",
    "Basis",
    "PackagePower",
    "enough_questions",
    "forecast_power",
    "package_power",
    "seed_pass_power",
]

Basis = Literal["baseline", "trainval", "run"]

PACKAGE_ALPHA = 0.05
_STEPS = 20
_LARGER = tuple(1.0 + step / 8 for step in range(1, 25))


class PackagePower(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool can see. gain_*: shares of the pool's questions; None: out of reach.

    basis: where n_wrong is from. ``baseline``: counted in its answers; ``trainval``: an estimate,
    the baseline's share over trainval; ``run``: counted in the seed package's pass of this run.
    """

    n_questions: int
    n_wrong: int
    alpha: float
    gain_50: float | None
    gain_80: float | None
    basis: Basis = "baseline"


def package_power(
    n_questions: int, n_wrong: int, alpha: float = PACKAGE_ALPHA, basis: Basis = "baseline"
) -> PackagePower:
    """The smallest gains found with probability .5 and .8 at one-sided level ``alpha``.

    n_wrong: of the questions, wrong under the seed package; basis says where that is from.

    Raises ValueError if more are wrong than there are.
    """
    if not 0 <= n_wrong <= n_questions:
        raise ValueError(f"{n_wrong} wrong of {n_questions} questions")
    gains = [_gain(n_questions, n_wrong, alpha, share) for share in (0.5, 0.8)]
    return PackagePower(
        n_questions=n_questions,
        n_wrong=n_wrong,
        alpha=alpha,
        gain_50=gains[0],
        gain_80=gains[1],
        basis=basis,
    )


def forecast_power(n_questions: int, wrong: int, answered: int) -> PackagePower:
    """The same where the pool's own answers are still to be drawn, or are not to be looked at.

    wrong, answered: of trainval's questions in the baseline; as large a share is expected here.

    Raises ValueError if more are wrong than were answered.
    """
    expected = round(n_questions * wrong / answered) if answered else 0
    return package_power(n_questions, expected, basis="trainval")


def seed_pass_power(passes: Iterable[EvaluationRow]) -> PackagePower | None:
    """What val can see by the seed package's own pass in this run; None: there was none yet."""
    for row in passes:
        if row.pool == "val" and row.kind == "seed":
            answered = row.planned - row.missing
            return package_power(answered, answered - row.right, basis="run")
    return None


def enough_questions(power: PackagePower) -> int | None:
    """How many questions, as many of them wrong, bring a gain within reach with .8, roughly.

    None: not even four times as many, or it is within reach already.
    """
    if power.gain_80 is not None or power.n_wrong == 0:
        return None
    for factor in _LARGER:
        n_questions = math.ceil(power.n_questions * factor)
        n_wrong = round(n_questions * power.n_wrong / power.n_questions)
        if _gain(n_questions, n_wrong, power.alpha, 0.8) is not None:
            return n_questions
    return None


def _gain(n_questions: int, n_wrong: int, alpha: float, wanted: float) -> float | None:
    """The gain whose chance of being found is ``wanted``."""
    if n_wrong == 0:
        return None
    right_share = 1 - n_wrong / n_questions
    again = REDRAW * right_share  # a wrong one is right in another draw
    losses = _binomial(n_questions - n_wrong, REDRAW * (1 - right_share))
    needed = _wins_needed(n_wrong, n_questions - n_wrong, alpha)

    def chance(strength: float) -> float:
        wins = _binomial(n_wrong, again + strength * (1 - again))
        at_least = _tails(wins)
        return math.fsum(
            share * at_least[least]
            for share, least in zip(losses, needed, strict=True)
            if least is not None
        )

    if chance(1.0) < wanted:
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return high * (1 - again) * n_wrong / n_questions


def _wins_needed(most_wins: int, most_losses: int, alpha: float) -> list[int | None]:
    """For every number of losses the fewest wins that McNemar's test accepts; None: no number."""
    needed: list[int | None] = []
    wins = 0
    for losses in range(most_losses + 1):
        while wins <= most_wins and _p_value(wins, losses) > alpha:
            wins += 1
        needed.append(wins if wins <= most_wins else None)
    return needed


def _p_value(wins: int, losses: int) -> float:
    """P(Bin(wins + losses, 1/2) >= wins); 1 without a discordant pair."""
    discordant = wins + losses
    if wins == 0:
        return 1.0
    all_ways = math.lgamma(discordant + 1) - discordant * math.log(2)
    tail = 0.0
    for k in range(wins, discordant + 1):
        term = math.exp(all_ways - math.lgamma(k + 1) - math.lgamma(discordant - k + 1))
        tail += term
        if 2 * k > discordant and term < tail * 1e-15:
            break  # the terms only fall from here
    return tail


def _binomial(n: int, p: float) -> list[float]:
    """The probabilities of 0 to n; by logarithms, since the coefficients outgrow a float."""
    if p >= 1.0:
        return [0.0] * n + [1.0]
    if p <= 0.0:
        return [1.0] + [0.0] * n
    yes, no, all_ways = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    return [
        math.exp(all_ways - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * yes + (n - k) * no)
        for k in range(n + 1)
    ]


def _tails(shares: Sequence[float]) -> list[float]:
    """For every k the probability of k or more."""
    tails = [0.0]
    for share in reversed(shares):
        tails.append(tails[-1] + share)
    return tails[:0:-1]
