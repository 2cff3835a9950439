"""What decides about one candidate after another, and the plainest that does: accept if better.

A rule is told what the answers would be and says whether it takes the candidate, and how many
answers it has looked at.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from actors.commands.simulated.planted import Floats, answers_key, uniform

__all__ = ["CANDIDATE", "SECOND", "SECOND_BASE", "Right", "Rule", "Strict", "Test", "Tried"]

Right: TypeAlias = NDArray[np.bool_]

# arms of one test: which luck a pass draws; 1 and 2 are a rule's own
CANDIDATE, SECOND = 0, 3
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
