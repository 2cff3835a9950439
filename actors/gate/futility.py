"""Stopping without an accept: what the rest of the ladder could still do.

Pure functions. Everything here reads the snapshot, and may: stopping can only lower the chance
of an accept, so the level stays (study, section 1.4). Nothing here may ever cause an accept.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from actors.gate.eprocess import (
    UnitResult,
    exact_alpha,
    judge,
    losses,
    unit_result,
    wins,
)
from actors.gate.lattice import lattice_power

__all__ = [
    "LOSS_RATE",
    "WIN_RATE",
    "Chance",
    "can_accept",
    "chances",
    "conditional_power",
]

WIN_RATE = 0.65
"""A baseline-wrong question is answered right by a candidate worth having."""

LOSS_RATE = 0.08
"""A baseline-right one is lost by it."""

_SAMPLES = 400


class Chance(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit may still turn out to be: results, their probabilities, and the best one."""

    results: tuple[UnitResult, ...]
    weights: tuple[float, ...]
    best: UnitResult


@lru_cache(maxsize=4096)
def chances(draws: tuple[tuple[bool, ...], ...], win_rate: float, loss_rate: float) -> Chance:
    """A unit not yet seen, from its baseline draws [question][draw], none of them empty.

    A question is answered right with 1 - loss_rate where its draws were right, with win_rate
    where they were wrong, and in between by their share; questions are independent.
    """
    k = min(len(per_question) for per_question in draws)
    by_score = [1.0]
    for per_question in draws:
        share = sum(per_question[:k]) / k
        p = share * (1.0 - loss_rate) + (1.0 - share) * win_rate
        spread = [0.0] * (len(by_score) + 1)
        for score, weight in enumerate(by_score):
            spread[score] += weight * (1.0 - p)
            spread[score + 1] += weight * p
        by_score = spread
    n = len(draws)
    results = tuple(
        unit_result(draws, [question < score for question in range(n)]) for score in range(n + 1)
    )
    return Chance(results=results, weights=tuple(by_score), best=results[-1])


def can_accept(
    seen: Sequence[Sequence[UnitResult]],
    to_come: Sequence[Sequence[Chance]],
    alpha: float,
    *,
    passed: int = 0,
) -> bool:
    """Whether any remaining look accepts if every unit to come is won; exact.

    seen, to_come: by group between looks, the same number of groups; the stake and the endgame
    rise with every candidate answer, so that "all right" is the best case.
    passed: looks that have gone by without an accept.
    """
    groups = [
        [*done, *(chance.best for chance in ahead)]
        for done, ahead in zip(seen, to_come, strict=True)
    ]
    return any(judge(groups, exact_alpha(alpha), ended=True).accepts[passed:])


def conditional_power(
    seen: Sequence[Sequence[UnitResult]],
    to_come: Sequence[Sequence[Chance]],
    alpha: float,
    *,
    passed: int = 0,
) -> float:
    """Probability that a remaining look accepts, under the rates in the chances.

    One draw per unit: exact, over the lattice of (wins, losses). Several: the share of 400
    continuations drawn from a generator keyed by the state, standard error at most .025; the
    rule only stops, so that this noise cannot reach the level.
    """
    plain = _as_lattice(seen, to_come)
    if plain is not None:
        return lattice_power(*plain, alpha, passed)
    return _sampled_power(seen, to_come, alpha, passed)


def _as_lattice(
    seen: Sequence[Sequence[UnitResult]], to_come: Sequence[Sequence[Chance]]
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[tuple[float, float, int], ...], ...]] | None:
    """Counts instead of units; None where a result is not a one-draw result."""
    if any(r.sign and (r.above, r.off) != (1, 2) for group in seen for r in group):
        return None
    counts = tuple((wins(group), losses(group)) for group in seen)
    rates: list[tuple[tuple[float, float, int], ...]] = []
    for group in to_come:
        kinds: dict[tuple[float, float], int] = {}
        for chance in group:
            if any(r.sign and (r.above, r.off) != (1, 2) for r in chance.results):
                return None
            pairs = list(zip(chance.results, chance.weights, strict=True))
            win = sum(w for r, w in pairs if r.sign > 0)
            loss = sum(w for r, w in pairs if r.sign < 0)
            kinds[win, loss] = kinds.get((win, loss), 0) + 1
        rates.append(tuple((win, loss, n) for (win, loss), n in sorted(kinds.items())))
    return counts, tuple(rates)


def _sampled_power(
    seen: Sequence[Sequence[UnitResult]],
    to_come: Sequence[Sequence[Chance]],
    alpha: float,
    passed: int,
) -> float:
    key = repr([[(r.sign, r.above, r.off) for r in group] for group in seen])
    digest = hashlib.sha256(f"{key}|{alpha!r}|{passed}".encode()).digest()
    draw = random.Random(int.from_bytes(digest[:8], "big"))
    level = exact_alpha(alpha)
    known: dict[tuple[tuple[tuple[int, int, int], ...], ...], bool] = {}
    hits = 0
    for _ in range(_SAMPLES):
        groups: list[list[UnitResult]] = []
        for done, ahead in zip(seen, to_come, strict=True):
            drawn = [draw.choices(c.results, c.weights)[0] for c in ahead]
            groups.append([*done, *drawn])
        shape = tuple(tuple(sorted((r.sign, r.above, r.off) for r in g if r.sign)) for g in groups)
        if shape not in known:
            known[shape] = any(judge(groups, level, ended=True).accepts[passed:])
        hits += known[shape]
    return hits / _SAMPLES
