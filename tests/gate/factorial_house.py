"""The gate actor under the factorial design, on a real ``run.db``, with rollouts that are fated.

An answer follows from its salt, question and document alone. Every rollout of a pair first reads
``run.db`` through a connection of its own: the pair's coins must be committed by then.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.abc
import msgspec
import structlog

from actors.gate.actor import GateActor
from actors.gate.factorial.keyed import keyed_integer
from actors.ledger.sqlite import Database, read_only_uri
from protocol.base import Request
from protocol.dataset import Question, Unit
from protocol.documents import Document, Prompts, Skill
from protocol.evolver import Edit
from protocol.factorial import (
    Certify,
    FactorialPlan,
    PlanFactorial,
    Rendered,
    RenderEdits,
    RunPhase,
)
from protocol.factorial_prompts import RenderedPrompts, RenderPrompts, with_documents
from protocol.factorial_rows import PROMPTS as SCOPE
from protocol.factorial_rows import FactorialEditRow
from protocol.keys import step_key
from protocol.ledger import Record, Recorded, Select, Selected, rows_of
from protocol.rollout import Answered, Missed, Rollout
from protocol.row import Row
from protocol.rows import OutcomeRow
from protocol.settings import GateSettings
from tests.gate.world import SETTINGS as LADDER
from tests.support.fakes import FakeAddress

__all__ = [
    "BASE",
    "CLASS",
    "OTHER",
    "PROMPTS",
    "SEED",
    "SETTINGS",
    "House",
    "Surroundings",
    "edit_row",
    "opened",
    "outcome_row",
    "units_of",
]

CLASS = "Counting Problem"
OTHER = "Temporal Reasoning"
SETTINGS = msgspec.structs.replace(LADDER, design="factorial", budget=230)
BASE = Skill(task_type=CLASS, text="count\n")
PROMPTS = Prompts(version="v1", system="s\n", tools=())
SEED = 7

T = TypeVar("T", bound=Row)


def units_of(n_units: int, n_questions: int = 1, name: str = CLASS) -> tuple[Unit, ...]:
    """A class with so many units."""
    return tuple(
        Unit(
            unit_id=f"u{unit:02d}",
            video_id=f"v{unit:02d}",
            task_type=name,
            questions=tuple(
                Question(
                    question_id=f"v{unit:02d}-{nth}",
                    video_id=f"v{unit:02d}",
                    task_type=name,
                    question="How many?",
                    options=("A. 1", "B. 2"),
                    answer="A",
                )
                for nth in range(n_questions)
            ),
        )
        for unit in range(n_units)
    )


def edit_row(
    name: str,
    position: int,
    born: int = 1,
    group: str | None = None,
    *,
    scope: str = CLASS,
) -> FactorialEditRow:
    """An edit that appends its own name, to the class's skill or to the system prompt."""
    edit = Edit(op="append", target="", content=f"{name}\n", support=(), reason="")
    return FactorialEditRow(
        edit_id=name,
        task_type=scope,
        born=born,
        position=position,
        edit=msgspec.json.encode(edit).decode(),
        group_id=group,
        sentinel=False,
        proposed_by=step_key(born, scope, 1),
        document="system" if scope == SCOPE else "skill",
    )


@dataclass
class Surroundings:
    """What the runtime would give."""

    tasks: anyio.abc.TaskGroup
    restored: bytes | None = None
    name: str = "gate"
    incarnation: int = 1
    draining: bool = False
    log: structlog.stdlib.BoundLogger = field(default_factory=structlog.get_logger)

    async def checkpoint(self, label: str) -> None:
        """Nothing to write."""


Truth = Callable[[Rollout], float | None]


