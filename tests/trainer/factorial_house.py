"""The small house of the trainer with a real factorial gate, and an editor of whole lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from actors.gate.actor import GateActor
from actors.ledger.sqlite import Database
from protocol.base import Message, Request
from protocol.dataset import Unit
from protocol.documents import Document, Prompts, Skill
from protocol.evolver import Edit, EditReport, NoProposal
from protocol.factorial import (
    Certify,
    EditorCoins,
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
from protocol.ledger import Select, Selected, rows_of
from protocol.row import Row
from tests.support.fakes import FakeAddress
from tests.trainer.house import CLASSES, QUESTIONS, House, Surroundings, _question

__all__ = ["NOTHING", "FactorialHouse", "append", "opened", "running"]

T = TypeVar("T", bound=Row)
H = TypeVar("H", bound="FactorialHouse")
ON = ("gate.design=factorial", "trainer.slow_update=false", "gate.budget=84")


class FactorialHouse(House):
    """The house with a real gate.

    lines: what the editor appends, by epoch and class; prompt_lines: to the system prompt. more:
    units of a class beyond those of the house.
    """

    def __init__(self, database: Database, *assignments: str) -> None:
        super().__init__(database, *ON, *assignments)
        self.lines: Callable[[int, str], list[str]] = lambda epoch, _: ["good"] * (epoch == 1)
        self.on_gate: Callable[[Request[object]], None] = lambda _: None
        self.prompt_lines: Callable[[int], list[str]] = lambda _: []
        self.proposed: list[ProposeEdits] = []
        self.proposed_prompts: list[ProposePromptEdits] = []
        self.more = 0
        self.gate: GateActor

    async def open_gate(self, tasks: TaskGroup) -> None:
        """A fresh incarnation of the gate."""
        self.gate = GateActor(
            self.config.gate,
            self.config.run.seed,
            FakeAddress("baseline", self._baseline),
            FakeAddress("rollout", self._rollout),
            FakeAddress("ledger", self._ledger),
            FakeAddress("evolver", self._evolver),
            max_unreadable_share=0.5,
        )
        await self.gate.on_start(Surroundings(self, tasks, None))

    async def rows(self, kind: type[T]) -> tuple[T, ...]:
        """A table."""
        return rows_of(kind, Selected(rows=await self.database.select(Select(table=kind.TABLE))))

    async def _dataset(self, request: Request[object]) -> Message:
        if not isinstance(request, GetUnits):
            return await super()._dataset(request)
        return FactorialUnits(
            units=tuple(
                Unit(unit_id=q.question_id, video_id=q.video_id, task_type=name, questions=(q,))
                for name in CLASSES
                for q in (*QUESTIONS[name], *(_question(name, 20 + i) for i in range(self.more)))
            )
        )

    async def _gate(self, request: Request[object]) -> Message:
        self.asked.append(request)
        self.on_gate(request)
        if isinstance(request, PlanFactorial):
            return await self.gate.plan_factorial(request)
        if isinstance(request, EditorCoins):
            return await self.gate.editor_coins(request)
        if isinstance(request, RunPhase):
            return await self.gate.run_phase(request)
        assert isinstance(request, Certify), "the ladder is not asked"
        return await self.gate.certify(request)

    async def _evolver(self, request: Request[object]) -> Message:
        if isinstance(request, RenderEdits):
            texts = [
                request.base.text + "".join(request.edits[place].content for place in on)
                for on in request.on
            ]
            own = request.base.task_type
            return Rendered(skills=tuple(Skill(task_type=own, text=text) for text in texts))
        if isinstance(request, RenderPrompts):
            return RenderedPrompts(prompts=tuple(_prompts(request, on) for on in request.on))
        if isinstance(request, ProposePromptEdits) and not self.editor_away:
            return self._prompt_edits(request)
        if self.editor_away or not isinstance(request, ProposeEdits):
            return await super()._evolver(request)
        self.proposed.append(request)
        epoch = int(request.run_key[1])
        new = tuple(map(append, self.lines(epoch, request.base.task_type)))
        if not new:
            return NOTHING
        return ProposedEdits(
            new=new,
            groups=(),
            reports=tuple(EditReport(edit=one, status="applied", detail="") for one in new),
            editor_calls=1,
            parse_failures=0,
        )

    def _prompt_edits(self, request: ProposePromptEdits) -> Message:
        self.proposed_prompts.append(request)
        new = tuple(map(append, self.prompt_lines(int(request.run_key[1]))))
        if not new:
            return NOTHING
        return ProposedPromptEdits(
            new=tuple(PromptEdit(document="system", edit=one) for one in new),
            groups=(),
            reports=(),
            editor_calls=1,
            parse_failures=0,
        )


NOTHING = NoProposal(reason="no_edits", detail="", reports=(), editor_calls=1, parse_failures=0)


def _prompts(request: RenderPrompts, on: Sequence[int]) -> Prompts:
    added = "".join(request.edits[place].edit.content for place in on)
    return with_documents(request.base, [Document(name="system", text=request.base.system + added)])


def append(line: str) -> Edit:
    return Edit(op="append", target="", content=f"{line}\n", support=(), reason="")


def opened(
    path: Path, *assignments: str
) -> AbstractAsyncContextManager[tuple[FactorialHouse, TaskGroup]]:
    """A house on a fresh database."""
    return running(path, lambda database: FactorialHouse(database, *assignments))


@asynccontextmanager
async def running(path: Path, build: Callable[[Database], H]) -> AsyncIterator[tuple[H, TaskGroup]]:
    """The same of another kind of house."""
    database = await Database.open(path / "run.db")
    try:
        async with anyio.create_task_group() as tasks:
            house = build(database)
            await house.open_gate(tasks)
            yield house, tasks
            tasks.cancel_scope.cancel()
    finally:
        await database.close()
