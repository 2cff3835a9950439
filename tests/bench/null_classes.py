"""Null candidates through the gate's own code: does it keep the level that it names?

A null candidate answers as the text that it would replace. Every test here goes the way of a
real one: what is known of a unit (``ema.fold``), which snapshot is in force and what was known
before it (``state``), the order (``blind_order``), the store's draws (``wanted_draws``,
``storable``, ``assemble``), the ladder, and block after block to ``decide``, with the profile's
levels and stages. Population of the gate's study: p ~ 0.6 Beta(18, 2) + 0.2 Beta(4, 16) + 0.2
Beta(10, 10). The stops that only reject (conditional power, harm) are off unless said, so that
the rates are upper bounds.

    python -m tests.bench.null_classes [--classes 2000] [--jobs 2]

prints the share of null candidates accepted beside the level. Rows marked ``!`` are orders or
worlds that void the level; they are there to show that this test would find them.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from actors.baseline.snapshot import SnapshotKey, assemble, storable, wanted_draws
from actors.gate.decide import Answers, Rules, decide
from actors.gate.ema import fold, lookup
from actors.gate.ladder import blind_order, build_ladder
from actors.gate.levels import alpha_of, bound_of, draws_of, stages_of
from actors.gate.looks import block_ends
from actors.gate.state import GateState, advance, in_force, known_difficulty
from protocol.baseline import Draws
from protocol.dataset import Question, Unit
from protocol.gate import Verdict
from protocol.rows import BaselineRow, DecisionRow, OutcomeRow
from protocol.settings import GateSettings
from tests.bench.null_rows import CLASS, answered, decision_row, outcome_row, units_of

__all__ = [
    "BROKEN",
    "KEPT",
    "Measured",
    "Order",
    "Setting",
    "accuracy",
    "measure",
    "settings_of",
]

SHAPES = ((0.6, 18, 2), (0.2, 4, 16), (0.2, 10, 10))
EPOCHS, CANDIDATES = 3, 4

Order = Literal[
    "random",  # nothing is known
    "earlier",  # the EMA of an earlier version's candidates and snapshot
    "stale",  # the same, of a time when every question had another accuracy
    "reused",  # twelve candidates in three epochs, snapshots replaced when worn
    "own tiers",  # the tiers are the snapshot's own outcomes
    "wrong first",  # sorted by the snapshot
    "right first",
    "drift",  # random order; the served model has become better since the snapshot
]
KEPT: tuple[Order, ...] = ("random", "earlier", "stale", "reused")
BROKEN: tuple[Order, ...] = ("wrong first", "right first", "own tiers", "drift")
DRIFT = 0.6
"""Logits that the served model gains between snapshot and candidate: about 7 points."""


@dataclass(frozen=True)
class Setting:
    """What is measured. stops: those that only reject are on too."""

    order: Order
    settings: GateSettings
    n_units: int
    stops: bool = False

    @property
    def alpha(self) -> float:
        """The level of a whole test."""
        stage = alpha_of(self.settings, self.n_units)
        return bound_of(stage, stages_of(self.settings), blind=True)


@dataclass(frozen=True)
class Measured:
    """rate: accepted share of the tests. error: its standard error, over classes."""

    rate: float
    error: float
    alpha: float
    classes: int
    tests: int

    @property
    def limit(self) -> float:
        """Alpha and three standard errors of a rate that is alpha, a test per class."""
        return self.alpha + 3 * math.sqrt(self.alpha * (1 - self.alpha) / self.classes)


def settings_of(profile: Literal["balanced", "growth", "audit"], k: int) -> GateSettings:
    """The configuration's defaults under a profile, with k draws everywhere."""
    return GateSettings(
        profile=profile,
        alpha_small=0.2,
        alpha_large=0.1,
        small_units=24,
        seed_draw=False,
        draws_small=k,
        draws_large=k,
        ema_decay=0.7,
        max_missing_share=0.05,
        futility_power=0.1,
        harm_e=10.0,
        missing_retries=2,
        fresh_after=4,
    )


