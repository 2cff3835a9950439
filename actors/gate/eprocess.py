"""The sequential paired test: core e-process, endgame bet, exact tails.

Pure functions over unit results; exact in rationals, so that a decision never hangs on a
rounding. This file knows nothing of where results come from and must never look at an order
of units, a clock or a random number.

The test is a bet against "the candidate is no better" (testing by betting: Waudby-Smith &
Ramdas 2024; a sequential McNemar test). Every unit multiplies the stake by ``1 + X/2``; at the
last look the stake so far is put on an exact one-sided McNemar test of the last group. One look
alone *is* the exact McNemar test. PACE (arXiv 2606.08106) gates edits of agents by the same
idea.

With several baseline draws the candidate is one of ``k + 1`` draws that are exchangeable under
the null, so that given which of them are above and below their common mean, the candidate is
above with probability ``above / off``, exactly. One draw gives 1/2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Literal

import msgspec

__all__ = [
    "THETA",
    "Judged",
    "UnitResult",
    "binomial_tail",
    "core",
    "critical_wins",
    "exact_alpha",
    "factor",
    "judge",
    "losses",
    "matched_tail",
    "ties",
    "unit_result",
    "wins",
]

THETA = 3
"""Odds ratio that is bet on: lambda = (THETA - 1) / (THETA + 1) = 1/2."""


class UnitResult(msgspec.Struct, frozen=True, kw_only=True):
    """One unit's paired result, X_u, and what the null says about it.

    sign: 1 a win (W), -1 a loss (L), 0 a tie (T).
    above, off: of the k + 1 draws, how many lie above their common mean, and how many not on
        it. Under the null a candidate that is off the mean is above it with probability
        above / off. A tie's are not used.
    gain: candidate minus baseline, share of the unit's questions, in [-1, 1].
    """

    sign: Literal[-1, 0, 1]
    above: int = 1
    off: int = 2
    gain: float = 0.0


def unit_result(draws: Sequence[Sequence[bool]], candidate: Sequence[bool]) -> UnitResult:
    """X_u of one unit over its valid pairs.

    draws: [question][draw], at least one question with at least one draw; where questions have
        different numbers of draws the smallest counts, the first draws are taken.
    candidate: [question], the candidate's one draw.

    With one draw this is sign(right by candidate only - right by baseline only), GATE.md. With
    one question and k draws it is the exact 1:k match of the study, section 1.7.
    """
    n_questions = len(candidate)
    if n_questions == 0 or len(draws) != n_questions:
        raise ValueError(f"{len(draws)} baseline questions against {n_questions} answers")
    k = min(len(per_question) for per_question in draws)
    if k == 0:
        raise ValueError("a pair without a baseline draw is not a pair")
    scores = [sum(per_question[d] for per_question in draws) for d in range(k)]
    scores.append(sum(candidate))
    total = sum(scores)
    above = sum(score * (k + 1) > total for score in scores)
    below = sum(score * (k + 1) < total for score in scores)
    mine = scores[-1] * (k + 1) - total
    return UnitResult(
        sign=1 if mine > 0 else -1 if mine < 0 else 0,
        above=above,
        off=above + below,
        gain=(scores[-1] * k - (total - scores[-1])) / (k * n_questions),
    )


def factor(result: UnitResult, theta: Fraction | int = THETA) -> Fraction:
    """What the unit multiplies the stake by; its mean under the null is 1.

    theta: the odds ratio bet on; 3 with one draw gives 3/2 and 1/2.
    """
    if result.sign == 0:
        return Fraction(1)
    pays = Fraction(theta) if result.sign > 0 else Fraction(1)
    return pays * result.off / (theta * result.above + result.off - result.above)


def core(results: Iterable[UnitResult]) -> Fraction:
    """E after these units: 1.5^W 0.5^L with one draw."""
    counts = Counter((r.sign, r.above, r.off) for r in results if r.sign)
    e = Fraction(1)
    for (sign, above, off), n in sorted(counts.items()):
        e *= _stake(sign, above, off, n)
    return e


@lru_cache(maxsize=4096)
def _stake(sign: Literal[-1, 0, 1], above: int, off: int, n: int) -> Fraction:
    """What n units of one kind multiply the stake by."""
    return factor(UnitResult(sign=sign, above=above, off=off)) ** n


def wins(results: Iterable[UnitResult]) -> int:
    """W."""
    return sum(r.sign > 0 for r in results)


def losses(results: Iterable[UnitResult]) -> int:
    """L."""
    return sum(r.sign < 0 for r in results)


def ties(results: Iterable[UnitResult]) -> int:
    """T."""
    return sum(r.sign == 0 for r in results)


def binomial_tail(n: int, at_least: int, p: Fraction) -> Fraction:
    """P(Bin(n, p) >= at_least), exact."""
    q = 1 - p
    terms = (comb(n, i) * p**i * q ** (n - i) for i in range(max(at_least, 0), n + 1))
    return sum(terms, Fraction(0))


def _matched_weights(results: Iterable[UnitResult]) -> tuple[list[int], int]:
    """Integer weights of the number of wins under the null, and their sum."""
    weights, total = [1], 1
    for r in results:
        if r.sign == 0:
            continue
        stay, move = r.off - r.above, r.above
        spread = [0] * (len(weights) + 1)
        for i, weight in enumerate(weights):
            spread[i] += weight * stay
            spread[i + 1] += weight * move
        weights, total = spread, total * r.off
    return weights, total


def matched_tail(results: Sequence[UnitResult]) -> Fraction:
    """P(wins >= observed) under the null: Poisson-binomial; McNemar's with one draw."""
    weights, total = _matched_weights(results)
    return Fraction(sum(weights[wins(results) :]), total)


