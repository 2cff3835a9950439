"""One training under the factorial gate, in the same world and with the same edits. Pure.

Schedule, coins, tally, drop rule, step-up and sentinels are the gate's own; only answers are
sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import msgspec
import numpy as np

from actors.commands.simulated.planted import Candidate, Floats, Planted, accuracies
from actors.commands.simulated.rules import Right
from actors.commands.simulated.training import KIND, Training, training_of
from actors.gate.factorial.coins import PairCoins, draw_coins
from actors.gate.factorial.drop import drop_harmful
from actors.gate.factorial.schedule import (
    ClassSchedule,
    Schedule,
    UnitSize,
    make_schedule,
    phase_pairs,
)
from actors.gate.factorial.sentinel import check_sentinels
from actors.gate.factorial.states import FactorialEdit, conclude, needs_pairs
from actors.gate.factorial.stepup import CAP, StepUp, evidence_of, step_up
from actors.gate.factorial.tally import Outcome, tally

__all__ = ["DROP_HARM", "QS", "Answering", "PhaseDraws", "answer", "sign", "simulate", "steady"]

QS = (Fraction(3, 20), Fraction(1, 5))
"""q of the profiles balanced and growth."""

DROP_HARM = Fraction(3, 10)
_ANSWERS = 7  # the key of this file's own luck beside those of ``planted``

_Edits: TypeAlias = Mapping[str, Candidate]


class PhaseDraws(msgspec.Struct, frozen=True, kw_only=True):
    """A class's pairs of a phase. logits: of arm a and of arm b, by pair, edits included."""

    planted: Planted
    task: int
    phase: int
    own: ClassSchedule
    pairs: Sequence[PairCoins]
    logits: tuple[Floats, Floats]

    def luck(self) -> np.random.Generator:
        """What the answers are drawn with."""
        return np.random.default_rng([self.planted.seed, _ANSWERS, self.task, self.phase])


Answering: TypeAlias = Callable[[PhaseDraws], list[Outcome]]
"""What both arms of every pair come to."""


def steady(draws: PhaseDraws) -> list[Outcome]:
    """Every answer by its probability alone, none lost."""
    right_a, right_b = answer(draws.luck(), draws.logits)
    return [sign(int(a) - int(b)) for a, b in zip(right_a, right_b, strict=True)]


def answer(luck: np.random.Generator, logits: Sequence[Floats]) -> list[Right]:
    """Right or wrong, by arm and pair."""
    return [luck.random(len(own)) < accuracies(own) for own in logits]


def sign(difference: int) -> Outcome:
    """Which arm did better."""
    return 0 if difference == 0 else 1 if difference > 0 else -1


def simulate(
    planted: Planted,
    budget: int,
    *,
    qs: Sequence[Fraction] = QS,
    answering: Answering = steady,
    alternatives: int = 1,
    tell: Callable[[], None] = lambda: None,
) -> list[Training]:
    """One run from the seed's skills to its decision, under each q on the same draws.

    budget: draws of a unit in all. alternatives: edits of an epoch come in exclusive groups of so
    many. tell: called after each class. Raises ScheduleError for a budget that makes no schedule.
    """
    schedule = make_schedule(
        {
            name: [UnitSize(f"u{unit:03d}") for unit in range(n_units)]
            for name, n_units in zip(planted.names, planted.sizes, strict=True)
        },
        seed=planted.seed,
        n_epochs=planted.n_epochs,
        budget=budget,
    )
    known: dict[str, Candidate] = {}
    edits: list[FactorialEdit] = []
    n_pairs = 0
    for name in planted.names:
        task = planted.names.index(name)
        ended, more = _run_class(planted, task, schedule, known, answering, alternatives)
        edits += ended
        n_pairs += more
        tell()
    editor = schedule.n_epochs * sum(len(own.design) for own in schedule.classes)
    evidence = evidence_of(edits)
    ok = check_sentinels(edits).ok
    return [
        _training(planted, edits, known, step_up(evidence, q, CAP), (2 * n_pairs, editor), ok=ok)
        for q in qs
    ]


def _run_class(
    planted: Planted,
    task: int,
    schedule: Schedule,
    known: dict[str, Candidate],
    answering: Answering,
    alternatives: int,
) -> tuple[tuple[FactorialEdit, ...], int]:
    """The class's edits before the decision, and the pairs that were drawn."""
    name = planted.names[task]
    own = schedule.of(name)
    sentinel = FactorialEdit(edit_id=f"{name}/sentinel", task_type=name, born=1, sentinel=True)
    known[sentinel.edit_id] = Candidate(0, 0.0)
    edits: tuple[FactorialEdit, ...] = (sentinel,)
    n_pairs = 0
    for phase in range(1, schedule.certification + 1):
        if phase <= schedule.n_epochs:
            for nth, candidate in enumerate(planted.candidates[task][phase - 1]):
                edit_id = f"{name}/e{phase}/{nth}"
                group = f"{name}/e{phase}/g{nth // alternatives}" if alternatives > 1 else None
                known[edit_id] = candidate
                born = FactorialEdit(edit_id=edit_id, task_type=name, born=phase, group=group)
                edits = (*edits, born)
        if not needs_pairs(edits):
            continue
        drawn = [
            draw_coins(schedule.seed, pair, edits) for pair in phase_pairs(schedule, name, phase)
        ]
        if drawn:
            draws = PhaseDraws(
                planted=planted,
                task=task,
                phase=phase,
                own=own,
                pairs=drawn,
                logits=_logits(planted, task, drawn, known),
            )
            edits = tally(edits, zip(drawn, answering(draws), strict=True))
        n_pairs += len(drawn)
        if phase <= schedule.n_epochs:
            edits = drop_harmful(edits, DROP_HARM)
    return edits, n_pairs


def _logits(
    planted: Planted, task: int, drawn: Sequence[PairCoins], known: _Edits
) -> tuple[Floats, Floats]:
    """Of arm a and of arm b, by pair."""
    n_units = planted.sizes[task]
    base = planted.logits[task]
    shifts: dict[str, Floats] = {}
    places = [int(pair.pair.unit_id[1:]) for pair in drawn]
    arms = np.array([base[places], base[places]])
    for nth, (pair, place) in enumerate(zip(drawn, places, strict=True)):
        for coin in pair.coins:
            if not coin.virtual:
                if coin.edit_id not in shifts:
                    shifts[coin.edit_id] = known[coin.edit_id].shifts(n_units)
                arms[0 if coin.sign > 0 else 1, nth] += shifts[coin.edit_id][place]
    return arms[0], arms[1]


def _training(
    planted: Planted,
    edits: Sequence[FactorialEdit],
    known: _Edits,
    decided: StepUp,
    draws: tuple[int, int],
    *,
    ok: bool,
) -> Training:
    """What the run adopts: nothing, if its sentinels do not look like coins."""
    accepted = [0, 0, 0]
    logits, fresh = list(planted.logits), list(planted.fresh)
    for edit in conclude(edits, decided.adopted if ok else ()):
        if edit.state != "adopted":
            continue
        task, candidate = planted.names.index(edit.task_type), known[edit.edit_id]
        accepted[KIND[candidate.sign]] += 1
        logits[task] = logits[task] + candidate.shifts(len(logits[task]))
        fresh[task] = fresh[task] + candidate.fresh_shifts(len(fresh[task]))
    n_edits = len(decided.p)
    return training_of(planted, logits, fresh, accepted, n_edits, *draws, sentinels_ok=ok)