def measure(setting: Setting, n_classes: int) -> Measured:
    """Null candidates in so many classes; the seed follows from the setting."""
    draw = random.Random(repr(setting))
    rates, tests = [], 0
    for _ in range(n_classes):
        verdicts = _Class(setting, draw).story()
        rates.append(sum(verdict == "accept" for verdict in verdicts) / len(verdicts))
        tests += len(verdicts)
    rate = sum(rates) / n_classes
    spread = sum((one - rate) ** 2 for one in rates) / max(1, n_classes - 1)
    return Measured(rate, math.sqrt(spread / n_classes), setting.alpha, n_classes, tests)


@dataclass
class _Class:
    """One class: its true accuracies, its ledger, and the gate's state."""

    setting: Setting
    draw: random.Random
    state: GateState = field(default_factory=GateState)
    rows: list[BaselineRow] = field(default_factory=list)
    version: int = 0
    outcomes: list[OutcomeRow] = field(default_factory=list)
    decisions: list[DecisionRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.units = units_of(self.setting.n_units)
        self.truth = [accuracy(self.draw) for _ in self.units]

    def story(self) -> list[Verdict]:
        """The verdicts of the candidates that the order is about."""
        if self.setting.order == "reused":
            for epoch in range(1, 1 + EPOCHS):
                for step in range(1, 1 + CANDIDATES):
                    self._candidate(epoch, step)
                self._observe(epoch)
            return [row.verdict for row in self.decisions]  # type: ignore[misc]
        if self.setting.order in ("earlier", "stale"):
            now = self.truth
            if self.setting.order == "stale":
                self.truth = [accuracy(self.draw) for _ in self.units]
            self._history()
            self.truth = now
        return [self._candidate(2, 1)]

    def _history(self) -> None:
        """An epoch before: a snapshot, three candidates that it turned down, one that came."""
        self._snapshot(0, "")
        for step in range(1, 1 + CANDIDATES):
            key = f"e1/class/s{step}"
            verdict: Verdict = "accept" if step == CANDIDATES else "reject"
            self.decisions.append(decision_row(key, 1, step, "v0", verdict, 0))
            self.outcomes += [
                outcome_row(f"{key}/gate/b0", unit, self._right(unit.questions[0]))
                for unit in self.units
            ]
        self.version = 1
        self._observe(1)

    def _observe(self, epoch: int) -> None:
        """The end of an epoch, as the gate's actor does it."""
        settings = self.setting.settings
        decisions = [row for row in self.decisions if row.epoch == epoch]
        snapshots, gone = advance(self.state, decisions, settings.fresh_after)
        retired = [
            row
            for row in self.rows
            for snapshot in gone
            if (row.skill_hash, row.generation) == (snapshot.skill_hash, snapshot.generation)
            and not row.confirms
        ]
        units, _ = fold(self.state.units, self.outcomes, settings.ema_decay, retired)
        self.state = GateState(observed_epoch=epoch, units=units, snapshots=snapshots)
        self.outcomes = []

    def _candidate(self, epoch: int, step: int) -> Verdict:
        """One null candidate through every stage."""
        run_key, skill = f"e{epoch}/class/s{step}", f"v{self.version}"
        known = in_force(self.state, CLASS, skill, "v1")
        ema = known_difficulty(self.state, known)
        snapshot = self._snapshot(known.generation, "")
        ordered = self._ordered(
            blind_order(self.units, self.draw.randrange(2**32), epoch, ema), snapshot
        )
        verdict = self._stage(ordered, snapshot, f"{run_key}/gate")
        if verdict == "accept" and stages_of(self.setting.settings) == 2:
            verdict = self._stage(ordered, self._snapshot(0, run_key), f"{run_key}/confirm")
        self.decisions.append(decision_row(run_key, epoch, step, skill, verdict, known.generation))
        if verdict == "accept":
            self.version += 1  # another text, a snapshot still to be drawn
        return verdict

    def _snapshot(self, generation: int, confirms: str) -> tuple[Draws, ...]:
        """What the store has, completed by what it has not."""
        skill = f"v{self.version}"
        key = SnapshotKey(
            task_type=CLASS,
            skill_hash=skill,
            prompts_version="v1",
            generation=generation,
            confirms=confirms,
        )
        k = draws_of(self.setting.settings, len(self.units))
        there = [
            row
            for row in self.rows
            if (row.skill_hash, row.generation, row.confirms) == (skill, generation, confirms)
        ]
        results = [
            (wanted, answered(wanted.question.question_id, self._right(wanted.question)))
            for wanted in wanted_draws(self.units, there, k)
        ]
        new = storable(key, results)
        self.rows.extend(new)
        return assemble(self.units, [*there, *new], k)

    def _ordered(self, blind: tuple[Unit, ...], snapshot: Sequence[Draws]) -> Sequence[Unit]:
        """The blind order, or one that has seen the snapshot."""
        right = {entry.unit_id: sum(entry.right) / len(entry.right) for entry in snapshot}
        if self.setting.order == "wrong first":
            return sorted(blind, key=lambda unit: right[unit.unit_id])
        if self.setting.order == "right first":
            return sorted(blind, key=lambda unit: -right[unit.unit_id])
        if self.setting.order == "own tiers":
            seen = {(CLASS, unit.video_id): right[unit.unit_id] for unit in self.units}
            return blind_order(self.units, self.draw.randrange(2**32), 1, seen)
        return blind

    def _stage(self, ordered: Sequence[Unit], snapshot: Sequence[Draws], run_key: str) -> Verdict:
        settings, n_units = self.setting.settings, len(ordered)
        stops = self.setting.stops
        rules = Rules(
            alpha=alpha_of(settings, n_units),
            max_missing_share=settings.max_missing_share,
            futility_power=settings.futility_power if stops else 0.0,
            harm_e=settings.harm_e if stops else math.inf,
        )
        ladder = build_ladder(ordered, snapshot, lookup(self.state.units))
        blocks: list[list[Answers]] = []
        ends = (0, *block_ends(n_units))
        standing = decide(ladder, blocks, rules)
        drift = DRIFT if self.setting.order == "drift" else 0.0
        while standing is None:
            index = len(blocks)
            block: list[Answers] = []
            for unit in ordered[ends[index] : ends[index + 1]]:
                right = self._right(unit.questions[0], drift)
                block.append((right,))
                self.outcomes.append(outcome_row(f"{run_key}/b{index}", unit, right))
            blocks.append(block)
            standing = decide(ladder, blocks, rules)
        return standing.verdict

    def _right(self, question: Question, drift: float = 0.0) -> bool:
        p = self.truth[int(question.question_id)]
        if drift:
            p = 1 / (1 + (1 - p) / p * math.exp(-drift)) if 0 < p < 1 else p
        return self.draw.random() < p


def accuracy(draw: random.Random) -> float:
    """One question's true accuracy."""
    [(_, a, b)] = draw.choices(SHAPES, [share for share, _, _ in SHAPES])
    return draw.betavariate(a, b)


def _every() -> Iterator[Setting]:
    """The table, profile by profile; the default one under the orders that void the level too."""
    profiles: tuple[Literal["balanced", "growth", "audit"], ...] = ("balanced", "growth", "audit")
    for profile in profiles:
        orders = (*KEPT, *BROKEN) if profile == "balanced" else KEPT
        for k in (1, 3):
            for order in orders:
                for n_units in (16, 30, 60):
                    yield Setting(order, settings_of(profile, k), n_units)
    yield Setting("wrong first", settings_of("audit", 1), 60)
    for n_units in (16, 30, 60):
        yield Setting("random", settings_of("balanced", 1), n_units, stops=True)


def main() -> None:
    """Measure every setting and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--classes", type=int, default=2000, help="per setting (default: 2000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    arguments = parser.parse_args()
    settings = list(_every())
    run: Callable[[Setting], Measured] = partial(_measured, n_classes=arguments.classes)
    print("order        profile   k   N  stops  alpha   rate  +-se    tests")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for setting, found in zip(settings, pool.map(run, settings), strict=True):
            void = "!" if setting.order in BROKEN else " "
            over = "" if found.rate <= found.limit else "  over"
            print(
                f"{setting.order:<12}{void}{setting.settings.profile:<9}"
                f"{setting.settings.draws_small:>2}{setting.n_units:>4}"
                f"{'on' if setting.stops else 'off':>6}{found.alpha:>8.2f}{found.rate:>8.4f}"
                f"{found.error:>7.4f}{found.tests:>8}{over}",
                flush=True,
            )


def _measured(setting: Setting, n_classes: int) -> Measured:
    # twelve tests in each class of this one
    return measure(setting, n_classes // 4 if setting.order == "reused" else n_classes)


if __name__ == "__main__":
    main()
