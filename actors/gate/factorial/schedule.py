"""What a factorial run will draw, fixed before its first draw: folds, phases, pairs per unit.

Pure, and blind: nothing here takes an outcome. The guarantee rests on that no count depends on
what was seen (study T7), so that there is no way to extend a phase; a class without live edits is
the only one that draws less.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from actors.gate.factorial.keyed import keyed_integer

__all__ = [
    "ClassSchedule",
    "Pair",
    "Schedule",
    "ScheduleError",
    "UnitSize",
    "make_schedule",
    "phase_pairs",
]

_EXPLORE = Fraction(3, 8)  # of all pairs, spread over the epochs; the rest certifies
_SIZE_POWER = decimal.Decimal("0.7")


class ScheduleError(ValueError):
    """Units or budget make no schedule; the message says what to change."""


class UnitSize(msgspec.Struct, frozen=True):
    """A unit and how many questions one draw of it asks."""

    unit_id: str
    n_questions: int = 1


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two draws of one unit. index: from 1, over all phases of the class."""

    task_type: str
    phase: int
    index: int
    unit_id: str


class ClassSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """One class.

    design: the units whose transcripts, outcomes and answers proposals may see. gate: the others,
    on which edits are tested; both ordered by id.
    counts: pairs, [phase][gate unit]; phases are the epochs and, last, the certification.
    """

    task_type: str
    design: tuple[UnitSize, ...]
    gate: tuple[UnitSize, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def pairs(self) -> tuple[int, ...]:
        """Pairs of each phase."""
        return tuple(sum(units) for units in self.counts)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run. budget: draws of a unit that were allowed; ``draws`` never exceeds it."""

    seed: int
    n_epochs: int
    budget: int
    classes: tuple[ClassSchedule, ...]

    @property
    def certification(self) -> int:
        """The number of the last phase."""
        return self.n_epochs + 1

    @property
    def n_pairs(self) -> int:
        """T: pairs of all classes and phases."""
        return sum(sum(own.pairs) for own in self.classes)

    @property
    def draws(self) -> int:
        """Draws of a unit: the editor's, and two a pair. An upper bound: nothing is added."""
        return self.n_epochs * sum(len(own.design) for own in self.classes) + 2 * self.n_pairs

    @property
    def rollouts(self) -> int:
        """Questions answered in all these draws."""
        total = 0
        for own in self.classes:
            total += self.n_epochs * sum(unit.n_questions for unit in own.design)
            for counts in own.counts:
                total += 2 * sum(
                    n * unit.n_questions for n, unit in zip(counts, own.gate, strict=True)
                )
        return total

    def of(self, task_type: str) -> ClassSchedule:
        """One class. Raises KeyError."""
        for own in self.classes:
            if own.task_type == task_type:
                return own
        raise KeyError(task_type)


def make_schedule(
    units: Mapping[str, Sequence[UnitSize]],
    *,
    seed: int,
    n_epochs: int,
    budget: int,
    fold: Fraction = Fraction(1, 4),
) -> Schedule:
    """Everything that will be drawn.

    units: by class; their order does not matter. fold: share of the design fold, rounded half up
    and at least one unit. Half of what the editor's draws leave of the budget are pairs.

    Raises ScheduleError naming a class without a gate unit or with a unit twice, or the budget
    that is needed.
    """
    if n_epochs < 1:
        raise ScheduleError(f"trainer.epochs: {n_epochs}; at least 1")
    if not 0 < fold < 1:
        raise ScheduleError(f"gate.fold: {fold}; must lie between 0 and 1")
    if not units:
        raise ScheduleError("there is no class to train; see the pre-flight table")
    names = sorted(units)
    folds = {name: _fold(name, units[name], seed, fold) for name in names}
    phases = _phases(budget, n_epochs, sum(len(design) for design, _ in folds.values()))
    weights = [_weight(len(units[name])) for name in names]
    shares = [_apportion(n_pairs, weights) for n_pairs in phases]
    return Schedule(
        seed=seed,
        n_epochs=n_epochs,
        budget=budget,
        classes=tuple(
            ClassSchedule(
                task_type=name,
                design=folds[name][0],
                gate=folds[name][1],
                counts=tuple(
                    _per_unit(folds[name][1], share[place], (seed, name, phase))
                    for phase, share in enumerate(shares, start=1)
                ),
            )
            for place, name in enumerate(names)
        ),
    )


def phase_pairs(schedule: Schedule, task_type: str, phase: int) -> tuple[Pair, ...]:
    """The pairs of a class in a phase, in a random order that is fixed too.

    Raises KeyError for a class that is not scheduled, ValueError for a phase.
    """
    own = schedule.of(task_type)
    if not 1 <= phase <= schedule.certification:
        raise ValueError(f"phase {phase} of {schedule.certification}")
    drawn = [
        (keyed_integer("order", schedule.seed, task_type, phase, unit.unit_id, nth), unit.unit_id)
        for unit, n_times in zip(own.gate, own.counts[phase - 1], strict=True)
        for nth in range(n_times)
    ]
    before = sum(own.pairs[: phase - 1])
    return tuple(
        Pair(task_type=task_type, phase=phase, index=before + nth, unit_id=unit_id)
        for nth, (_, unit_id) in enumerate(sorted(drawn), start=1)
    )


def _fold(
    name: str, units: Sequence[UnitSize], seed: int, share: Fraction
) -> tuple[tuple[UnitSize, ...], tuple[UnitSize, ...]]:
    """Design and gate units."""
    ordered = sorted(units, key=lambda unit: unit.unit_id)
    if len({unit.unit_id for unit in ordered}) < len(ordered):
        raise ScheduleError(f"{name}: a unit is given twice")
    if empty := [unit.unit_id for unit in ordered if unit.n_questions < 1]:
        raise ScheduleError(f"{name}: units without questions: {', '.join(empty)}")
    n_design = max(1, int(share * len(ordered) + Fraction(1, 2)))
    if n_design >= len(ordered):
        raise ScheduleError(
            f"{name}: of {len(ordered)} unit(s) {n_design} are the design fold, none is left to "
            "test on; raise data.trainable_min_units or lower gate.fold"
        )
    ranked = sorted(ordered, key=lambda unit: keyed_integer("fold", seed, name, unit.unit_id))
    chosen = {unit.unit_id for unit in ranked[:n_design]}
    return (
        tuple(unit for unit in ordered if unit.unit_id in chosen),
        tuple(unit for unit in ordered if unit.unit_id not in chosen),
    )


def _phases(budget: int, n_epochs: int, n_design: int) -> tuple[int, ...]:
    """Pairs of each phase, over all classes: 3/8 spread over the epochs, 5/8 at the end."""
    editor = n_epochs * n_design
    total = max(0, budget - editor) // 2
    ends = [int(total * _EXPLORE * epoch / n_epochs) for epoch in range(n_epochs + 1)]
    if ends[1] < 1:
        needed = editor + 2 * math.ceil(n_epochs / _EXPLORE)
        raise ScheduleError(
            f"gate.budget: {budget} draws; the editor draws {n_epochs} times {n_design} units, "
            f"and a pair in every epoch needs {needed} in all, a useful run several times that"
        )
    ends.append(total)
    return tuple(end - begin for begin, end in itertools.pairwise(ends))


def _weight(n_units: int) -> Fraction:
    """N^.7, the same on every machine (a float's power is not)."""
    return Fraction(decimal.Context(prec=28).power(decimal.Decimal(n_units), _SIZE_POWER))


def _apportion(total: int, weights: Sequence[Fraction]) -> tuple[int, ...]:
    """The total in proportion to the weights; what rounding leaves goes by largest remainder."""
    whole = sum(weights)
    exact = [total * weight / whole for weight in weights]
    parts = [int(part) for part in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return tuple(parts)


def _per_unit(gate: Sequence[UnitSize], n_pairs: int, key: tuple[int, str, int]) -> tuple[int, ...]:
    """Every unit floor or ceil of n_pairs / |G| times, random which."""
    least, n_more = divmod(n_pairs, len(gate))
    seed, name, phase = key
    ranked = sorted(gate, key=lambda unit: keyed_integer("count", seed, name, phase, unit.unit_id))
    more = {unit.unit_id for unit in ranked[:n_more]}
    return tuple(least + (unit.unit_id in more) for unit in gate)