class House:
    """The gate with its peers. truth: the chance that a rollout is right, None: it is lost.

    dies_at: the ask of a rollout, counted from 1, that raises before it is answered.
    """

    def __init__(
        self,
        database: Database,
        path: Path,
        tasks: anyio.abc.TaskGroup,
        truth: Truth,
        settings: GateSettings,
    ) -> None:
        self.database = database
        self.units = units_of(12)
        self.asked: Counter[tuple[str, str]] = Counter()
        self.rolled: list[Rollout] = []
        self.dies_at: int | None = None
        self.drains_at: int | None = None
        self.missed_as = "timeout"
        self._forced: Callable[[int, str], bool] | None = None
        self._path = path
        self._truth = truth
        self._settings = settings
        self._context = Surroundings(tasks)

    async def start(self) -> GateActor:
        """A fresh incarnation."""
        self._context.draining = False
        gate = GateActor(
            self._settings,
            SEED,
            FakeAddress("baseline", self._nobody),
            FakeAddress("rollout", self._roll),
            FakeAddress("ledger", self._ledger),
            FakeAddress("evolver", self._render),
            n_pairs=4,
            max_unreadable_share=0.5,
        )
        await gate.on_start(self._context)
        return gate

    def mix_up(self, right: Callable[[int, str], bool]) -> None:
        """Answer by pair and arm, whatever the documents say."""
        self._forced = right

    async def plan(self, gate: GateActor, *rows: FactorialEditRow) -> FactorialPlan:
        """Fix the schedule of two epochs, and have these edits proposed."""
        plan = await gate.plan_factorial(PlanFactorial(units=self.units, n_epochs=2))
        assert isinstance(plan, FactorialPlan)
        if rows:
            await self.database.apply([Record(rows=rows)])
        return plan

    def phase(self, phase: int, name: str = CLASS) -> RunPhase:
        """The request for a class's phase."""
        return RunPhase(
            task_type=name,
            phase=phase,
            base=msgspec.structs.replace(BASE, task_type=name),
            prompts=PROMPTS,
            units=tuple(unit for unit in self.units if unit.task_type == name),
        )

    async def whole(self, gate: GateActor, phases: Sequence[int] = (1, 2, 3)) -> None:
        """Run these phases to their ends."""
        for phase in phases:
            for base in self.bases():
                ended = await gate.run_phase(self.phase(phase, base.task_type))
                assert type(ended).__name__ == "PhaseDone", ended

    async def certify(self, gate: GateActor) -> tuple[str, ...]:
        """Decide; returns the ids that are adopted."""
        await gate.certify(Certify(bases=self.bases(), prompts=PROMPTS))
        rows = await self.rows(FactorialEditRow)
        return tuple(row.edit_id for row in rows if row.state == "adopted")

    def bases(self) -> tuple[Skill, ...]:
        """The documents of all classes."""
        names = dict.fromkeys(unit.task_type for unit in self.units)
        return tuple(msgspec.structs.replace(BASE, task_type=name) for name in names)

    async def rows(self, kind: type[T]) -> tuple[T, ...]:
        """A table."""
        return rows_of(kind, Selected(rows=await self.database.select(Select(table=kind.TABLE))))

    async def _nobody(self, request: Request[object]) -> object:
        raise AssertionError(f"nobody is asked for a {type(request).__name__}")

    async def _render(self, request: Request[object]) -> object:
        if isinstance(request, RenderPrompts):
            return RenderedPrompts(prompts=tuple(_prompts(request, on) for on in request.on))
        assert isinstance(request, RenderEdits)
        texts = [
            request.base.text + "".join(request.edits[place].content for place in on)
            for on in request.on
        ]
        return Rendered(
            skills=tuple(Skill(task_type=request.base.task_type, text=text) for text in texts)
        )

    async def _ledger(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            return Selected(rows=await self.database.select(request))
        assert isinstance(request, Record)
        await self.database.apply([request])
        return Recorded(rows=len(request.rows))

    async def _roll(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        self._coins_are_committed(request)
        qid = request.question.question_id
        self.asked[request.run_key, qid] += 1
        self.rolled.append(request)
        if self.dies_at == len(self.rolled):
            raise RuntimeError("killed")
        if self.drains_at == len(self.rolled):
            self._context.draining = True
        chance = self._truth(request)
        if chance is None:
            await self.database.apply([Record(rows=(_lost_row(request, self.missed_as),))])
            return Missed(question_id=qid, kind=self.missed_as, detail="lost")
        right = keyed_integer(request.salt, qid, "luck") / 2**256 < chance
        if self._forced is not None:
            *_, pair, arm = request.run_key.split("/")
            right = self._forced(int(pair), arm)
        await self.database.apply([Record(rows=(outcome_row(request, right=right),))])
        return Answered(
            question_id=qid,
            right=right,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            n_steps=1,
        )

    def _coins_are_committed(self, request: Rollout) -> None:
        """Another connection sees the pair, open, with every document's edits in its coins."""
        _, _, phase, pair, arm = request.run_key.split("/")
        with closing(sqlite3.connect(read_only_uri(self._path), uri=True)) as reader:
            found = reader.execute(
                "SELECT phase, state, coins FROM pairs WHERE task_type = ? AND pair = ?",
                (request.question.task_type, int(pair)),
            ).fetchall()
        ((at, state, coins),) = found
        assert (f"p{at}", state) == (phase, "open")
        sign = 1 if arm == "a" else -1
        on = {
            name
            for name, own, virtual in json.loads(coins)
            if own == sign and not virtual and not name.endswith("/sentinel")
        }
        said = f"{request.skill.text} {request.prompts.system}"
        assert set(said.split()) == {"count", "s", *on}


def _prompts(request: RenderPrompts, on: Sequence[int]) -> Prompts:
    added = "".join(request.edits[place].edit.content for place in on)
    return with_documents(request.base, [Document(name="system", text=request.base.system + added)])


def outcome_row(request: Rollout, *, right: bool) -> OutcomeRow:
    """The row of an answer."""
    question = request.question
    return OutcomeRow(
        run_key=request.run_key,
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        outcome="right" if right else "wrong",
        letter="A",
        submitted="A",
        confidence=0.5,
        stop="submitted",
        missing_kind=None,
        detail="",
        n_steps=1,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
        skill_hash=request.skill.hash,
        prompts_version=request.prompts.version,
        salt=request.salt,
    )


def _lost_row(request: Rollout, kind: str) -> OutcomeRow:
    """The agent writes down what it lost, too; the next try replaces it."""
    row = outcome_row(request, right=False)
    return msgspec.structs.replace(row, outcome="missing", missing_kind=kind)


@asynccontextmanager
async def opened(
    folder: Path, truth: Truth, settings: GateSettings = SETTINGS
) -> AsyncIterator[House]:
    """A house on a fresh database."""
    path = folder / "run.db"
    database = await Database.open(path)
    try:
        async with anyio.create_task_group() as tasks:
            yield House(database, path, tasks, truth, settings)
            tasks.cancel_scope.cancel()
    finally:
        await database.close()
