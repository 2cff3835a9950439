"""W-5: the real trainer and the real gate, killed at every step around the epoch's observation.

Ledger and checkpoint stay, the process goes: what the resumed one ends with must be what an
unbroken run ends with, the epoch folded in exactly once.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
import structlog
from anyio.abc import TaskGroup

from actors.gate.actor import GateActor
from actors.gate.state import GateState
from actors.ledger.sqlite import Database
from actors.trainer.actor import TrainerActor
from protocol.base import Message, Request
from protocol.baseline import Draws, GetSnapshot, SnapshotReady
from protocol.gate import Decision, LadderRefreshed, RefreshLadder, Trial
from protocol.ledger import Record, Select, Selected, rows_of
from protocol.rollout import Rollout
from protocol.rows import BaselineRow, DecisionRow, EpochRow
from protocol.trainer import Train, TrainingEnded
from protocol.workspace import UpdateManifest
from tests.gate.world import SETTINGS
from tests.support.fakes import FakeAddress
from tests.trainer.house import House

pytestmark = pytest.mark.anyio

EPOCHS = 2
FIRST = "row evaluations e1/val/final"
"""The last row before the first epoch's boundary."""

LAST = "manifest 1"
"""The last word of it."""


class _Killed(BaseException):
    """The process is gone: nothing catches it."""


class _Context:
    """The runtime's, with a checkpoint of both actors."""

    def __init__(self, house: Mortal, name: str, tasks: TaskGroup, restored: bytes | None) -> None:
        self.name = name
        self.incarnation = 1
        self.draining = False
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger()
        self.restored = restored
        self.tasks = tasks
        self._house = house

    async def checkpoint(self, label: str) -> None:
        """Both states, in one file."""
        await self._house.write_checkpoint(label)


class Mortal(House):
    """The trainer's house with the gate itself, which dies at a given event of the boundary.

    events: what happened at the first boundary, in order; every one is a point to die at, before
    and after it took effect.
    """

    def __init__(self, database: Database) -> None:
        self.events: list[str] = []
        self.at: tuple[int, bool] | None = None
        self.saved: dict[str, bytes] = {}
        self._open = False
        super().__init__(
            database,
            f"trainer.epochs={EPOCHS}",
            "trainer.slow_update=false",
            "trainer.run_holdout_eval=false",
        )
        self.edit = lambda propose: f"useless {propose.run_key}\n"

    async def begin(self, tasks: TaskGroup) -> TrainerActor:
        """A process: both actors from the last checkpoint."""
        await self.start_gate(tasks)
        self.actor = self._build()
        restored = self.saved.get("trainer")
        await self.actor.on_start(_Context(self, "trainer", tasks, restored))
        return self.actor

    async def start_gate(self, tasks: TaskGroup) -> None:
        """The gate from the last checkpoint."""
        settings = msgspec.structs.replace(SETTINGS, fresh_after=2)
        self.gate = GateActor(
            settings,
            7,
            FakeAddress("baseline", self._snapshot),
            FakeAddress("rollout", self._rollout),
            FakeAddress("ledger", self._ledger),
            max_unreadable_share=0.5,
        )
        await self.gate.on_start(_Context(self, "gate", tasks, self.saved.get("gate")))

    @contextmanager
    def event(self, name: str) -> Iterator[None]:
        """Something that a process may die before, or when it is done."""
        self._open = self._open or name == FIRST
        if not self._open:
            yield
            return
        number = len(self.events)
        self.events.append(name)
        self._die(number, done=False)
        yield
        self._die(number, done=True)
        self._open = name != LAST

    def _die(self, number: int, *, done: bool) -> None:
        if self.at == (number, done):
            self.at = None
            raise _Killed(self.events[number])

    async def write_checkpoint(self, label: str) -> None:
        """Both states, as one."""
        with self.event(f"checkpoint {label}"):
            trainer = self.actor.snapshot()
            assert trainer is not None
            self.saved = {"trainer": trainer, "gate": self.gate.snapshot()}

    async def _gate(self, request: Request[object]) -> Message:
        if isinstance(request, RefreshLadder):
            with self.event(f"observe {request.epoch}"):
                return await self.gate.refresh(request)
        assert isinstance(request, Trial)
        decision = await self.gate.test(request)
        assert isinstance(decision, Decision)
        return decision

    async def _ledger(self, request: Request[object]) -> Message:
        with self.event(_named(request)):
            return await super()._ledger(request)

    async def _workspace(self, request: Request[object]) -> Message:
        name = f"manifest {request.epoch}" if isinstance(request, UpdateManifest) else "workspace"
        with self.event(name):
            return await super()._workspace(request)

    async def _rollout(self, request: Request[object]) -> Message:
        """Candidates are right by luck of their name, so that the EMA has something to tell."""
        assert isinstance(request, Rollout)
        luck = hashlib.sha256(f"{request.run_key} {request.question.question_id}".encode())
        lucky = "/gate/" in request.run_key and luck.digest()[0] < 64
        if lucky:
            good = msgspec.structs.replace(request.skill, text="good")
            request = msgspec.structs.replace(request, skill=good)
        return await super()._rollout(request)

    async def _snapshot(self, request: Request[object]) -> Message:
        """Every answer is wrong; stored, so that it can be folded in once it is out of force."""
        assert isinstance(request, GetSnapshot)
        rows = tuple(
            BaselineRow(
                task_type=unit.task_type,
                skill_hash=request.skill.hash,
                prompts_version=request.prompts.version,
                unit_id=unit.unit_id,
                question_id=question.question_id,
                draw=0,
                right=False,
                source="rollout",
                video_id=unit.video_id,
                generation=request.generation,
            )
            for unit in request.units
            for question in unit.questions
        )
        await self.database.apply([Record(rows=rows)])
        draws = tuple(
            Draws(unit_id=row.unit_id, question_id=row.question_id, right=(False,)) for row in rows
        )
        return SnapshotReady(draws=draws, drawn=0, missing=())


