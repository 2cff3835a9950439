"""What a ladder can see, before a single call is spent.

Pure. The model: two draws of one question under one skill differ now and then although nothing
has changed. With p the class's share of right answers, a question wrong in one draw is right in
another with probability c p, a right one wrong with c (1 - p), so that wins and losses balance
under a candidate that changes nothing, whatever p is. c = .597 gives the .405 and .19 that the
study's population has at its p = .68. A candidate of strength g turns c p into c p + g (1 - c p):
of the baseline-wrong units a share g is won that would not have been. Its gain is that surplus
as a share of all units, g (1 - c p) wrong / N. Regression noise stays.

With k > 1 draws the first draw is the known one and the others are sampled by the same rates.
So are all draws of a second stage, which has a snapshot and candidate draws of its own.
Every unit is one question. Futility stops are left out; they cost at most .05.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from actors.gate.eprocess import UnitResult, exact_alpha, judge, unit_result
from actors.gate.levels import alpha_of, bound_of, draws_of, stages_of
from actors.gate.looks import accept_looks
from protocol.gate import LadderSize, Power, PowerTable
from protocol.settings import GateSettings

__all__ = ["REDRAW", "power_of", "power_table"]

REDRAW = 0.597
"""c: the share of a question's fate that is drawn anew each time."""

_SAMPLES = 200
_STEPS = 7


@lru_cache(maxsize=1024)  # a second or so; a split, its check and a run's pre-flight ask the same
def power_of(
    task_type: str, n_units: int, n_wrong: int, alpha: float, n_draws: int, n_stages: int = 1
) -> Power:
    """Whether the class is testable, and the smallest gains accepted with .5 and .8.

    n_wrong: units wrong in the baseline's first draw. n_draws: k, draws per question.
    alpha: level of each of n_stages stages; the row has that of the whole.
    testable: some outcome of the candidate could be accepted if all draws are like the first.
    gain_*: shares of units, in (0, 1]; None where even g = 1 is accepted more rarely. From 200
    classes sampled by a generator keyed by the arguments: standard error of the probability .035.

    Raises ValueError if more units are wrong than there are.
    """
    if not 0 <= n_wrong <= n_units:
        raise ValueError(f"{task_type}: {n_wrong} wrong of {n_units} units")
    level = exact_alpha(alpha)
    like_first = [
        unit_result([(i >= n_wrong,) * n_draws], [True]) for i in _spread(n_units, n_wrong)
    ]
    testable = _accepted(like_first, level)
    needed: list[float] = []
    if testable:
        key = f"power|{n_units}|{n_wrong}|{alpha!r}|{n_draws}"
        key += f"|{n_stages}" if n_stages > 1 else ""
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
        draw = random.Random(seed)
        needed = sorted(
            max(
                _strength(draw, n_units, n_wrong, level, n_draws, fresh=stage > 0)
                for stage in range(n_stages)
            )
            for _ in range(_SAMPLES)
        )
    again = _right_again(n_units, n_wrong)
    per_strength = (1.0 - again[0]) * n_wrong / n_units if n_units else 0.0
    gains = [_quantile(needed, share, per_strength) if testable else None for share in (0.5, 0.8)]
    return Power(
        task_type=task_type,
        n_units=n_units,
        n_wrong=n_wrong,
        alpha=bound_of(alpha, n_stages, blind=True),
        testable=testable,
        gain_50=gains[0],
        gain_80=gains[1],
    )


def _quantile(needed: Sequence[float], share: float, per_strength: float) -> float | None:
    """The gain at which this share of the sampled classes accepts."""
    strength = needed[math.ceil(share * len(needed)) - 1]
    return strength * per_strength if strength <= 1.0 else None


def _right_again(n_units: int, n_wrong: int) -> tuple[float, float]:
    """Probability of right in another draw, for a question wrong and for one right before."""
    p = 1.0 - n_wrong / n_units if n_units else 0.0
    return REDRAW * p, 1.0 - REDRAW * (1.0 - p)


def _spread(n_units: int, n_wrong: int) -> list[int]:
    """Unit indices (wrong ones first) in a tier-proportional order."""
    places = [((i + 0.5) / n_wrong, i) for i in range(n_wrong)]
    n_right = n_units - n_wrong
    places += [((i + 0.5) / n_right, n_wrong + i) for i in range(n_right)]
    return [i for _, i in sorted(places)]


def _strength(
    draw: random.Random, n_units: int, n_wrong: int, level: Fraction, n_draws: int, *, fresh: bool
) -> float:
    """The smallest g accepted in one sampled class; 2 where g = 1 is not.

    fresh: all draws are sampled, the known one is not among them.

    The same random numbers serve every g, so that wins only grow with it and bisection holds.
    """
    order = _spread(n_units, n_wrong)
    if_wrong, if_right = _right_again(n_units, n_wrong)
    snapshot: list[tuple[bool, ...]] = []
    luck: list[float] = []
    for i in order:
        again = if_right if i >= n_wrong else if_wrong
        known = () if fresh else (i >= n_wrong,)
        sampled = (draw.random() < again for _ in range(n_draws - len(known)))
        snapshot.append((*known, *sampled))
        luck.append(draw.random())

    def accepted(g: float) -> bool:
        results: list[UnitResult] = []
        for i, draws, u in zip(order, snapshot, luck, strict=True):
            p = if_right if i >= n_wrong else if_wrong + g * (1.0 - if_wrong)
            results.append(unit_result([draws], [u < p]))
        return _accepted(results, level)

    if accepted(0.0):
        return 0.0
    if not accepted(1.0):
        return 2.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if accepted(middle) else (middle, high)
    return high


def _accepted(results: Sequence[UnitResult], level: Fraction) -> bool:
    looks = accept_looks(len(results))
    starts = (0, *looks[:-1])
    groups = [results[start:end] for start, end in zip(starts, looks, strict=True)]
    return judge(groups, level, ended=True).accepted is not None


def power_table(settings: GateSettings, ladders: Sequence[LadderSize]) -> PowerTable:
    """``power_of`` for every class, in the order given."""
    return PowerTable(
        classes=tuple(
            power_of(
                ladder.task_type,
                ladder.n_units,
                ladder.n_wrong,
                alpha_of(settings, ladder.n_units),
                draws_of(settings, ladder.n_units),
                stages_of(settings),
            )
            for ladder in ladders
        )
    )
