"""A training under the factorial gate in which only useless edits compete, by the real actors.

The trainer's factorial epochs, the gate actor, the ledger's statements on a database in memory;
only editor, judge and agent are made up. Whatever the house sees of an order that must not be is
an AssertionError: a draw before its coins are committed, a draw under another document than its
coins say, a proposer that is shown a unit which edits are tested on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

import anyio
import anyio.lowlevel
import msgspec
import structlog

from actors.config import load_config
from actors.gate.actor import GateActor
from actors.trainer.epoch import EpochSkills
from actors.trainer.factorial import run_factorial_epoch
from actors.trainer.peers import Peers
from protocol.base import Refused, Request
from protocol.dataset import Question, Unit
from protocol.diagnoser import CasePacks, Diagnose, Diagnosis, GetCasePacks, SystemPack
from protocol.documents import Document, Package, PackageTexts, Prompts, Skill
from protocol.evolver import Edit
from protocol.factorial import (
    Certify,
    EditorCoins,
    FactorialPlan,
    FactorialUnits,
    GetUnits,
    PlanFactorial,
    ProposedEdits,
    ProposeEdits,
    Rendered,
    RenderEdits,
    RunPhase,
)
from protocol.factorial_prompts import (
    PromptEdit,
    ProposedPromptEdits,
    ProposePromptEdits,
    RenderedPrompts,
    RenderPrompts,
    with_documents,
)
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.ledger import Record, Select, Where
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import OutcomeRow
from protocol.settings import Config
from tests.gate.factorial_endpoint import Endpoint, World
from tests.gate.factorial_house import Surroundings, outcome_row
from tests.gate.factorial_memory import MemoryLedger
from tests.support.fakes import FakeAddress

__all__ = ["SIZES", "Come", "NullHouse", "training", "units"]

SIZES = {"c0": 8, "c1": 16}
"""Units of a class; every third one asks two questions."""

BUDGET = 200
"""Draws of a unit: the editor's 18, and 91 pairs."""

_RESUMED = 9  # times that an operator resumes a run that infrastructure stopped


class Come(msgspec.Struct, frozen=True, kw_only=True):
    """What a training came to. ok: the sentinels looked like coins. void: pairs without an end."""

    n_edits: int
    adopted: int
    passed: int
    ok: bool
    dropped: int
    pairs: int
    void: int


def training(
    seed: int,
    world: World,
    meddle: Callable[[NullHouse], None] = lambda _: None,
) -> Come:
    """One training from its seed to its decision. meddle: changes the house before it begins."""
    silent = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=silent)
    house = NullHouse(seed, world)
    meddle(house)
    try:
        anyio.run(house.run)
        return house.come()
    finally:
        house.ledger.close()


@lru_cache(maxsize=64)
def _config(seed: int) -> Config:
    config = _defaults()
    run = msgspec.structs.replace(config.run, seed=seed)
    return msgspec.structs.replace(config, run=run)


@lru_cache(maxsize=1)
def _defaults() -> Config:
    return load_config(
        None,
        [
            "gate.design=factorial",
            f"gate.budget={BUDGET}",
            "trainer.slow_update=false",
            "trainer.epochs=3",
        ],
    )


@lru_cache(maxsize=1)
def units() -> tuple[Unit, ...]:
    """Of all classes; videos are shared by classes."""
    return tuple(_unit(name, nth) for name, size in SIZES.items() for nth in range(size))


def _unit(name: str, nth: int) -> Unit:
    questions = tuple(
        Question(
            question_id=f"{name}-{nth}-{which}",
            video_id=f"v{nth}",
            task_type=name,
            question="?",
            options=("A", "B"),
            answer="A",
        )
        for which in range(2 if nth % 3 == 0 else 1)
    )
    return Unit(unit_id=f"{name}/v{nth}", video_id=f"v{nth}", task_type=name, questions=questions)


