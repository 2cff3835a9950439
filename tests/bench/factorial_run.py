"""One simulated run under the factorial gate, where the truth of every edit is known.

The world is ``planted``, as in ``gate_training``: the same classes and edits for a seed. Schedule,
coins, tally, drop rule, step-up and sentinels are the gate's own; only answers are sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np

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
from tests.bench.planted import Floats, Planted, accuracies

__all__ = ["BUDGET", "QS", "WORLDS", "Endpoint", "Training", "simulate"]

QS = (Fraction(3, 20), Fraction(1, 5))
"""q of the profiles balanced and growth."""

BUDGET = 3852
"""Draws of a unit in the study's main world."""

_DROP_HARM = Fraction(3, 10)
_ANSWERS = 7  # the key of this file's own luck beside those of ``planted``
_LEARNT = 8  # and of what the edits learn by heart
_BLOCK = 10  # pairs that a burst of failures hits together


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What else decides an answer.

    drift: logits added over the run, evenly with its pairs.
    arm: logits that arm a is better by, say because it is always drawn first.
    burst: chance that a block of pairs loses all its answers in arm a, and in arm b the same.
    lost: chance that a pair is void because of infrastructure, if arm b is wrong; none otherwise.
    memorised: logits that every edit adds on a unit or two that it has learnt by heart, of the
        class's design fold; leak: of its gate fold, what the folds are there to prevent.
    """

    drift: float = 0.0
    arm: float = 0.0
    burst: float = 0.0
    lost: float = 0.0
    memorised: float = 0.0
    leak: bool = False


WORLDS: Mapping[str, Endpoint] = {
    "plain": Endpoint(),
    "drift": Endpoint(drift=1.6, arm=0.4),
    "failures": Endpoint(burst=0.15, lost=0.3),
    "memorise": Endpoint(memorised=4.0),
}
"""A steady endpoint; one that drifts and prefers an arm; one with correlated failures that also
loses wrong answers; edits that know their evidence by heart."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """What a training came to under one q.

    gain: of the true accuracy over all units, in points. adopted, made: useless, harmful, helpful.
    draws: of a unit. sentinels_ok: they looked like coins.
    """

    gain: float
    adopted: tuple[int, int, int]
    made: tuple[int, int, int]
    draws: int
    sentinels_ok: bool


class _Truth(msgspec.Struct, frozen=True):
    """An edit's sign, its shift in logits on every unit of its class, and on those it knows."""

    sign: int
    shift: float
    known: frozenset[str] = frozenset()
    memorised: float = 0.0

    def on(self, unit_id: str) -> float:
        """Logits that the edit adds."""
        return self.shift + self.memorised * (unit_id in self.known)


def simulate(
    planted: Planted,
    endpoint: Endpoint = WORLDS["plain"],
    *,
    qs: Sequence[Fraction] = QS,
    budget: int = BUDGET,
    alternatives: int = 1,
) -> list[Training]:
    """One run from the seed's skills to its decision, under each q on the same draws.

    alternatives: edits of an epoch come in exclusive groups of so many.
    """
    schedule = make_schedule(
        {
            _name(task): [UnitSize(f"u{unit:03d}") for unit in range(n_units)]
            for task, n_units in enumerate(planted.setting.sizes)
        },
        seed=planted.seed,
        n_epochs=planted.setting.n_epochs,
        budget=budget,
    )
    truths: dict[str, _Truth] = {}
    edits: list[FactorialEdit] = []
    draws = schedule.n_epochs * sum(len(own.design) for own in schedule.classes)
    for task, own in enumerate(schedule.classes):
        ended, n_pairs = _run_class(planted, task, schedule, own, endpoint, truths, alternatives)
        edits += ended
        draws += 2 * n_pairs
    ok = check_sentinels(edits).ok
    evidence = evidence_of(edits)
    decided = [step_up(evidence, q, CAP) for q in qs]
    return [_result(planted, edits, truths, one, draws, ok) for one in decided]