def _named(request: Request[object]) -> str:
    if isinstance(request, Record):
        return " ".join(f"row {r.TABLE} {getattr(r, 'run_key', '')}".strip() for r in request.rows)
    return f"select {request.table}" if isinstance(request, Select) else type(request).__name__


@asynccontextmanager
async def house_at(path: Path) -> AsyncIterator[tuple[Mortal, TaskGroup]]:
    """A house on a fresh database."""
    await anyio.Path(path).mkdir()
    database = await Database.open(path / "run.db")
    try:
        async with anyio.create_task_group() as tasks:
            yield Mortal(database), tasks
            tasks.cancel_scope.cancel()
    finally:
        await database.close()


async def _end(house: Mortal) -> tuple[GateState, tuple[EpochRow, ...], tuple[DecisionRow, ...]]:
    """What a run leaves: the gate's state, and the rows that tell of its tests."""
    select = house.database.select
    epochs = rows_of(EpochRow, Selected(rows=await select(Select(table="epochs"))))
    decisions = rows_of(DecisionRow, Selected(rows=await select(Select(table="decisions"))))
    return msgspec.json.decode(house.saved["gate"], type=GateState), epochs, decisions


async def test_W_5_killed_anywhere_around_the_observation(tmp_path: Path) -> None:
    """W-5: the whole process dies before or after each event of the boundary."""
    async with house_at(tmp_path / "whole") as (house, tasks):
        ended = await (await house.begin(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        events, expected = house.events, await _end(house)
    state, epochs, decisions = expected
    assert len(epochs) == EPOCHS
    assert state.observed_epoch == EPOCHS
    assert {row.generation for row in decisions} == {0, 1}
    assert len({unit.value for unit in state.units}) > 2
    assert {"observe 1", "checkpoint epoch 1 observed", "Flush", "manifest 1"} <= set(events)
    for event in range(len(events)):
        for done in (False, True):
            async with house_at(tmp_path / f"{event}{done}") as (house, tasks):
                house.at = (event, done)
                trainer = await house.begin(tasks)
                with pytest.raises(_Killed, match=events[event]):
                    await trainer.train(Train())
                ended = await (await house.begin(tasks)).train(Train())
                assert isinstance(ended, TrainingEnded), (event, events[event], done)
                assert await _end(house) == expected, (event, events[event], done)


async def test_W_5_the_gate_alone_dies_after_it_has_observed(tmp_path: Path) -> None:
    """It comes back as of the last checkpoint; what it lost is in the ledger.

    The checkpoint that follows says that the epoch was observed and holds a gate that was not.
    """
    async with house_at(tmp_path / "whole") as (house, tasks):
        await (await house.begin(tasks)).train(Train())
        expected = await _end(house)
    async with house_at(tmp_path / "broken") as (house, tasks):
        trainer = await house.begin(tasks)
        observe = house.gate.refresh

        async def refresh(request: RefreshLadder) -> LadderRefreshed:
            reply = await observe(request)
            await house.start_gate(tasks)
            return reply

        house.gate.refresh = refresh  # type: ignore[method-assign]
        ended = await trainer.train(Train())
        assert isinstance(ended, TrainingEnded)
        assert await _end(house) == expected
