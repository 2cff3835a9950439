"""The actors and the pure simulation come to the same end, given the same coins and outcomes.

Many random worlds: sizes, edits, exclusive groups, effects, ties and void pairs. The simulation
runs on plain values; the gate actor on the ledger's rows, with outcomes that are the simulation's
and coins of its own, which must be the same. What is compared: every coin, W, L, D_seen and state
of every edit, tau, cut, what passed and what is adopted.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec
import pytest
import structlog

import actors.commands.simulated.factorial_run as simulation
from actors.commands.simulated.planted import STUDY, Planted, plant
from actors.gate.actor import GateActor
from actors.gate.factorial.coins import Coin
from actors.gate.factorial.states import FactorialEdit, conclude
from actors.gate.factorial.stepup import Evidence, StepUp, step_up
from actors.gate.factorial.tally import Outcome
from protocol.base import Request
from protocol.dataset import Question, Unit
from protocol.documents import Prompts, Skill
from protocol.evolver import Edit
from protocol.factorial import (
    Certify,
    FactorialPlan,
    PhaseDone,
    PlanFactorial,
    Rendered,
    RenderEdits,
    RunPhase,
)
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow
from protocol.ledger import Record
from protocol.rollout import Answered, Missed, Rollout
from tests.gate.factorial_house import SETTINGS, Surroundings
from tests.gate.factorial_memory import MemoryLedger
from tests.support.fakes import FakeAddress

Q = Fraction(3, 20)
N_SEEDS = 10
PROMPTS = Prompts(version="v1", system="s", tools=())


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn of a seed. alternatives: edits in exclusive groups of so many.

    void: share of pairs that are lost.
    """

    planted: Planted
    budget: int
    alternatives: int
    void: float


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The simulation's end. coins, outcomes: by class and pair. edits: with their states."""

    coins: Mapping[tuple[str, int], tuple[Coin, ...]]
    outcomes: Mapping[tuple[str, int], Outcome]
    evidence: Sequence[Evidence]
    edits: Sequence[FactorialEdit]
    decided: StepUp


def world_of(seed: int) -> World:
    """Small enough to be quick, large enough that something is dropped and adopted."""
    draw = random.Random(seed)
    setting = msgspec.structs.replace(
        STUDY,
        sizes=tuple(draw.randint(4, 12) for _ in range(draw.randint(1, 3))),
        n_epochs=draw.randint(1, 3),
        n_candidates=draw.randint(1, 4),
    )
    units = sum(setting.sizes)
    return World(
        planted=plant(seed, setting),
        budget=units * (setting.n_epochs + draw.randint(4, 12)),
        alternatives=draw.choice((1, 1, 2, 3)),
        void=draw.choice((0.0, 0.0, 0.1, 0.5)),
    )


