"""The baseline actor: the control arm, drawn once per skill and kept in the ledger.

It must never resample what is there, never give its draws an epoch's salt, and never write a
result that infrastructure lost (rows P1-1a, P1-4). The seed's file is only read (row P2-2).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from actors.baseline.seed_db import read_predictions, read_run_id
from actors.baseline.snapshot import (
    SnapshotKey,
    WantedDraw,
    assemble,
    from_seed,
    incomplete,
    storable,
    wanted_draws,
)
from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address, ask_or
from protocol.base import Scope
from protocol.baseline import GetSnapshot, SeedOutcomes, SeedOutcomesReady, SnapshotReady
from protocol.dataset import KnownOutcome
from protocol.documents import PackageTexts, Skill, library_hash
from protocol.keys import baseline_key, baseline_salt, snapshot_key
from protocol.ledger import Record, Select, Where, rows_of
from protocol.redraws import RedrawRow, redrawn
from protocol.rollout import Answered, Missed, Rollout, mostly_unreadable, unreadable
from protocol.rows import BaselineRow
from protocol.settings import GateSettings

__all__ = ["BaselineActor"]


class BaselineActor(Actor):
    """Owns the snapshots.

    seed: the run's. seed_package: the package whose predictions baseline_path holds; its skill
    and prompts version tell which snapshot may begin with them. seed_serves: they were made by
    this run's own agent and may serve as a draw. manual: the agent chooses among all skills, so
    that a snapshot belongs to all of them and not to its class's alone. max_unreadable_share: of a
    snapshot's draws; where more are no actions the endpoint is at fault, and none is kept.
    """

    def __init__(
        self,
        settings: GateSettings,
        seed: int,
        seed_package: PackageTexts,
        baseline_path: Path,
        rollout: Address,
        ledger: Address,
        *,
        seed_serves: bool,
        max_unreadable_share: float,
        manual: bool = False,
    ) -> None:
        self._max_unreadable = max_unreadable_share
        self._seed_serves = seed_serves
        self._manual = manual
        self._settings = settings
        self._seed = seed
        self._seed_package = seed_package
        self._path = baseline_path
        self._rollout = rollout
        self._ledger = ledger
        self._run_id: str
        self._predictions: dict[str, bool]
        self._drawing: dict[SnapshotKey, tuple[anyio.Lock, int]] = {}

    async def on_start(self, context: Context) -> None:
        """Read the seed's predictions. Raises SeedBaselineError or FileNotFoundError."""
        self._run_id = await anyio.to_thread.run_sync(read_run_id, self._path)
        rows = await anyio.to_thread.run_sync(read_predictions, self._path)
        self._predictions = {row.question_id: row.right for row in rows}

    @handles(SeedOutcomes)
    async def seed_outcomes(self, request: SeedOutcomes) -> SeedOutcomesReady:
        """The predictions, ordered by question id."""
        return SeedOutcomesReady(
            run_id=self._run_id,
            outcomes=tuple(
                KnownOutcome(question_id=question_id, right=right)
                for question_id, right in sorted(self._predictions.items())
            ),
        )

    @handles(GetSnapshot)
    async def get_snapshot(self, request: GetSnapshot) -> SnapshotReady:
        """What is there, completed by what is not; two asks for one snapshot draw it once.

        Raises ValueError if the units are not of one class.
        """
        classes = sorted({unit.task_type for unit in request.units})
        if len(classes) != 1:
            raise ValueError(f"a snapshot is of one class, asked for {classes}")
        key = SnapshotKey(
            task_type=classes[0],
            skill_hash=self._hash(request.skill, request.others),
            prompts_version=request.prompts.version,
            generation=request.generation,
            confirms=request.confirms,
        )
        async with self._alone(key):
            return await self._complete(request, key)

    @asynccontextmanager
    async def _alone(self, key: SnapshotKey) -> AsyncIterator[None]:
        """One at a time per snapshot: the second finds what the first has drawn."""
        lock, waiting = self._drawing.get(key, (anyio.Lock(), 0))
        self._drawing[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._drawing[key]
            if waiting == 1:
                del self._drawing[key]
            else:
                self._drawing[key] = (lock, waiting - 1)

    async def _complete(self, request: GetSnapshot, key: SnapshotKey) -> SnapshotReady:
        rows = list(await self._stored(request.scope, key))
        wanted = wanted_draws(request.units, rows, request.n_draws)
        if self._is_seed(key):
            known = from_seed(key, wanted, self._predictions)
            await self._keep(request.scope, known)
            rows.extend(known)
            wanted = wanted_draws(request.units, rows, request.n_draws)
        name = _name(key)
        again = await self._refused(request.scope, name) if wanted else 0
        drawn = 0
        results: dict[tuple[str, int], tuple[WantedDraw, Answered | Missed]] = {}
        for _ in range(1 + self._settings.missing_retries):
            if not wanted:
                break
            replies = await self._draw(request, key, wanted, again)
            drawn += len(replies)
            for draw, reply in zip(wanted, replies, strict=True):
                results[draw.question.question_id, draw.draw] = (draw, reply)
            wanted = tuple(d for d, r in zip(wanted, replies, strict=True) if isinstance(r, Missed))
        garbled = self._garbled([reply for _, reply in results.values()])
        if garbled:  # the cache has these answers: the next try must not get them again
            refused = RedrawRow(pass_key=name, number=again + 1, what=garbled)
            await self._ledger.ask(Record(scope=request.scope, rows=(refused,)))
        kept = () if garbled else storable(key, list(results.values()))
        await self._keep(request.scope, kept)
        draws = assemble(request.units, [*rows, *kept], request.n_draws)
        asked = {question.question_id for unit in request.units for question in unit.questions}
        lost = [reply for _, reply in results.values() if isinstance(reply, Missed)]
        passing = [f"{reply.kind}: {reply.detail}" for reply in lost if not reply.lasting]
        return SnapshotReady(
            draws=draws,
            drawn=drawn,
            missing=incomplete(draws, request.n_draws),
            outage=garbled or (passing[0] if passing else ""),
            unreadable=bool(garbled),
            seed_draw=any(row.source == "seed" and row.question_id in asked for row in rows),
            rollouts=sum(
                row.source == "rollout" and row.question_id in asked for row in [*rows, *kept]
            ),
        )

    async def _refused(self, scope: Scope, name: str) -> int:
        """How often the snapshot's draws were refused for what they were."""
        where = (Where(column="pass_key", value=name),)
        found = await self._ledger.ask(Select(scope=scope, table=RedrawRow.TABLE, where=where))
        return len(rows_of(RedrawRow, found))

    def _garbled(self, replies: Sequence[Answered | Missed]) -> str:
        """Why none of these draws may be kept; empty: they may (row P1-4)."""
        if not mostly_unreadable(replies, self._max_unreadable):
            return ""
        return (
            f"{unreadable(replies)} of {len(replies)} answers could not be read: "
            "the agent's replies are no actions"
        )

    def _is_seed(self, key: SnapshotKey) -> bool:
        """Whether this is the first snapshot of what made the predictions: skill and prompts.

        A later one exists to be independent of everything that was seen before.
        """
        seed = self._seed_package
        skill = seed.skill_for(key.task_type)
        return (
            self._seed_serves
            and key.first
            and key.skill_hash == self._hash(skill, seed.others(skill))
            and key.prompts_version == seed.prompts.version
        )

    def _hash(self, skill: Skill, others: Sequence[Skill]) -> str:
        return library_hash(skill, others) if self._manual else skill.hash

    async def _stored(self, scope: Scope, key: SnapshotKey) -> tuple[BaselineRow, ...]:
        selected = await self._ledger.ask(
            Select(
                scope=scope,
                table=BaselineRow.TABLE,
                where=(
                    Where(column="task_type", value=key.task_type),
                    Where(column="skill_hash", value=key.skill_hash),
                    Where(column="prompts_version", value=key.prompts_version),
                    Where(column="generation", value=key.generation),
                    Where(column="confirms", value=key.confirms),
                ),
            )
        )
        return rows_of(BaselineRow, selected)

    async def _keep(self, scope: Scope, rows: tuple[BaselineRow, ...]) -> None:
        if rows:
            await self._ledger.ask(Record(scope=scope, rows=rows))

    async def _draw(
        self, request: GetSnapshot, key: SnapshotKey, wanted: Sequence[WantedDraw], again: int
    ) -> list[Answered | Missed]:
        """Rollouts side by side; replies in the order wanted."""
        replies: dict[int, Answered | Missed] = {}

        async def one(position: int, draw: WantedDraw) -> None:
            job = Rollout(
                scope=Scope(
                    epoch=request.scope.epoch,
                    step=request.scope.step,
                    task_type=key.task_type,
                    question_id=draw.question.question_id,
                ),
                run_key=baseline_key(
                    key.task_type,
                    key.skill_hash,
                    key.prompts_version,
                    draw.draw,
                    key.generation,
                    key.confirms,
                ),
                question=draw.question,
                skill=request.skill,
                prompts=request.prompts,
                salt=redrawn(
                    baseline_salt(self._seed, draw.draw, key.generation, key.confirms), again
                ),
                others=request.others,
            )
            replies[position] = await ask_or(
                self._rollout, job, lambda failure: job.missed(str(failure))
            )

        async with anyio.create_task_group() as tasks:
            for position, draw in enumerate(wanted):
                tasks.start_soon(one, position, draw)
        return [replies[position] for position in range(len(wanted))]


def _name(key: SnapshotKey) -> str:
    return snapshot_key(
        key.task_type, key.skill_hash, key.prompts_version, key.generation, key.confirms
    )
