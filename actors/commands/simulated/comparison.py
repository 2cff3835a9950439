"""Designs of a gate side by side, on the same planted worlds and at the same cost. Pure.

Every design meets the same questions, the same edits in the same order, and may draw the same
number of answers. Accept-if-better and the ladder test one edit after another until the edits or
the answers are used up; the factorial design lays out as many pairs as the answers pay for.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from actors.commands.simulated.factorial_run import QS, simulate
from actors.commands.simulated.gate_rule import Gate
from actors.commands.simulated.planted import Planted
from actors.commands.simulated.rules import Strict
from actors.commands.simulated.training import Training, train
from protocol.settings import GateSettings

__all__ = ["STRICT", "DesignRow", "Mean", "full_cost", "run_designs", "summarise_designs"]

STRICT = "strict"
_WIDTH = 1.96


class Mean(msgspec.Struct, frozen=True):
    """A mean over worlds with its 95 % interval (normal: 1.96 standard errors either way)."""

    mean: float
    low: float
    high: float


class DesignRow(msgspec.Struct, frozen=True, kw_only=True):
    """One design over all worlds; counts are means per world.

    fresh_gain: of the true accuracy on questions that were never asked, in points; gain: on those
    that were. over_strict: fresh_gain minus that of ``strict`` on the same world.
    worse: share of worlds that end below their start on fresh questions.
    false_share: mean share of useless and harmful edits among the adopted, 0 where none is.
    evaluations: answers drawn, editor's and baseline's too. voided: share of worlds in which a
    sentinel did not look like a coin, so that nothing was adopted.
    """

    design: str
    worlds: int
    fresh_gain: Mean
    gain: Mean
    over_strict: Mean
    worse: float
    edits: float
    helpful: float
    useless: float
    harmful: float
    false_accepts: float
    false_share: float
    evaluations: float
    voided: float


def full_cost(planted: Planted) -> int:
    """Answers that accept-if-better needs to test every edit once."""
    return sum(
        n_units * (1 + sum(len(epoch) for epoch in own))
        for n_units, own in zip(planted.sizes, planted.candidates, strict=True)
    )


def run_designs(
    planted: Planted,
    budget: int,
    ladders: Sequence[GateSettings],
    tell: Callable[[], None] = lambda: None,
) -> dict[str, Training]:
    """What every design comes to in one world. ladders: one profile each.

    tell: called after each class of the factorial designs, which take the longest, so that somebody
    may be told how far it is. Raises ScheduleError if the budget makes no factorial schedule.
    """
    pairs = simulate(planted, budget, qs=QS, tell=tell)
    rules: dict[str, Callable[[], Gate | Strict]] = {
        f"ladder {settings.profile}": partial(Gate, settings) for settings in ladders
    }
    rules[STRICT] = Strict
    found = {name: train(planted, rule(), budget) for name, rule in rules.items()}
    for q, training in zip(QS, pairs, strict=True):
        found[f"factorial q {float(q):.2f}"] = training
    return found


def summarise_designs(found: Sequence[dict[str, Training]]) -> tuple[DesignRow, ...]:
    """found: by design, of every world. Raises statistics.StatisticsError for fewer than two."""
    return tuple(_row(name, found) for name in found[0])


def _row(name: str, found: Sequence[dict[str, Training]]) -> DesignRow:
    own = [one[name] for one in found]
    ahead = [one[name].fresh_gain - one[STRICT].fresh_gain for one in found]
    kinds = [statistics.fmean(one.accepted[kind] for one in own) for kind in range(3)]
    return DesignRow(
        design=name,
        worlds=len(own),
        fresh_gain=_mean([one.fresh_gain for one in own]),
        gain=_mean([one.gain for one in own]),
        over_strict=_mean(ahead),
        worse=statistics.fmean(one.fresh_gain < 0 for one in own),
        edits=statistics.fmean(sum(one.made) for one in own),
        helpful=kinds[2],
        useless=kinds[0],
        harmful=kinds[1],
        false_accepts=kinds[0] + kinds[1],
        false_share=statistics.fmean(one.false_share for one in own),
        evaluations=statistics.fmean(one.evaluations for one in own),
        voided=statistics.fmean(not one.sentinels_ok for one in own),
    )


def _mean(values: Sequence[float]) -> Mean:
    mean = statistics.fmean(values)
    reach = _WIDTH * statistics.stdev(values) / math.sqrt(len(values))
    return Mean(mean, mean - reach, mean + reach)