def _run_class(
    planted: Planted,
    task: int,
    schedule: Schedule,
    own: ClassSchedule,
    endpoint: Endpoint,
    truths: dict[str, _Truth],
    alternatives: int,
) -> tuple[tuple[FactorialEdit, ...], int]:
    """The class's edits before the decision, and the pairs that were drawn."""
    name = own.task_type
    sentinel = FactorialEdit(edit_id=f"{name}/sentinel", task_type=name, born=1, sentinel=True)
    truths[sentinel.edit_id] = _Truth(0, 0.0)
    edits: tuple[FactorialEdit, ...] = (sentinel,)
    n_pairs = 0
    for phase in range(1, schedule.certification + 1):
        if phase <= schedule.n_epochs:
            for nth, candidate in enumerate(planted.candidates[task][phase - 1]):
                edit_id = f"{name}/e{phase}/{nth}"
                group = f"{name}/e{phase}/g{nth // alternatives}" if alternatives > 1 else None
                truths[edit_id] = _Truth(
                    candidate.sign,
                    candidate.shift,
                    _learnt(planted.seed, (task, phase, nth), own, endpoint),
                    endpoint.memorised,
                )
                born = FactorialEdit(edit_id=edit_id, task_type=name, born=phase, group=group)
                edits = (*edits, born)
        if not needs_pairs(edits):
            continue
        drawn = [
            draw_coins(schedule.seed, pair, edits) for pair in phase_pairs(schedule, name, phase)
        ]
        answered = _answers(planted, task, phase, own, endpoint, drawn, truths)
        edits = tally(edits, zip(drawn, answered, strict=True))
        n_pairs += len(drawn)
        if phase <= schedule.n_epochs:
            edits = drop_harmful(edits, _DROP_HARM)
    return edits, n_pairs


def _learnt(
    seed: int, edit: tuple[int, int, int], own: ClassSchedule, endpoint: Endpoint
) -> frozenset[str]:
    """The units that an edit knows by heart."""
    units = own.gate if endpoint.leak else own.design
    draw = np.random.default_rng([seed, _LEARNT, *edit])
    chosen = draw.permutation(len(units))[: max(1, len(units) // 5)]
    return frozenset(units[place].unit_id for place in chosen)


def _answers(
    planted: Planted,
    task: int,
    phase: int,
    own: ClassSchedule,
    endpoint: Endpoint,
    drawn: Sequence[PairCoins],
    truths: Mapping[str, _Truth],
) -> list[Outcome]:
    """What both arms of every pair came to."""
    if not drawn:
        return []
    units = [int(pair.pair.unit_id[1:]) for pair in drawn]
    base = planted.logits[task][units]
    progress = np.array([pair.pair.index for pair in drawn]) / sum(own.pairs)
    base = base + endpoint.drift * progress
    arms = []
    for arm in ("a", "b"):
        shift = [
            sum(
                truths[edit_id].on(pair.pair.unit_id)
                for edit_id in (pair.on("a") if arm == "a" else pair.on("b"))
            )
            for pair in drawn
        ]
        arms.append(base + np.array(shift) + (endpoint.arm if arm == "a" else 0.0))
    luck = np.random.default_rng([planted.seed, _ANSWERS, task, phase])
    right = [luck.random(len(drawn)) < accuracies(logits) for logits in arms]
    n_blocks = len(drawn) // _BLOCK + 1
    for side in range(2):
        failing = np.repeat(luck.random(n_blocks) < endpoint.burst, _BLOCK)[: len(drawn)]
        right[side] &= ~failing
    void = (luck.random(len(drawn)) < endpoint.lost) & ~right[1]
    return [
        None if lost else _sign(int(a) - int(b))
        for a, b, lost in zip(right[0], right[1], void, strict=True)
    ]


def _sign(difference: int) -> Outcome:
    return 0 if difference == 0 else 1 if difference > 0 else -1


def _result(
    planted: Planted,
    edits: Iterable[FactorialEdit],
    truths: Mapping[str, _Truth],
    decided: StepUp,
    draws: int,
    sentinels_ok: bool,
) -> Training:
    adopted, made = [0, 0, 0], [0, 0, 0]
    shifts = dict.fromkeys((_name(task) for task in range(len(planted.logits))), 0.0)
    for edit in conclude(edits, decided.adopted):
        if edit.sentinel:
            continue
        truth = truths[edit.edit_id]
        kind = (0, 2, 1)[truth.sign]
        made[kind] += 1
        if edit.state == "adopted":
            adopted[kind] += 1
            shifts[edit.task_type] += truth.shift
    gains = [_gain(logits, shifts[_name(task)]) for task, logits in enumerate(planted.logits)]
    return Training(
        gain=float(np.average(gains, weights=planted.setting.sizes)),
        adopted=(adopted[0], adopted[1], adopted[2]),
        made=(made[0], made[1], made[2]),
        draws=draws,
        sentinels_ok=sentinels_ok,
    )


def _gain(logits: Floats, shift: float) -> float:
    return 100.0 * float(accuracies(logits + shift).mean() - accuracies(logits).mean())


def _name(task: int) -> str:
    return f"c{task:02d}"
