"""Rules that ``gate_training`` compares the gate with beside accept-if-better: what others do.

They are modelled at their acceptance step.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from actors.commands.simulated.planted import answers_key, uniform
from actors.commands.simulated.rules import CANDIDATE, Test, Tried
from actors.gate.eprocess import binomial_tail

__all__ = ["Always", "McNemar", "Minibatch"]

_BATCH, _PARENT = 1, 2  # arms of a test, beside those of ``rules``


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
