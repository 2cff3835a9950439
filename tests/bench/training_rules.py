"""The rules under which ``gate_training`` trains, but for the gate: what others do instead.

They are modelled at their acceptance step. Each rule is told what the answers would be and says
whether it takes the candidate, and how many answers it has looked at.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from actors.gate.eprocess import binomial_tail
from tests.bench.planted import Floats, answers_key, uniform

__all__ = [
    "CANDIDATE",
    "SECOND",
    "SECOND_BASE",
    "Always",
    "McNemar",
    "Minibatch",
    "Right",
    "Rule",
    "Strict",
    "Test",
    "Tried",
]

Right: TypeAlias = NDArray[np.bool_]

# arms of one test: which luck a pass draws
CANDIDATE, _BATCH, _PARENT, SECOND = range(4)
SECOND_BASE = 10  # and following: the draws that a second stage compares with
_SNAPSHOT = 10  # and following: the draws of a class's snapshots


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of one class. version: how many were accepted before, names the snapshot.

    current, candidate: true accuracies [unit].
    """

    __test__ = False

    seed: int
    task: int
    epoch: int
    nth: int
    version: int
    current: Floats
    candidate: Floats

    @property
    def n_units(self) -> int:
        """Units of the class."""
        return len(self.current)

    def right(self, arm: int, p: Floats) -> Right:
        """The answers of one arm."""
        luck = uniform(self.seed, answers_key(self.task, self.epoch, self.nth, arm), self.n_units)
        result: Right = luck < p
        return result

    def snapshot(self, draw: int) -> Right:
        """One draw of the current skill, fixed as long as it stands."""
        luck = uniform(self.seed, (2, self.task, self.version, _SNAPSHOT + draw), self.n_units)
        result: Right = luck < self.current
        return result


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """accepted; candidate, baseline: answers looked at; tested: the rule looked at any."""

    accepted: bool
    candidate: int = 0
    baseline: int = 0
    tested: bool = True


class Rule(Protocol):
    """Accepts or rejects. One object serves one training: it may remember."""

    def test(self, test: Test) -> Tried:
        """Decide about a candidate."""

    def end_epoch(self) -> None:
        """All classes have ended an epoch."""


class Always:
    """Takes everything."""

    def test(self, test: Test) -> Tried:
        """Accept."""
        return Tried(accepted=True)

    def end_epoch(self) -> None:
        """Nothing to learn."""


class Minibatch:
    """Takes what answers more of m random questions than its parent, asked again beside it.

    A parent without a mistake on them is left alone.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def test(self, test: Test) -> Tried:
        """Parent, then candidate, on the same m."""
        luck = uniform(
            test.seed, answers_key(test.task, test.epoch, test.nth, _BATCH), test.n_units
        )
        chosen = np.argsort(luck)[: self._size]
        parent = test.right(_PARENT, test.current)[chosen]
        if parent.all():
            return Tried(accepted=False, baseline=len(chosen))
        candidate = test.right(CANDIDATE, test.candidate)[chosen]
        return Tried(
            accepted=bool(candidate.sum() > parent.sum()),
            candidate=len(chosen),
            baseline=len(chosen),
        )

    def end_epoch(self) -> None:
        """Nothing to learn."""


class Strict:
    """Takes what answers more of all questions than the best before did, when it was taken."""

    def __init__(self) -> None:
        self._score: dict[int, int] = {}

    def test(self, test: Test) -> Tried:
        """All of them; the score to beat is never measured again."""
        drawn = 0
        if test.task not in self._score:
            self._score[test.task] = int(test.snapshot(0).sum())
            drawn = test.n_units
        score = int(test.right(CANDIDATE, test.candidate).sum())
        accepted = score > self._score[test.task]
        if accepted:
            self._score[test.task] = score
        return Tried(accepted=accepted, candidate=test.n_units, baseline=drawn)

    def end_epoch(self) -> None:
        """Nothing to learn."""


class McNemar:
    """Takes what an exact one-sided McNemar test on all questions finds better, at a level."""

    def __init__(self, alpha: str) -> None:
        self._alpha = Fraction(alpha)
        self._drawn: set[tuple[int, int]] = set()

    def test(self, test: Test) -> Tried:
        """All questions, unless no outcome could be accepted."""
        before = test.snapshot(0)
        new = (test.task, test.version) not in self._drawn
        self._drawn.add((test.task, test.version))
        drawn = test.n_units if new else 0
        n_wrong = int((~before).sum())
        if n_wrong == 0 or _half_tail(n_wrong, n_wrong) > self._alpha:
            return Tried(accepted=False, baseline=drawn, tested=False)
        after = test.right(CANDIDATE, test.candidate)
        won, lost = int((after & ~before).sum()), int((before & ~after).sum())
        return Tried(
            accepted=won > 0 and _half_tail(won + lost, won) <= self._alpha,
            candidate=test.n_units,
            baseline=drawn,
        )

    def end_epoch(self) -> None:
        """Nothing to learn."""


@lru_cache(maxsize=8192)
def _half_tail(n: int, at_least: int) -> Fraction:
    return binomial_tail(n, at_least, Fraction(1, 2))
