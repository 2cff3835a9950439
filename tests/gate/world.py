"""The real gate and the real baseline store on a ledger in memory, with rollouts that are fated.

What a rollout answers follows from (question, skill, prompts, salt) alone, as it does behind a
cache: asked again it is the same answer, and ``World.drawn`` shows how often it was drawn anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio.lowlevel
import msgspec

from actors.baseline.actor import BaselineActor
from actors.gate.actor import GateActor
from actors.gate.state import GateState
from protocol.base import Refused, Request, Scope
from protocol.dataset import Question, Unit
from protocol.documents import Package, PackageTexts, Prompts, Skill
from protocol.gate import Decision, RefreshLadder, Trial
from protocol.keys import step_key
from protocol.ledger import Deleted, DeleteRun, Record, Recorded, Select, Selected
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import AnyRow, BaselineRow, DecisionRow, OutcomeRow
from protocol.settings import GateSettings
from tests.support.fakes import FakeAddress

__all__ = [
    "CLASS",
    "PROMPTS",
    "SEED_SKILL",
    "SETTINGS",
    "Dying",
    "World",
    "outcome_row",
    "units_of",
]

CLASS = "Counting Problem"
SEED_SKILL = Skill(task_type=CLASS, text="of the seed")
PROMPTS = Prompts(version="v1", system="s", tools=())
SETTINGS = GateSettings(
    seed_draw=True,
    profile="balanced",
    alpha_small=0.2,
    alpha_large=0.1,
    small_units=24,
    draws_small=1,
    draws_large=1,
    ema_decay=0.7,
    max_missing_share=0.05,
    futility_power=0.1,
    harm_e=10.0,
    missing_retries=2,
    fresh_after=4,
)

R = TypeVar("R", bound=AnyRow)
Truth = Callable[[Rollout], bool | float | None]
"""Whether it is right: surely, with a probability, or None where infrastructure loses it."""


def units_of(n_units: int, task_type: str = CLASS) -> tuple[Unit, ...]:
    """One question a unit, one unit a video."""
    return tuple(
        Unit(
            unit_id=f"{task_type}/v{i}",
            video_id=f"v{i}",
            task_type=task_type,
            questions=(
                Question(
                    question_id=f"v{i}-0",
                    video_id=f"v{i}",
                    task_type=task_type,
                    question="How many?",
                    options=("1", "2", "3", "4"),
                    answer="A",
                ),
            ),
        )
        for i in range(n_units)
    )


def outcome_row(request: Rollout, right: bool) -> OutcomeRow:
    """As a rollout leaves it."""
    return OutcomeRow(
        run_key=request.run_key,
        question_id=request.question.question_id,
        video_id=request.question.video_id,
        task_type=request.question.task_type,
        outcome="right" if right else "wrong",
        letter="A",
        submitted="A",
        confidence=0.5,
        stop="submitted",
        missing_kind=None,
        detail="",
        n_steps=1,
        prompt_tokens=1,
        completion_tokens=1,
        seconds=0.1,
        skill_hash=request.skill.hash,
        prompts_version=request.prompts.version,
        salt=request.salt,
    )


class World:
    """A run's processes may come and go; ledger, cache and checkpoint stay.

    seeded: the seed's predictions by question id; empty: they do not serve.
    """

    def __init__(
        self,
        truth: Truth,
        settings: GateSettings = SETTINGS,
        *,
        seeded: dict[str, bool] | None = None,
        manual: bool = False,
    ) -> None:
        self.truth = truth
        self.settings = settings
        self.seeded = seeded or {}
        self.manual = manual
        self.rows: dict[tuple[object, ...], AnyRow] = {}
        self.answers: dict[tuple[str, str, str, str], bool] = {}
        self.drawn: Counter[tuple[str, str, str, str]] = Counter()
        self.rolled: list[Rollout] = []
        self.checkpoint = GateState()
        self.before: Callable[[str], None] = lambda event: None
        self.start()

    def start(self) -> None:
        """A fresh process: actors from the checkpoint."""
        rollout = FakeAddress("rollout", self._roll)
        ledger = FakeAddress("ledger", self._ledger)
        package = PackageTexts(
            package=Package(skills="v1", prompts="v1"), skills=(SEED_SKILL,), prompts=PROMPTS
        )
        self.store = BaselineActor(
            self.settings,
            7,
            package,
            Path("unread"),
            rollout,
            ledger,
            seed_serves=bool(self.seeded),
            manual=self.manual,
            max_unreadable_share=0.5,
        )
        self.store._predictions = dict(self.seeded)
        baseline = FakeAddress("baseline", self.store.get_snapshot)  # type: ignore[arg-type]
        self.gate = GateActor(
            self.settings,
            7,
            baseline,
            rollout,
            ledger,
            manual=self.manual,
            max_unreadable_share=0.5,
        )
        self.gate._state = self.checkpoint

    @property
    def state(self) -> GateState:
        """The gate's."""
        return msgspec.json.decode(self.gate.snapshot(), type=GateState)

    async def trial(
        self,
        text: str,
        *,
        current: Skill = SEED_SKILL,
        epoch: int = 1,
        step: int = 1,
        n_units: int = 12,
        prompts: Prompts = PROMPTS,
        others: tuple[Skill, ...] = (),
    ) -> Decision | Refused:
        """A candidate with this text; a step that runs again first deletes its rows."""
        key = step_key(epoch, current.task_type, step)
        await self._ledger(DeleteRun(run_key=key))
        return await self.gate.test(
            Trial(
                scope=Scope(epoch=epoch, step=step, task_type=current.task_type),
                run_key=key,
                current=current,
                candidate=Skill(task_type=current.task_type, text=text),
                prompts=prompts,
                units=units_of(n_units, current.task_type),
                in_sample=False,
                others=others,
            )
        )

    async def decided(self, text: str, **where: object) -> Decision:
        """A trial that is not refused; arguments as of ``trial``."""
        decision = await self.trial(text, **where)  # type: ignore[arg-type]
        assert isinstance(decision, Decision), decision
        return decision

    async def end_epoch(self, epoch: int) -> int:
        """Observe it, then checkpoint; returns the units moved."""
        refreshed = await self.gate.refresh(RefreshLadder(epoch=epoch))
        self.checkpoint = self.state
        return refreshed.units

    def of(self, kind: type[R]) -> list[R]:
        """The ledger's rows of a table, by key."""
        return [row for _, row in sorted(self.rows.items(), key=str) if isinstance(row, kind)]

    def decisions(self) -> list[DecisionRow]:
        """Their rows."""
        return self.of(DecisionRow)

    def snapshot(self, generation: int = 0, confirms: str = "") -> list[BaselineRow]:
        """The rows of one snapshot of any skill."""
        rows = self.of(BaselineRow)
        return [r for r in rows if (r.generation, r.confirms) == (generation, confirms)]

    async def _roll(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        self.before("rollout")
        self.rolled.append(request)
        question_id = request.question.question_id
        key = (question_id, request.skill.hash, request.prompts.version, request.salt)
        if key not in self.answers:
            fate = self.truth(request)
            if fate is None:
                return Missed(question_id=question_id, kind="server_error", detail="")
            luck = int.from_bytes(hashlib.sha256("|".join(key).encode()).digest()[:8], "big")
            self.drawn[key] += 1
            self.answers[key] = luck / 2**64 < fate
        right = self.answers[key]
        await self._ledger(Record(rows=(outcome_row(request, right),)))
        return Answered(
            question_id=question_id,
            right=right,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            n_steps=1,
        )

    async def _ledger(self, request: Request[object]) -> object:
        self.before(type(request).__name__)
        await anyio.lowlevel.checkpoint()
        if isinstance(request, Record):
            for row in request.rows:
                self.rows[row.TABLE, *(getattr(row, name) for name in row.KEY)] = row
            return Recorded(rows=len(request.rows))
        if isinstance(request, DeleteRun):
            gone = [key for key, row in self.rows.items() if _lies_under(row, request.run_key)]
            for key in gone:
                del self.rows[key]
            return Deleted(rows=len(gone))
        assert isinstance(request, Select)
        return Selected(
            rows=tuple(
                row
                for _, row in sorted(self.rows.items(), key=str)
                if request.table == row.TABLE
                and all(_meets(row, where.column, where.value) for where in request.where)
            )
        )


class _Killed(BaseException):
    """The process is gone: nothing catches it."""


class Dying:
    """Within, the process dies at its n-th event (from 0)."""

    def __init__(self, world: World, nth: int) -> None:
        self._world = world
        self._left = nth

    def __enter__(self) -> None:
        self._world.before = self._event

    def _event(self, kind: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Killed(kind)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self._world.before = lambda event: None
        assert self._left < 0, "it did not come so far"
        if isinstance(error, BaseExceptionGroup):
            return error.split(_Killed)[1] is None
        return isinstance(error, _Killed)


def _lies_under(row: AnyRow, path: str) -> bool:
    key = getattr(row, "run_key", None)
    return isinstance(key, str) and (key == path or key.startswith(f"{path}/"))


def _meets(row: AnyRow, column: str, value: object) -> bool:
    held: object = getattr(row, column)
    if isinstance(value, str) and value.endswith("/*"):
        return isinstance(held, str) and held.startswith(value[:-1])
    return held == value
