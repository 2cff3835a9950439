"""What a run will cost: rollouts, calls, tokens, money, hours. Pure arithmetic of sizes and rates.

The model. A fresh run first answers val once under the seed package, and test once where the
seed's own answers do not serve. Then, per epoch:

    design     every question of every step's batch, once
    gate       per step the candidate on the ladder. Most: a candidate in every step, all
               questions, in every stage. Expected: a candidate in ``PROPOSED`` of the steps, on
               ``SEEN`` of the questions (most tests stop early); a second stage follows
               ``ACCEPTED`` of them
    snapshots  k draws of every ladder question per skill that is tested. Most: a new skill in
               every step. Expected: the first one and one more after ``ACCEPTED`` of the steps;
               from the second epoch on ``ANEW`` of that, since some stood before. The seed's
               answers are the first draw of the first snapshot where they serve. A second stage
               has k draws of its own
    val        the fast package and the slow candidate, all of val each
    slow       ``trainer.slow_questions`` (or the design questions, if fewer) under two packages
    test       the package that stands: once. The best packages stood before and cost nothing

A rollout is ``calls_per_rollout`` chats of the agent, whose prompt grows by ``GROWTH`` tokens with
every one. The judge reads every wrong design answer (expected: the baseline's share, most: all,
asked twice). The editor is asked ``EDITOR`` times per step and, by the slow update, once per class
and twice for prompts (most: twice per minibatch, ranking, compaction and document).

Hours are the sum over phases of the longer of two: rollouts through ``concurrency`` places, and
the longest class's steps one after the other, each as many rollouts deep as its gate has blocks.
A rollout takes ``calls_per_rollout`` times the seconds of a call. To it comes ``OWN_S`` per call,
which is this program's own work on one core (docs/performance.md): beside a server that answers
at once, such as the simulator, that is nearly all. The hours are "about": seconds are those of a
call alone on a warm connection, so that a server that slows down under load takes longer; fewer
calls per rollout than assumed take less.

A run with the factorial gate has its schedule instead, and ``factorial_estimate``.

Left out: tries that fail, answers from the cache, null comparisons, an end by patience.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from protocol.llm import Role

__all__ = [
    "CALLS_PER_ROLLOUT",
    "OWN_S",
    "SIMULATED_CALLS_PER_ROLLOUT",
    "TYPICAL",
    "ClassShape",
    "Estimate",
    "Passes",
    "Range",
    "Rates",
    "RoleRate",
    "RunShape",
    "estimate",
    "factorial_estimate",
]

CALLS_PER_ROLLOUT = 4.0
SIMULATED_CALLS_PER_ROLLOUT = 2.5  # of the demo
PROPOSED, SEEN, ACCEPTED, ANEW, EDITOR = 0.9, 0.7, 0.3, 0.75, 1.2
OWN_S = 0.003
GROWTH = 400.0


class ClassShape(msgspec.Struct, frozen=True, kw_only=True):
    """A class's epoch. batches: questions per step. ladder: questions that the gate tests on.

    blocks: in which it does. draws: k, per question of a snapshot. minibatches: of the largest
    batch, as the editor is shown it.
    """

    task_type: str
    batches: tuple[int, ...]
    ladder: int
    blocks: int
    draws: int
    minibatches: int = 1


class RunShape(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to do. epochs: left. fresh: nothing was done yet.

    val, test: questions. test_seed: test is answered under the seed package too. seed_draw: the
    seed's answers are the first draw of the first snapshots. slow: questions compared, 0: off.
    wrong: share of design answers that are wrong. prompts: documents that the slow update edits.
    """

    epochs: int
    fresh: bool
    classes: tuple[ClassShape, ...]
    val: int
    test: int
    test_seed: bool
    seed_draw: bool
    stages: int
    slow: int
    wrong: float
    prompts: int


