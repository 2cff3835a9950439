"""A planted world without language: classes of questions whose true accuracies are known. Pure.

The population and the prior of the gate's study: p ~ 0.6 Beta(18, 2) + 0.2 Beta(4, 16) + 0.2
Beta(10, 10), mean .68. A class is a set of questions, one per unit, and a second set as large that
nothing is ever trained or tested on. A candidate edit shifts every question of its class by the
same number of logits: none, or as many as move the population's mean by 5 to 20 points up or down.
Edits come from nowhere: they have read no answer, so that a rule is tried and nothing else. All of
it follows from a seed, and is the same under every rule.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SMALL",
    "STUDY",
    "Candidate",
    "Floats",
    "Planted",
    "Setting",
    "accuracies",
    "answers_key",
    "plant",
    "shift_for",
    "uniform",
]

Floats: TypeAlias = NDArray[np.float64]

SMALL = 16
"""A class with at most so many units is small."""

_SHARES = (0.6, 0.2, 0.2)
_SHAPES = ((18.0, 2.0), (4.0, 16.0), (10.0, 10.0))
_CALIBRATION = 40_000
_WORLD, _FRESH = 0, 9  # what a generator of a seed is for


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulated training looks.

    sizes: units per class. useless, harmful: shares of the candidates, the rest is helpful.
    least, most: the effect of a candidate that has one, in accuracy.
    """

    sizes: tuple[int, ...]
    n_epochs: int
    n_candidates: int
    useless: float
    harmful: float
    least: float
    most: float


STUDY = Setting(
    sizes=(8, 8, 10, 12, 14, 16, 20, 24, 30, 40, 50, 68),
    n_epochs=3,
    n_candidates=4,
    useless=0.6,
    harmful=0.2,
    least=0.05,
    most=0.20,
)
"""12 classes, 300 units, 3 epochs, 4 candidates per class and epoch; 60/20/20."""


class Candidate(msgspec.Struct, frozen=True):
    """An edit. sign: 1 helpful, 0 useless, -1 harmful. shift: in logits.

    on: the units that it shifts; fresh_on: of the fresh questions; None: all of its class.
    """

    sign: int
    shift: float
    on: tuple[int, ...] | None = None
    fresh_on: tuple[int, ...] | None = None

    def shifts(self, n_units: int) -> Floats:
        """Logits that it adds, by unit."""
        return _spread(self.shift, self.on, n_units)

    def fresh_shifts(self, n_questions: int) -> Floats:
        """Logits that it adds, by fresh question."""
        return _spread(self.shift, self.fresh_on, n_questions)


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """One world. names: of the classes.

    logits: [class][unit]; fresh: [class][question that is never asked in training].
    candidates: [class][epoch][nth].
    """

    seed: int
    names: tuple[str, ...]
    logits: tuple[Floats, ...]
    fresh: tuple[Floats, ...]
    candidates: tuple[tuple[tuple[Candidate, ...], ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units per class."""
        return tuple(len(own) for own in self.logits)

    @property
    def n_epochs(self) -> int:
        """Epochs that candidates are there for."""
        return len(self.candidates[0])


def accuracies(logits: Floats) -> Floats:
    """True accuracies in (0, 1)."""
    result: Floats = 1.0 / (1.0 + np.exp(-logits))
    return result


def shift_for(effect: float) -> float:
    """The shift in logits that moves the population's mean accuracy by ``effect``."""
    shifts, means = _means()
    return float(np.interp(means[len(means) // 2] + effect, means, shifts))


def plant(seed: int, setting: Setting = STUDY) -> Planted:
    """The world of a seed."""
    draw = np.random.default_rng([seed, _WORLD])
    logits = tuple(_population(draw, n_units) for n_units in setting.sizes)
    candidates = tuple(
        tuple(
            tuple(_candidate(draw, setting) for _ in range(setting.n_candidates))
            for _ in range(setting.n_epochs)
        )
        for _ in setting.sizes
    )
    later = np.random.default_rng([seed, _FRESH])
    return Planted(
        seed=seed,
        names=tuple(f"c{task:02d}" for task in range(len(setting.sizes))),
        logits=logits,
        fresh=tuple(_population(later, n_units) for n_units in setting.sizes),
        candidates=candidates,
    )


def answers_key(task: int, epoch: int, nth: int, arm: int) -> tuple[int, ...]:
    """Names a pass: the same pass draws the same luck under every rule."""
    return (1, task, epoch, nth, arm)


def uniform(seed: int, key: tuple[int, ...], n_units: int) -> Floats:
    """The luck of one pass over a class: a question is answered right if it lies below p."""
    return np.random.default_rng([seed, *key]).random(n_units)


def _spread(shift: float, on: tuple[int, ...] | None, n: int) -> Floats:
    if on is None:
        return np.full(n, shift)
    result = np.zeros(n)
    result[list(on)] = shift
    return result


def _candidate(draw: np.random.Generator, setting: Setting) -> Candidate:
    kind, effect = draw.random(), draw.uniform(setting.least, setting.most)
    if kind < setting.useless:
        return Candidate(0, 0.0)
    sign = -1 if kind < setting.useless + setting.harmful else 1
    return Candidate(sign, shift_for(sign * effect))


def _population(draw: np.random.Generator, n: int) -> Floats:
    """Logits of n questions."""
    shape = draw.choice(len(_SHAPES), size=n, p=_SHARES)
    a, b = (np.array([pair[side] for pair in _SHAPES])[shape] for side in (0, 1))
    p = np.clip(draw.beta(a, b), 1e-6, 1.0 - 1e-6)
    result: Floats = np.log(p / (1.0 - p))
    return result


@lru_cache(maxsize=1)
def _means() -> tuple[Floats, Floats]:
    """The population's mean accuracy under shifts from -4 to 4; the middle one is no shift."""
    logits = _population(np.random.default_rng(0), _CALIBRATION)
    shifts = np.linspace(-4.0, 4.0, 401)
    return shifts, np.array([accuracies(logits + shift).mean() for shift in shifts])