class NullHouse:
    """The peers.

    on_plan: what the trainer is told of the folds; a test of the test may tell it another thing,
        with ``strict`` off, so that the house does not end the run at once.
    """

    def __init__(self, seed: int, world: World) -> None:
        self.ledger = MemoryLedger()
        self.strict = True
        self.on_plan: Callable[[FactorialPlan], FactorialPlan] = lambda plan: plan
        self._config = _config(seed)
        self._endpoint = Endpoint(world, seed, n_answers=int(1.3 * BUDGET))
        self._tested: set[str] = set()
        self._texts = PackageTexts(
            package=Package(skills="v1", prompts="v1"),
            skills=tuple(Skill(task_type=name, text="base\n") for name in SIZES),
            prompts=Prompts(version="v1", system="s\n", tools=()),
        )
        self._ledger = FakeAddress("ledger", self.ledger.ask)
        self._evolver = FakeAddress("evolver", self._evolve)
        self._nobody = FakeAddress("nobody", self._refuse)
        self._gate = GateActor(
            self._config.gate,
            seed,
            self._nobody,
            FakeAddress("rollout", self._rollout),
            self._ledger,
            self._evolver,
            n_pairs=4,
            max_unreadable_share=0.5,
        )

    async def run(self) -> None:
        """All epochs; what infrastructure stopped is gone on with."""
        async with anyio.create_task_group() as tasks:
            await self._gate.on_start(Surroundings(tasks))
            for epoch in range(1, self._config.trainer.epochs + 1):
                for _ in range(_RESUMED):
                    ended = await run_factorial_epoch(
                        self._peers(), self._config, epoch, self._texts
                    )
                    if not isinstance(ended, Refused):
                        break
                assert isinstance(ended, EpochSkills), ended

    def _peers(self) -> Peers:
        return Peers(
            dataset=FakeAddress("dataset", self._units),
            diagnoser=FakeAddress("diagnoser", self._judge),
            evolver=self._evolver,
            gate=FakeAddress("gate", self._to_gate),
            baseline=self._nobody,
            ledger=self._ledger,
            workspace=self._nobody,
            roll=self._roll,
            draining=lambda: False,
        )

    def come(self) -> Come:
        """From the rows."""
        (run,) = self.ledger.rows(FactorialRunRow)
        edits = self.ledger.rows(FactorialEditRow)
        pairs = self.ledger.rows(PairRow)
        return Come(
            n_edits=run.n_edits,
            adopted=run.adopted,
            passed=run.passed,
            ok=run.ok,
            dropped=sum(row.state == "dropped" for row in edits),
            pairs=len(pairs),
            void=sum(row.state == "void" for row in pairs),
        )

    async def _refuse(self, request: Request[object]) -> object:
        raise AssertionError(f"nobody is asked for a {type(request).__name__}")

    async def _units(self, request: Request[object]) -> object:
        assert isinstance(request, GetUnits)
        return FactorialUnits(units=units())

    async def _to_gate(self, request: Request[object]) -> object:
        if isinstance(request, PlanFactorial):
            plan = await self._gate.plan_factorial(request)
            assert isinstance(plan, FactorialPlan), plan
            return self.on_plan(plan)
        if isinstance(request, EditorCoins):
            return await self._gate.editor_coins(request)
        if isinstance(request, RunPhase):
            return await self._gate.run_phase(request)
        assert isinstance(request, Certify)
        return await self._gate.certify(request)

    # -- editor and judge --------------------------------------------------------------------

    async def _judge(self, request: Request[object]) -> object:
        if isinstance(request, GetCasePacks):
            system = SystemPack(answered=0, right=0, groups=())
            return CasePacks(skills=(), system=system, tools=(), missing=0)
        assert isinstance(request, Diagnose)
        return Diagnosis(
            question_id=request.question.question_id,
            error_type="mixed",
            subtype=None,
            cause="defect",
            degraded=False,
            finding="?",
        )

    async def _evolve(self, request: Request[object]) -> object:
        if isinstance(request, RenderEdits):
            texts = [
                request.base.text + "".join(request.edits[place].content for place in on)
                for on in request.on
            ]
            own = request.base.task_type
            return Rendered(skills=tuple(Skill(task_type=own, text=text) for text in texts))
        if isinstance(request, RenderPrompts):
            return RenderedPrompts(prompts=tuple(_prompts(request, on) for on in request.on))
        if isinstance(request, ProposePromptEdits):
            self._no_gate_unit(request.questions)
            return _proposed_prompts(request)
        assert isinstance(request, ProposeEdits)
        shown = [case.question for case in (*request.defects, *request.lapses)]
        self._no_gate_unit(shown)
        return _proposed(request, [question.question_id for question in shown])

    def _no_gate_unit(self, shown: Sequence[Question]) -> None:
        if self.strict:
            rows = self.ledger.rows(FactorialScheduleRow)
            gates = {name for row in rows for name, _ in msgspec.json.decode(row.gate)}
            seen = {f"{one.task_type}/{one.video_id}" for one in shown}
            assert gates.isdisjoint(seen), f"shown: {gates & seen}"

    # -- the agent ---------------------------------------------------------------------------

    async def _rollout(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        return await self._roll(request)

    async def _roll(self, request: Rollout) -> Answered | Missed:
        if request.run_key.startswith("factorial/"):
            self._coins_are_there(request)
        await anyio.lowlevel.checkpoint()  # an answer takes its time: arms and pairs interleave
        answer = self._endpoint.answer(request)
        if isinstance(answer, Missed):
            return answer
        self.ledger.write(Record(rows=(outcome_row(request, right=answer),)))
        return Answered(
            question_id=request.question.question_id,
            right=answer,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            n_steps=1,
        )

    def _coins_are_there(self, request: Rollout) -> None:
        """Before it is asked: the pair is open, with every edit of the document in its coins."""
        _, _, phase, pair, arm = request.run_key.split("/")
        own = request.question.task_type
        found = self.ledger.connection.execute(
            "SELECT phase, state, coins FROM pairs WHERE task_type = ? AND pair = ?", (own, pair)
        ).fetchall()
        assert [(f"p{at}", state) for at, state, _ in found] == [(phase, "open")], "no coins yet"
        coins = found[0][2]
        sign = 1 if arm == "a" else -1
        on = {
            name
            for name, side, virtual in msgspec.json.decode(coins)
            if side == sign and not virtual and not name.endswith("/sentinel")
        }
        lines = [*request.skill.text.splitlines(), *request.prompts.system.splitlines()]
        said = {line.split()[0] for line in lines} - {"base", "s"}
        assert said == on, f"{request.run_key}: {said ^ on}"
        key = f"{request.run_key} {request.question.question_id}"
        assert key not in self._tested or self.ledger.select(_answer(request)).rows == ()
        self._tested.add(key)


def _answer(request: Rollout) -> Select:
    return Select(
        table=OutcomeRow.TABLE,
        where=(
            Where(column="run_key", value=request.run_key),
            Where(column="question_id", value=request.question.question_id),
        ),
    )


def _proposed(request: ProposeEdits, shown: list[str]) -> ProposedEdits:
    """As many edits as allowed, each of which knows every other question that it was shown."""
    new = _edits(request.run_key, request.base.task_type, request.n_edits, shown)
    return ProposedEdits(
        new=new,
        groups=_groups(len(request.earlier) + len(new)),
        reports=(),
        editor_calls=1,
        parse_failures=0,
    )


def _proposed_prompts(request: ProposePromptEdits) -> ProposedPromptEdits:
    """Two of the system prompt, from the questions of all classes."""
    shown = [question.question_id for question in request.questions]
    edits = _edits(request.run_key, "_prompts", 2, shown)
    return ProposedPromptEdits(
        new=tuple(PromptEdit(document="system", edit=edit) for edit in edits),
        groups=_groups(len(request.earlier) + len(edits)),
        reports=(),
        editor_calls=1,
        parse_failures=0,
    )


def _edits(run_key: str, scope: str, n_edits: int, shown: Sequence[str]) -> tuple[Edit, ...]:
    epoch = run_key.partition("/")[0]
    return tuple(
        Edit(
            op="append",
            target="",
            content=" ".join([f"{epoch}/{scope}/{nth}", *shown[nth % 2 :: 2], "\n"]),
            support=(),
            reason="",
        )
        for nth in range(1, n_edits + 1)
    )


def _groups(n_edits: int) -> tuple[tuple[int, ...], ...]:
    """Some exclude each other, also across epochs: an epoch's third and fourth, and with these the
    ones of the epoch before."""
    groups: dict[int, list[int]] = {}
    for place in range(n_edits):
        if place % 4 >= 2:
            groups.setdefault(place // 8, []).append(place)
    return tuple(tuple(group) for group in groups.values())


def _prompts(request: RenderPrompts, on: Sequence[int]) -> Prompts:
    added = "".join(request.edits[place].edit.content for place in on)
    return with_documents(request.base, [Document(name="system", text=request.base.system + added)])