def critical_wins(results: Sequence[UnitResult], budget: Fraction) -> tuple[int, Fraction] | None:
    """The fewest wins c with gamma = P(wins >= c) <= budget, and gamma; None: no c will do."""
    weights, total = _matched_weights(results)
    gamma, found = 0, None
    for c in range(len(weights) - 1, -1, -1):
        gamma += weights[c]
        if gamma > budget * total:
            break
        found = (c, Fraction(gamma, total))
    return found


def exact_alpha(alpha: float) -> Fraction:
    """The level as the decimal that was written. Raises ValueError outside (0, 1)."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha}")
    return Fraction(repr(alpha))


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the looks say.

    core: E after each group. accepts: whether each group's own look accepts.
    accepted: index of the first look that accepts, None if none does.
    reason: ``core`` or ``endgame`` for the look that decided; ``endgame infeasible`` if no
        number of wins in the last group could have accepted; ``open`` if the end has not come.
    critical: fewest wins of the last group that accept. e_final: the stake after the endgame
        bet, the core's where there is none. Both None after a core accept.
    p: p_gate, min(1, 1 / max E before the end, tail / E_prev).
    """

    core: tuple[Fraction, ...]
    accepts: tuple[bool, ...]
    accepted: int | None
    reason: Literal["core", "endgame", "endgame infeasible", "open"]
    critical: int | None
    e_final: Fraction | None
    p: Fraction


def judge(groups: Sequence[Sequence[UnitResult]], alpha: Fraction, *, ended: bool) -> Judged:
    """Go through the looks: a core look after every group, the endgame after the last.

    groups: the units between looks, in the order they were seen.
    ended: the last group is the ladder's last; otherwise every group is a core look.
    """
    values: list[Fraction] = []
    e = Fraction(1)
    for group in groups:
        e *= core(group)
        values.append(e)
    if not groups or not ended:
        return _after_core(values, alpha, p=Fraction(1))
    before, last = values[:-1], groups[-1]
    e_prev = before[-1] if before else Fraction(1)
    so_far = _after_core(before, alpha, p=matched_tail(last) / e_prev)
    needed = critical_wins(last, alpha * e_prev)
    won = needed is not None and wins(last) >= max(needed[0], 1)
    whole = msgspec.structs.replace(so_far, core=tuple(values), accepts=(*so_far.accepts, won))
    if so_far.accepted is not None:
        return whole
    if needed is None:
        return msgspec.structs.replace(whole, reason="endgame infeasible", e_final=e)
    c, gamma = needed
    return msgspec.structs.replace(
        whole,
        accepted=len(groups) - 1 if won else None,
        reason="endgame",
        critical=c,
        e_final=e_prev / gamma if won else Fraction(0),
    )


def _after_core(values: Sequence[Fraction], alpha: Fraction, p: Fraction) -> Judged:
    """The core looks alone; p: what the endgame gives, 1 where it has not come."""
    accepts = tuple(value * alpha >= 1 for value in values)
    accepted = accepts.index(True) if True in accepts else None
    last = values[-1] if values else Fraction(1)
    return Judged(
        core=tuple(values),
        accepts=accepts,
        accepted=accepted,
        reason="open" if accepted is None else "core",
        critical=None,
        e_final=last if accepted is None else None,
        p=min(Fraction(1), 1 / max(values, default=Fraction(1)), p),
    )