def simulated(seed: int, world: World, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """The pure run, and what it decided on."""
    draw = random.Random(f"outcomes {seed}")
    weights: dict[str, float] = {}
    coins: dict[tuple[str, int], tuple[Coin, ...]] = {}
    outcomes: dict[tuple[str, int], Outcome] = {}
    told: list[tuple[Sequence[Evidence], StepUp]] = []
    ended: list[FactorialEdit] = []

    def answering(draws: simulation.PhaseDraws) -> list[Outcome]:
        found: list[Outcome] = []
        for drawn in draws.pairs:
            key = (drawn.pair.task_type, drawn.pair.index)
            coins[key] = drawn.coins
            balance = 0.0
            for coin in drawn.coins:
                if coin.edit_id.endswith("/sentinel") or coin.virtual:
                    continue
                weight = weights.setdefault(coin.edit_id, draw.choice((0.0, 0.0, 1.5, -1.5)))
                balance += weight * coin.sign
            outcomes[key] = _winner(draw, balance, world.void)
            found.append(outcomes[key])
        return found

    def watched_step_up(edits: Sequence[Evidence], q: Fraction, cap: Fraction) -> StepUp:
        decided = step_up(edits, q, cap)
        told.append((edits, decided))
        return decided

    def watched_conclude(
        edits: Sequence[FactorialEdit], adopted: Sequence[str]
    ) -> tuple[FactorialEdit, ...]:
        ended.extend(conclude(edits, adopted))
        return tuple(ended)

    with monkeypatch.context() as patch:
        patch.setattr(simulation, "step_up", watched_step_up)
        patch.setattr(simulation, "conclude", watched_conclude)
        simulation.simulate(
            world.planted,
            world.budget,
            qs=(Q,),
            answering=answering,
            alternatives=world.alternatives,
        )
    ((evidence, decided),) = told
    return Ended(coins=coins, outcomes=outcomes, evidence=evidence, edits=ended, decided=decided)


def _winner(draw: random.Random, balance: float, void: float) -> Outcome:
    if draw.random() < void:
        return None
    if draw.random() < 0.5:
        return 0
    return 1 if draw.random() < 1.0 / (1.0 + math.exp(-balance)) else -1


class Desk:
    """The gate's peers, with the simulation's outcomes. A fresh gate for every phase: a restart."""

    def __init__(self, seed: int, world: World, ended: Ended) -> None:
        self.ledger = MemoryLedger()
        self._seed = seed
        self._world = world
        self._ended = ended
        self._order = random.Random(seed)
        planted = world.planted
        self._units = tuple(
            _unit(name, nth)
            for name, n_units in zip(planted.names, planted.sizes, strict=True)
            for nth in range(n_units)
        )

    async def run(self) -> None:
        """Plan, epochs, certification, decision."""
        planted = self._world.planted
        n_epochs = planted.n_epochs
        async with anyio.create_task_group() as tasks:
            gate = await self._gate(tasks)
            plan = await gate.plan_factorial(PlanFactorial(units=self._units, n_epochs=n_epochs))
            assert isinstance(plan, FactorialPlan), plan
            for phase in range(1, n_epochs + 2):
                for name in planted.names:
                    self.ledger.write(Record(rows=tuple(self._born(name, phase))))
                    gate = await self._gate(tasks)
                    done = await gate.run_phase(
                        RunPhase(
                            task_type=name,
                            phase=phase,
                            base=Skill(task_type=name, text="base\n"),
                            prompts=PROMPTS,
                            units=tuple(u for u in self._units if u.task_type == name),
                        )
                    )
                    assert isinstance(done, PhaseDone), done
            bases = tuple(Skill(task_type=name, text="base\n") for name in planted.names)
            await (await self._gate(tasks)).certify(Certify(bases=bases, prompts=PROMPTS))

    def _born(self, name: str, phase: int) -> list[FactorialEditRow]:
        """The simulation's edits of an epoch, as rows."""
        own = [edit for edit in self._ended.edits if edit.task_type == name and not edit.sentinel]
        return [
            FactorialEditRow(
                edit_id=edit.edit_id,
                task_type=name,
                born=phase,
                position=position,
                edit=_text_of(edit.edit_id),
                group_id=edit.group,
                sentinel=False,
                proposed_by="",
            )
            for position, edit in enumerate(own, start=1)
            if edit.born == phase
        ]

    async def _gate(self, tasks: anyio.abc.TaskGroup) -> GateActor:
        settings = msgspec.structs.replace(SETTINGS, budget=self._world.budget)
        gate = GateActor(
            settings,
            self._seed,
            FakeAddress("baseline", self._roll),
            FakeAddress("rollout", self._roll),
            FakeAddress("ledger", self.ledger.ask),
            FakeAddress("evolver", self._render),
            n_pairs=self._order.randint(1, 9),
            max_unreadable_share=0.5,
        )
        await gate.on_start(Surroundings(tasks))
        return gate

    async def _render(self, request: Request[object]) -> object:
        assert isinstance(request, RenderEdits)
        return Rendered(skills=tuple(request.base for _ in request.on))

    async def _roll(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        for _ in range(self._order.randint(0, 3)):
            await anyio.lowlevel.checkpoint()  # whoever comes first
        pair, arm = request.run_key.split("/")[3:]
        name = request.question.question_id
        o = self._ended.outcomes[request.question.task_type, int(pair)]
        if o is None and arm == "b":
            return Missed(question_id=name, kind="tree", detail="")
        return Answered(
            question_id=name,
            right=o in (None, 0) or (o == 1) == (arm == "a"),
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            n_steps=1,
        )


def _unit(name: str, nth: int) -> Unit:
    question = Question(
        question_id=f"{name}-{nth}",
        video_id=f"v{nth}",
        task_type=name,
        question="?",
        options=("A", "B"),
        answer="A",
    )
    return Unit(unit_id=f"u{nth:03d}", video_id=f"v{nth}", task_type=name, questions=(question,))


def _text_of(name: str) -> str:
    edit = Edit(op="append", target="", content=name, support=(), reason="")
    return msgspec.json.encode(edit).decode()


@pytest.mark.parametrize("first", range(1, 1 + 4 * N_SEEDS, N_SEEDS))
def test_the_actors_come_to_the_end_of_the_simulation(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten worlds at a time."""
    dropped = adopted = void = 0
    silent = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=silent)
    for seed in range(first, first + N_SEEDS):
        world = world_of(seed)
        ended = simulated(seed, world, monkeypatch)
        desk = Desk(seed, world, ended)
        try:
            anyio.run(desk.run)
            _agree(ended, desk.ledger)
        finally:
            desk.ledger.close()
        dropped += sum(edit.state == "dropped" for edit in ended.edits)
        adopted += len(ended.decided.adopted)
        void += sum(o is None for o in ended.outcomes.values())
    assert min(dropped, adopted, void) > 0, "else nothing much was compared"


def _agree(ended: Ended, ledger: MemoryLedger) -> None:
    pairs = {(row.task_type, row.pair): row for row in ledger.rows(PairRow)}
    # The simulation has no edits of the prompts: their sentinel comes last, in every pair.
    drawn = {key: msgspec.json.decode(row.coins) for key, row in pairs.items()}
    assert {coins[-1][0] for coins in drawn.values()} == {"_prompts/sentinel"}
    assert {key: coins[:-1] for key, coins in drawn.items()} == {
        key: [[coin.edit_id, coin.sign, coin.virtual] for coin in coins]
        for key, coins in ended.coins.items()
    }
    assert {key: row.outcome for key, row in pairs.items()} == ended.outcomes
    rows = {row.edit_id: row for row in ledger.rows(FactorialEditRow)}
    assert rows.pop("_prompts/sentinel").pairs == sum(
        o is not None for o in ended.outcomes.values()
    )
    assert rows.keys() == {edit.edit_id for edit in ended.edits}
    for edit in ended.edits:
        row = rows[edit.edit_id]
        assert (row.wins, row.losses, row.seen, row.pairs, row.state) == (
            edit.wins,
            edit.losses,
            edit.seen,
            edit.pairs,
            edit.state,
        )
    (run,) = ledger.rows(FactorialRunRow)
    decided = ended.decided
    cut = None if decided.cut is None else float(decided.cut)
    assert (run.n_edits, run.tau, run.cut, run.passed) == (
        len(ended.evidence),
        float(decided.tau),
        cut,
        decided.passed,
    )
    assert run.adopted == len(decided.adopted) * run.ok
    for evidence, p in zip(ended.evidence, decided.p, strict=True):
        assert rows[evidence.edit_id].p == float(p)