class RoleRate(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a role. prompt, completion: tokens; seconds: None if nobody knows.

    usd_per_m_*: None if no price is configured. measured: by calls, not assumed.
    """

    prompt: float
    completion: float
    seconds: float | None = None
    usd_per_m_prompt: float | None = None
    usd_per_m_completion: float | None = None
    measured: bool = False


TYPICAL: Mapping[Role, RoleRate] = {
    "search": RoleRate(prompt=2000.0, completion=150.0),
    "judge": RoleRate(prompt=2500.0, completion=200.0),
    "evolve": RoleRate(prompt=4000.0, completion=600.0),
    "vision": RoleRate(prompt=800.0, completion=150.0),
}


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """growth: tokens that each further call of a rollout has more; 0 where averages are known."""

    search: RoleRate
    judge: RoleRate
    evolve: RoleRate
    calls_per_rollout: float
    concurrency: int
    growth: float = GROWTH


class Range(msgspec.Struct, frozen=True):
    """A number as expected, and the most that it can be without failures."""

    expected: float
    most: float

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)

    def times(self, factor: float) -> Range:
        """Both, multiplied."""
        return Range(self.expected * factor, self.most * factor)


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """What a run with the factorial gate does beside its schedule, and how hard the seed finds it.

    val, test: questions. test_seed, wrong: as of ``RunShape``.
    """

    val: int
    test: int
    test_seed: bool
    wrong: float


NOTHING = Range(0.0, 0.0)


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run that is left. rollouts: by phase. calls: by role. usd, hours: None: unknown."""

    rollouts: dict[str, Range]
    all_rollouts: Range
    calls: dict[str, Range]
    all_calls: Range
    tokens: Range
    usd: Range | None
    hours: Range | None


def estimate(shape: RunShape, rates: Rates) -> Estimate:
    """See the module."""
    rollouts = _rollouts(shape)
    total = sum(rollouts.values(), NOTHING)
    calls: dict[str, Range] = {
        "search": total.times(rates.calls_per_rollout),
        "judge": _judged(shape),
        "evolve": _edited(shape),
    }
    by_role = {"search": _grown(rates), "judge": rates.judge, "evolve": rates.evolve}
    tokens = sum(
        (calls[role].times(rate.prompt + rate.completion) for role, rate in by_role.items()),
        NOTHING,
    )
    prices = [_usd(rate) for rate in by_role.values()]
    usd = None
    if all(price is not None for price in prices):
        usd = sum((calls[role].times(_usd(rate) or 0.0) for role, rate in by_role.items()), NOTHING)
    return Estimate(
        rollouts=rollouts,
        all_rollouts=total,
        calls=calls,
        all_calls=sum(calls.values(), NOTHING),
        tokens=tokens,
        usd=usd,
        hours=_hours(shape, rates, rollouts, sum(calls.values(), NOTHING)),
    )


def factorial_estimate(
    passes: Passes, *, drawn: int, learned: int, proposals: int, calls_per_rollout: float
) -> tuple[float, float]:
    """Rollouts and calls of a whole run with the factorial gate.

    drawn: rollouts of its schedule; learned: of them, those that proposals are made from.
    Val is answered under the seed package and under the one that the decision makes, test under
    the latter: before it the package does not change.
    """
    evaluated = 2 * passes.val + passes.test * (2 if passes.test_seed else 1)
    rollouts = float(drawn + evaluated)
    others = learned * passes.wrong + EDITOR * proposals
    return rollouts, rollouts * calls_per_rollout + others


def _grown(rates: Rates) -> RoleRate:
    """The agent's average call, from its first one."""
    mean = rates.search.prompt + rates.growth * (rates.calls_per_rollout - 1.0) / 2.0
    return msgspec.structs.replace(rates.search, prompt=mean)


def _usd(rate: RoleRate) -> float | None:
    """Price of a call."""
    if rate.usd_per_m_prompt is None or rate.usd_per_m_completion is None:
        return None
    paid = rate.prompt * rate.usd_per_m_prompt + rate.completion * rate.usd_per_m_completion
    return paid / 1e6


def _rollouts(shape: RunShape) -> dict[str, Range]:
    first = 1 if shape.fresh else 0
    phases = dict.fromkeys(("design", "gate", "snapshots"), NOTHING)
    for one in shape.classes:
        design = float(sum(one.batches) * shape.epochs)
        phases["design"] += Range(design, design)
        phases["gate"] += _gate(one, shape)
        phases["snapshots"] += _snapshots(one, shape)
    val = float(shape.val * (first + shape.epochs * (2 if shape.slow else 1)))
    slow = float(2 * shape.slow * shape.epochs)
    test = float(shape.test * shape.epochs + (shape.test if shape.test_seed and first else 0))
    return phases | {"val": Range(val, val), "slow": Range(slow, slow), "test": Range(test, test)}


def _gate(one: ClassShape, shape: RunShape) -> Range:
    asked = float(one.ladder * len(one.batches) * shape.epochs)
    deeper = 1.0 + ACCEPTED * (shape.stages - 1)
    return Range(asked * PROPOSED * SEEN * deeper, asked * shape.stages)


def _snapshots(one: ClassShape, shape: RunShape) -> Range:
    if not one.batches or shape.epochs == 0:
        return NOTHING
    steps = len(one.batches)
    drawn = float(one.draws * one.ladder)
    expected = drawn * (1.0 + ACCEPTED * (steps - 1)) * (1.0 + ACCEPTED * (shape.stages - 1))
    most = drawn * steps * shape.stages
    later = shape.epochs - 1 if shape.fresh else shape.epochs
    both = Range(expected * ANEW * later, most * later)
    if shape.fresh:
        saved = float(one.ladder) if shape.seed_draw else 0.0
        both += Range(expected - saved, most - saved)
    return both


def _judged(shape: RunShape) -> Range:
    answers = sum(sum(one.batches) for one in shape.classes) * shape.epochs
    return Range(answers * shape.wrong, answers * 2.0)


def _edited(shape: RunShape) -> Range:
    steps = sum(len(one.batches) for one in shape.classes)
    hard = sum(len(one.batches) * 2 * (one.minibatches + 2) for one in shape.classes)
    expected, most = EDITOR * steps, float(hard)
    if shape.slow:
        expected += len(shape.classes) + 2
        most += 2.0 * (len(shape.classes) + shape.prompts)
    return Range(expected * shape.epochs, most * shape.epochs)


def _hours(
    shape: RunShape, rates: Rates, rollouts: Mapping[str, Range], calls: Range
) -> Range | None:
    call_s = rates.search.seconds
    if call_s is None:
        return None
    rollout_s = call_s * rates.calls_per_rollout
    between_s = (rates.judge.seconds or 0.0) + EDITOR * (rates.evolve.seconds or 0.0)
    places = max(1, rates.concurrency)
    steps = sum((rollouts[name] for name in ("design", "gate", "snapshots")), NOTHING)
    passes = sum((rollouts[name] for name in ("val", "slow", "test")), NOTHING)
    chains = [_chain(one, shape.stages, rollout_s, between_s) for one in shape.classes]
    chain_s = Range(
        max((chain.expected for chain in chains), default=0.0) * shape.epochs,
        max((chain.most for chain in chains), default=0.0) * shape.epochs,
    )
    seconds = [
        max(done * rollout_s / places, chained) + evaluated * rollout_s / places
        for done, chained, evaluated in (
            (steps.expected, chain_s.expected, passes.expected),
            (steps.most, chain_s.most, passes.most),
        )
    ]
    own = calls.times(OWN_S)
    return Range((seconds[0] + own.expected) / 3600.0, (seconds[1] + own.most) / 3600.0)


def _chain(one: ClassShape, stages: int, rollout_s: float, between_s: float) -> Range:
    """A class's steps one after the other: batch, judge, editor, snapshot, block after block."""
    steps = len(one.batches)
    depth = 2.0 + math.ceil(SEEN * one.blocks) * PROPOSED
    most = 1.0 + stages * (1.0 + one.blocks)
    return Range(steps * (depth * rollout_s + between_s), steps * (most * rollout_s + between_s))
