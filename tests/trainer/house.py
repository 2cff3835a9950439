"""A small house around the trainer: real SQLite for the ledger, plain functions for the rest.

Two classes; a rollout is right when the skill or the system prompt says ``good`` and none says
``bad``; the editor appends a line; the gate takes what says ``good``. The slow update writes
what a test gives it, by default nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from actors.config import load_config
from actors.ledger.sqlite import Database
from actors.trainer.actor import TrainerActor, TrainerPeers
from protocol.base import Message, Refused, Request
from protocol.baseline import SeedOutcomes, SeedOutcomesReady
from protocol.dataset import (
    ClassWork,
    EpochPlan,
    GetPool,
    KnownOutcome,
    PlanEpoch,
    PoolQuestions,
    Question,
    Unit,
)
from protocol.diagnoser import (
    CasePacks,
    Diagnose,
    Diagnosis,
    GetCasePacks,
    SystemPack,
    ToolPack,
)
from protocol.documents import Document, Package, PackageTexts, Prompts, Skill
from protocol.evolver import Edit, EditReport, NoProposal, Proposal, Propose
from protocol.gate import Decision, LadderRefreshed, RefreshLadder, Trial
from protocol.ledger import Deleted, DeleteRun, Flush, Flushed, Record, Recorded, Select, Selected
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import OutcomeRow
from protocol.slow import SYSTEM, EvolvePrompt, MomentumWritten, PromptEdited, WriteMomentum
from protocol.workspace import (
    GetManifest,
    Manifest,
    OpenPackage,
    PromptsSaved,
    SavePrompts,
    SaveSkills,
    SkillsSaved,
    UpdateManifest,
)
from tests.support.fakes import FakeAddress

__all__ = ["CLASSES", "QUESTIONS", "House", "Surroundings", "opened"]

CLASSES = ("Counting Problem", "Temporal Reasoning")
BASE = Package(skills="v1", prompts="v1")


def _question(task_type: str, index: int) -> Question:
    return Question(
        question_id=f"{task_type[:2]}-{index}",
        video_id=f"v{index}",
        task_type=task_type,
        question="How many?",
        options=("one", "two", "three", "four"),
        answer="B",
    )


QUESTIONS = {name: tuple(_question(name, i) for i in range(4)) for name in CLASSES}
VAL = tuple(_question(name, i) for name in CLASSES for i in range(10, 15))


class Surroundings:
    """What the runtime would give, with the order of events written down."""

    def __init__(self, house: House, tasks: TaskGroup, restored: bytes | None) -> None:
        self.name = "trainer"
        self.incarnation = 1
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger()
        self.restored = restored
        self.tasks = tasks
        self._house = house

    @property
    def draining(self) -> bool:
        return self._house.draining

    async def checkpoint(self, label: str) -> None:
        if label == self._house.fail_checkpoint:
            raise OSError(28, "No space left on device")
        self._house.happened.append(f"checkpoint {label}")
        self._house.checkpoints.append(self._house.actor.snapshot())


class House:
    """The peers, with switches for what a test wants to go wrong."""

    def __init__(self, database: Database, *assignments: str) -> None:
        self.config = load_config(None, ["trainer.epochs=2", *assignments])
        self.database = database
        self.happened: list[str] = []
        self.checkpoints: list[bytes | None] = []
        self.draining = False
        self.seed_serves = True
        self.no_test = False
        self.editor_away = False
        self.fail_checkpoint: str | None = None
        self.texts: dict[str, dict[str, str]] = {"v1": dict.fromkeys(CLASSES, "start\n")}
        self.prompts: dict[str, dict[str, str]] = {"v1": {SYSTEM: "you\n", "look": "see\n"}}
        self.momentum: Callable[[WriteMomentum], str | None] = lambda _: None
        self.prompt: Callable[[EvolvePrompt], str | None] = lambda _: None
        self.asked: list[Request[object]] = []
        self.manifest = Manifest(
            run_id="r",
            seed_name="s",
            settings_sha256="",
            baseline_sha256="",
            trees_sha256="",
            current=BASE,
            best_hard=BASE,
            best_mixed=BASE,
            epoch=0,
        )
        self.edit: Callable[[Propose], str | None] = lambda _: "good\n"
        self.degraded = False
        self.garble: Callable[[Rollout], bool] = lambda _: False
        self.again: list[int] = []
        self.lose: Callable[[Rollout], bool] = lambda _: False
        self.on_step: Callable[[str], None] = lambda _: None
        self.refuse_trial = False
        self.rolled: list[Rollout] = []
        self.actor = self._build()

    def _build(self) -> TrainerActor:
        peer = {
            name: FakeAddress(name, getattr(self, f"_{name}"))
            for name in (
                "dataset",
                "rollout",
                "diagnoser",
                "evolver",
                "gate",
                "baseline",
                "ledger",
                "workspace",
            )
        }
        return TrainerActor(self.config, TrainerPeers(**peer), seed_serves=self.seed_serves)

    async def forget(self, table: str) -> None:
        """Empty a table behind the ledger's back."""
        await self.database._writer.execute(f"DELETE FROM {table}")

    async def start(self, tasks: TaskGroup, restored: bytes | None = None) -> TrainerActor:
        """A fresh incarnation."""
        self.actor = self._build()
        await self.actor.on_start(Surroundings(self, tasks, restored))
        return self.actor

    async def _dataset(self, request: Request[object]) -> Message:
        if isinstance(request, PlanEpoch):
            known = {outcome.question_id for outcome in request.known}
            assert {q.question_id for group in QUESTIONS.values() for q in group} <= known
            return EpochPlan(epoch=request.epoch, classes=tuple(map(_work, CLASSES)))
        assert isinstance(request, GetPool)
        empty = self.no_test and request.pool == "test"
        return PoolQuestions(questions=() if empty else VAL)

    async def _rollout(self, request: Request[object]) -> Message:
        assert isinstance(request, Rollout)
        self.rolled.append(request)
        qid = request.question.question_id
        if self.lose(request):
            return Missed(question_id=qid, kind="timeout", detail="lost")
        row = _outcome(request)
        await self.database.apply([Record(rows=(row,))])
        return Answered(
            question_id=qid,
            right=row.outcome == "right",
            letter="B",
            submitted="B",
            confidence=0.5,
            stop="parse_error" if self.garble(request) else "submitted",
            n_steps=2,
        )

    async def _diagnoser(self, request: Request[object]) -> Message:
        if isinstance(request, GetCasePacks):
            self.asked.append(request)
            return _packs(request)
        assert isinstance(request, Diagnose)
        self.again.append(request.again)
        return Diagnosis(
            question_id=request.question.question_id,
            error_type="mixed",
            subtype=None,
            cause="defect",
            degraded=self.degraded,
            finding="?",
        )

    async def _evolver(self, request: Request[object]) -> Message:
        if self.editor_away:
            return NoProposal(
                reason="editor_unreachable",
                detail="timeout",
                reports=(),
                editor_calls=1,
                parse_failures=0,
            )
        if not isinstance(request, Propose):
            self.asked.append(request)
            return self._slow(request)
        self.on_step(request.run_key)
        addition = self.edit(request)
        if addition is None or not request.defects:
            return _NOTHING
        return Proposal(
            candidate=_longer(request.skill, addition),
            reports=(_applied(addition),),
            notes=(),
            editor_calls=1,
            parse_failures=0,
        )

    def _slow(self, request: Request[object]) -> Message:
        if isinstance(request, WriteMomentum):
            line = self.momentum(request)
            if line is None:
                return _NOTHING
            return MomentumWritten(
                skill=_longer(request.skill, line),
                momentum=line,
                support=tuple(one.question.question_id for one in request.compared),
                editor_calls=1,
                parse_failures=0,
            )
        assert isinstance(request, EvolvePrompt)
        line = self.prompt(request)
        if line is None:
            return _NOTHING
        document = request.document
        return PromptEdited(
            document=Document(name=document.name, text=document.text + line),
            reports=(_applied(line),),
            editor_calls=1,
            parse_failures=0,
        )

    async def _gate(self, request: Request[object]) -> Message:
        if isinstance(request, RefreshLadder):
            self.happened.append(f"observe {request.epoch}")
            return LadderRefreshed(units=0)
        assert isinstance(request, Trial)
        if self.refuse_trial:
            return Refused(what="the snapshot lacks u1", remedy="draw it", details=("u1",))
        accept = "good" in request.candidate.text
        return Decision(
            verdict="accept" if accept else "reject",
            reason="endgame",
            alpha=0.2,
            n_units=4,
            evaluated=4,
            wins=4 if accept else 0,
            losses=0,
            ties=0,
            missing=0,
            e_value=1.0,
            p_gate=0.1,
            lower_bound=None,
            looks=(),
            in_sample=True,
            rollouts=4,
        )

    async def _baseline(self, request: Request[object]) -> Message:
        assert isinstance(request, SeedOutcomes)
        known = [
            KnownOutcome(question_id=q.question_id, right=False)
            for group in QUESTIONS.values()
            for q in group
        ]
        return SeedOutcomesReady(run_id="seed", outcomes=tuple(known))

    async def _ledger(self, request: Request[object]) -> Message:
        if isinstance(request, Record):
            self.happened += [
                f"row {row.TABLE} {getattr(row, 'run_key', '')}" for row in request.rows
            ]
            await self.database.apply([request])
            return Recorded(rows=len(request.rows))
        if isinstance(request, DeleteRun):
            (count,) = await self.database.apply([request])
            return Deleted(rows=count)
        if isinstance(request, Select):
            return Selected(rows=await self.database.select(request))
        assert isinstance(request, Flush)
        self.happened.append("flush")
        return Flushed()

    async def _workspace(self, request: Request[object]) -> Message:
        if isinstance(request, GetManifest):
            return self.manifest
        if isinstance(request, OpenPackage):
            skills = self.texts[request.package.skills]
            prompts = self.prompts[request.package.prompts]
            return PackageTexts(
                package=request.package,
                skills=tuple(Skill(task_type=key, text=text) for key, text in skills.items()),
                prompts=Prompts(
                    version=request.package.prompts,
                    system=prompts[SYSTEM],
                    tools=(Document(name="look", text=prompts["look"]),),
                ),
            )
        if isinstance(request, SaveSkills):
            changed = {skill.task_type: skill.text for skill in request.skills}
            return SkillsSaved(version=_version(self.texts, request.parent, changed))
        if isinstance(request, SavePrompts):
            changed = {document.name: document.text for document in request.documents}
            return PromptsSaved(version=_version(self.prompts, request.parent, changed))
        assert isinstance(request, UpdateManifest)
        self.happened.append(f"manifest {request.epoch}")
        self.manifest = msgspec.structs.replace(
            self.manifest,
            current=request.current,
            best_hard=request.best_hard,
            best_mixed=request.best_mixed,
            epoch=request.epoch,
        )
        return self.manifest


