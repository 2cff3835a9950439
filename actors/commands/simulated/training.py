"""One training under a rule that decides about one candidate after another. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec
import numpy as np

from actors.commands.simulated.planted import SMALL, Floats, Planted, accuracies
from actors.commands.simulated.rules import Rule, Test

__all__ = ["KIND", "Training", "train", "training_of"]

KIND = (0, 2, 1)
"""By a candidate's sign (0, 1, -1): its place among useless, harmful, helpful."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """What one training came to.

    gain: of the true accuracy over all units, in points; fresh_gain: the same over questions that
    were never asked; small_gain: the mean over the small classes (0 without one).
    tests: candidates of which any answer was looked at. accepted, made: useless, harmful, helpful.
    candidate: answers under a candidate; baseline: all others. sentinels_ok: of the factorial
    design; without it nothing is adopted.
    """

    gain: float
    fresh_gain: float
    small_gain: float
    tests: int
    accepted: tuple[int, int, int]
    made: tuple[int, int, int]
    candidate: int
    baseline: int
    sentinels_ok: bool = True

    @property
    def evaluations(self) -> int:
        """Answers that were drawn."""
        return self.candidate + self.baseline

    @property
    def false_accepts(self) -> int:
        """Useless and harmful candidates that were taken."""
        return self.accepted[0] + self.accepted[1]

    @property
    def false_share(self) -> float:
        """Of the accepted candidates; 0 if there is none."""
        return self.false_accepts / max(1, sum(self.accepted))


def train(planted: Planted, rule: Rule, budget: int | None = None) -> Training:
    """One training from the seed's skills to the end.

    budget: answers that may be drawn; the first test that would need more is not made, and ends
    the training. The classes take turns, so that none of them is left out for its name.
    """
    logits, fresh = list(planted.logits), list(planted.fresh)
    versions = [0] * len(logits)
    accepted = [0, 0, 0]
    tests = candidate_answers = baseline_answers = 0
    for epoch, nth, task, ends in _turns(planted):
        candidate = planted.candidates[task][epoch][nth]
        after = logits[task] + candidate.shifts(len(logits[task]))
        tried = rule.test(
            Test(
                seed=planted.seed,
                task=task,
                epoch=epoch,
                nth=nth,
                version=versions[task],
                current=accuracies(logits[task]),
                candidate=accuracies(after),
            )
        )
        used = candidate_answers + baseline_answers + tried.candidate + tried.baseline
        if budget is not None and used > budget:
            break
        tests += tried.tested
        candidate_answers += tried.candidate
        baseline_answers += tried.baseline
        if tried.accepted:
            accepted[KIND[candidate.sign]] += 1
            versions[task] += 1
            logits[task] = after
            fresh[task] = fresh[task] + candidate.fresh_shifts(len(fresh[task]))
        if ends:
            rule.end_epoch()
    return training_of(planted, logits, fresh, accepted, tests, candidate_answers, baseline_answers)


def training_of(
    planted: Planted,
    logits: Sequence[Floats],
    fresh: Sequence[Floats],
    accepted: Sequence[int],
    tests: int,
    candidate: int,
    baseline: int,
    *,
    sentinels_ok: bool = True,
) -> Training:
    """logits, fresh: as the training left them; the rest as of ``Training``."""
    gains = _gains(planted.logits, logits)
    small = [gain for gain, n in zip(gains, planted.sizes, strict=True) if n <= SMALL]
    made = [0, 0, 0]
    for own in planted.candidates:
        for epoch in own:
            for one in epoch:
                made[KIND[one.sign]] += 1
    return Training(
        gain=float(np.average(gains, weights=planted.sizes)),
        fresh_gain=float(
            np.average(_gains(planted.fresh, fresh), weights=[len(own) for own in fresh])
        ),
        small_gain=statistics.fmean(small) if small else 0.0,
        tests=tests,
        accepted=(accepted[0], accepted[1], accepted[2]),
        made=(made[0], made[1], made[2]),
        candidate=candidate,
        baseline=baseline,
        sentinels_ok=sentinels_ok,
    )


def _turns(planted: Planted) -> list[tuple[int, int, int, bool]]:
    """Epoch, place, class; whether the epoch ends after it."""
    turns = []
    for epoch in range(planted.n_epochs):
        n_most = max(len(own[epoch]) for own in planted.candidates)
        own_turns = [
            (epoch, nth, task, False)
            for nth in range(n_most)
            for task, own in enumerate(planted.candidates)
            if nth < len(own[epoch])
        ]
        turns += [*own_turns[:-1], (*own_turns[-1][:3], True)]
    return turns


def _gains(before: Sequence[Floats], after: Sequence[Floats]) -> list[float]:
    """Points by class."""
    return [
        100.0 * float(accuracies(new).mean() - accuracies(old).mean())
        for old, new in zip(before, after, strict=True)
    ]
