"""What N null comparisons say of endpoint, cache and salts. Pure.

A null comparison tests a text against itself. Its draws are as independent as those of a real
test, so that it must be accepted as rarely as the level says, and answers must flip between draws
as often as the endpoint is undecided: never, and the second draw was a copy of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from actors.trainer.score import wilson
from protocol.gate import Decision
from protocol.rows import BaselineRow, OutcomeRow

__all__ = [
    "SIGNIFICANT",
    "ClassNulls",
    "Flips",
    "NullReport",
    "NullTest",
    "clopper_pearson",
    "count_flips",
    "report_of",
    "tail_of",
]

SIGNIFICANT = 0.01
"""An accept rate whose chance under the level is no more than this contradicts it."""

Verdict = Literal["consistent", "above", "nothing"]


class NullTest(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of a class with its decision."""

    task_type: str
    index: int
    decision: Decision


class Flips(msgspec.Struct, frozen=True):
    """Question pairs, and those of them whose answers differ in rightness, by direction."""

    pairs: int = 0
    to_right: int = 0
    to_wrong: int = 0

    @property
    def flipped(self) -> int:
        """Both directions."""
        return self.to_right + self.to_wrong

    def plus(self, other: Flips) -> Flips:
        """Both together."""
        return Flips(
            self.pairs + other.pairs,
            self.to_right + other.to_right,
            self.to_wrong + other.to_wrong,
        )


class ClassNulls(msgspec.Struct, frozen=True, kw_only=True):
    """A class's comparisons. alpha: the level of each."""

    task_type: str
    n_units: int
    alpha: float
    tests: int
    accepted: int
    untestable: int
    undecided: int
    flips: Flips


class NullReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of them.

    expected: accepts that the levels allow on average. p: chance of as many accepts or more if
    every test is accepted with its level. critical: fewest accepts with p <= ``SIGNIFICANT``;
    None: not even all would be.
    flip_low to accept_high: 95 % intervals, Wilson's and the exact one.
    """

    planned: int
    tests: int
    accepted: int
    expected: float
    p: float
    critical: int | None
    accept_low: float
    accept_high: float
    flips: Flips
    flip_low: float
    flip_high: float
    classes: tuple[ClassNulls, ...]
    verdict: Verdict

    @property
    def frozen_answers(self) -> bool:
        """Enough pairs, and none differs: the draws are not independent, or there is no chance."""
        return self.flips.pairs >= 30 and self.flips.flipped == 0


def report_of(
    planned: int, tests: Sequence[NullTest], flips: Mapping[tuple[str, int], Flips]
) -> NullReport:
    """flips: by class and index."""
    alphas = [test.decision.alpha for test in tests]
    accepted = sum(test.decision.verdict == "accept" for test in tests)
    together = _together(flips.values())
    p = tail_of(alphas, accepted)
    flip_low, flip_high = wilson(together.flipped, together.pairs)
    accept_low, accept_high = clopper_pearson(accepted, len(tests))
    return NullReport(
        planned=planned,
        tests=len(tests),
        accepted=accepted,
        expected=math.fsum(alphas),
        p=p,
        critical=next(
            (k for k in range(len(tests) + 1) if tail_of(alphas, k) <= SIGNIFICANT), None
        ),
        accept_low=accept_low,
        accept_high=accept_high,
        flips=together,
        flip_low=flip_low,
        flip_high=flip_high,
        classes=tuple(_class(name, tests, flips) for name in sorted({t.task_type for t in tests})),
        verdict="nothing" if not tests else "above" if p <= SIGNIFICANT else "consistent",
    )


def _class(
    task_type: str, tests: Sequence[NullTest], flips: Mapping[tuple[str, int], Flips]
) -> ClassNulls:
    own = [test.decision for test in tests if test.task_type == task_type]
    verdicts = [decision.verdict for decision in own]
    return ClassNulls(
        task_type=task_type,
        n_units=own[0].n_units,
        alpha=own[0].alpha,
        tests=len(own),
        accepted=verdicts.count("accept"),
        untestable=verdicts.count("untestable"),
        undecided=verdicts.count("undecided"),
        flips=_together(found for (name, _), found in flips.items() if name == task_type),
    )


def _together(flips: Iterable[Flips]) -> Flips:
    total = Flips()
    for each in flips:
        total = total.plus(each)
    return total


def count_flips(baseline: Iterable[BaselineRow], outcomes: Iterable[OutcomeRow]) -> Flips:
    """Pairs of one comparison: the snapshot's first draw against the second arm's answer.

    A question that infrastructure lost in either arm is no pair.
    """
    before = {row.question_id: row.right for row in baseline if row.draw == 0}
    pairs = [
        (before[row.question_id], row.outcome == "right")
        for row in outcomes
        if row.outcome != "missing" and row.question_id in before
    ]
    return Flips(
        pairs=len(pairs),
        to_right=sum(after and not first for first, after in pairs),
        to_wrong=sum(first and not after for first, after in pairs),
    )


def tail_of(chances: Sequence[float], at_least: int) -> float:
    """P(as many events or more), each with its own probability, all independent."""
    by_count = [1.0]
    for p in chances:
        spread = [0.0] * (len(by_count) + 1)
        for count, mass in enumerate(by_count):
            spread[count] += mass * (1.0 - p)
            spread[count + 1] += mass * p
        by_count = spread
    return min(1.0, math.fsum(by_count[at_least:]))


def clopper_pearson(events: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion; (0, 1) without data."""
    if n == 0:
        return 0.0, 1.0
    beside = (1.0 - level) / 2.0
    low = 0.0 if events == 0 else _where(lambda p: _upper(n, events, p) >= beside)
    high = 1.0 if events == n else _where(lambda p: 1.0 - _upper(n, events + 1, p) <= beside)
    return low, high


def _upper(n: int, at_least: int, p: float) -> float:
    """P(Bin(n, p) >= at_least), 0 < p < 1, by logarithms."""
    whole = math.lgamma(n + 1)
    yes, no = math.log(p), math.log1p(-p)
    return math.fsum(
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * yes + (n - k) * no)
        for k in range(at_least, n + 1)
    )


def _where(holds: Callable[[float], bool]) -> float:
    """The p from which on it holds."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