_NOTHING = NoProposal(reason="no_cases", detail="", reports=(), editor_calls=0, parse_failures=0)


def _is_right(request: Rollout) -> bool:
    said = request.skill.text + request.prompts.system
    return "good" in said and "bad" not in said


def _outcome(request: Rollout) -> OutcomeRow:
    question = request.question
    return OutcomeRow(
        run_key=request.run_key,
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        outcome="right" if _is_right(request) else "wrong",
        letter="B",
        submitted="B",
        confidence=0.5,
        stop="submitted",
        missing_kind=None,
        detail="",
        n_steps=2,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
        skill_hash=request.skill.hash,
        prompts_version=request.prompts.version,
        salt=request.salt,
    )


def _longer(skill: Skill, line: str) -> Skill:
    return Skill(task_type=skill.task_type, text=skill.text + line)


def _applied(content: str) -> EditReport:
    edit = Edit(op="append", target="", content=content, support=(), reason="")
    return EditReport(edit=edit, status="applied", detail="")


def _packs(request: GetCasePacks) -> CasePacks:
    return CasePacks(
        skills=(),
        system=SystemPack(answered=0, right=0, groups=()),
        tools=tuple(
            ToolPack(
                tool=name,
                calls=0,
                empty=0,
                graded=0,
                completeness=None,
                hallucination=None,
                failing=(),
                good=(),
            )
            for name in request.tools
        ),
        missing=0,
    )


def _version(versions: dict[str, dict[str, str]], parent: str, changed: dict[str, str]) -> str:
    texts = versions[parent] | changed
    for version, known in versions.items():
        if known == texts:
            return version
    version = f"v{len(versions) + 1}"
    versions[version] = texts
    return version


def _work(task_type: str) -> ClassWork:
    questions = QUESTIONS[task_type]
    units = tuple(
        Unit(unit_id=q.question_id, video_id=q.video_id, task_type=task_type, questions=(q,))
        for q in questions
    )
    return ClassWork(
        task_type=task_type,
        batches=(questions[:2], questions[2:]),
        ladder=units,
        in_sample=True,
    )


@asynccontextmanager
async def opened(path: Path, *assignments: str) -> AsyncIterator[tuple[House, TaskGroup]]:
    """A house on a fresh database, and a task group for its trainers."""
    database = await Database.open(path / "run.db")
    try:
        async with anyio.create_task_group() as tasks:
            yield House(database, *assignments), tasks
            tasks.cancel_scope.cancel()
    finally:
        await database.close()
