"""The gate actor: runs a candidate over the ladder, block by block, until it is decided.

It decides nothing itself: ``decide`` does. It must never let an outcome of the current snapshot
reach the order of the units, and must never resample a pair because of how it came out: only
what infrastructure lost is asked again.
"""

from __future__ import annotations

import anyio
import anyio.to_thread
import msgspec

from actors.gate.arms import Arms, arms_of
from actors.gate.blocks import answer_block, endpoint_garbles
from actors.gate.decide import Answers, LadderUnit, Rules, decide, look_of, undecided
from actors.gate.ema import fold, lookup
from actors.gate.factorial_run import (
    Desk,
    certify,
    editor_arms,
    plan_factorial,
    run_phase,
)
from actors.gate.ladder import UncoveredUnit, blind_order, build_ladder
from actors.gate.levels import alpha_of, bound_of, draws_of, stages_of
from actors.gate.looks import block_ends
from actors.gate.power import power_table
from actors.gate.state import GateState, KnownSnapshot, advance, in_force, known_difficulty
from actors.gate.telling import outage, tell
from actors.gate.verdict import IDENTICAL, decision_of, row_of, stage_of
from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address, ask_or
from protocol.base import Refused, Scope
from protocol.baseline import GetSnapshot, SnapshotReady
from protocol.documents import library_hash
from protocol.factorial import (
    Certified,
    Certify,
    EditorArms,
    EditorCoins,
    FactorialPlan,
    PhaseDone,
    PhaseStopped,
    PlanFactorial,
    RunPhase,
)
from protocol.gate import (
    Decision,
    GetPower,
    LadderRefreshed,
    PowerTable,
    RefreshLadder,
    Stage,
    Trial,
)
from protocol.ledger import Record, Select, Selected, Where, rows_of
from protocol.rollout import Answered, Missed, Rollout, out_of_budget
from protocol.rows import BaselineRow, DecisionRow, OutcomeRow
from protocol.settings import GateSettings

__all__ = ["GateActor"]


class GateActor(Actor):
    """Tests candidates; knows every unit's difficulty from earlier epochs.

    max_unreadable_share: of a block's answers; where more are no actions somebody is at fault.
    manual: the agent chooses among all skills, so that a snapshot belongs to all of them.
    evolver: renders documents for the factorial design; n_pairs: of it in flight at a time.
    """

    def __init__(
        self,
        settings: GateSettings,
        seed: int,
        baseline: Address,
        rollout: Address,
        ledger: Address,
        evolver: Address | None = None,
        *,
        max_unreadable_share: float,
        manual: bool = False,
        n_pairs: int = 32,
    ) -> None:
        self._max_unreadable = max_unreadable_share
        self._settings = settings
        self._seed = seed
        self._baseline = baseline
        self._rollout = rollout
        self._ledger = ledger
        self._evolver = evolver
        self._manual = manual
        self._state = GateState()
        self._observing = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(n_pairs)

    async def on_start(self, context: Context) -> None:
        """Take up the state from the checkpoint."""
        self._context = context
        if context.restored is not None:
            self._state = msgspec.json.decode(context.restored, type=GateState)

    def snapshot(self) -> bytes:
        """The state, as JSON."""
        return msgspec.json.encode(self._state)

    @handles(Trial)
    async def test(self, request: Trial) -> Decision | Refused:
        """Snapshot, ladder, blocks, decision; the decision is in the ledger when it returns.

        A null comparison (``Trial.null_index``) leaves no decision behind.
        """
        if not request.units:
            return Refused(
                what=f"{request.run_key}: a trial without units",
                remedy="a class without a ladder does not train; see the pre-flight table",
            )
        identical = request.candidate.text == request.current.text
        if request.null_index is not None:
            if not identical:
                raise ValueError(f"{request.run_key}: a null comparison of two different texts")
            return await self._tried(request, request.scope.epoch or 0)
        epoch, step = request.scope.epoch, request.scope.step
        if epoch is None or step is None:
            raise ValueError(f"{request.run_key}: a trial needs epoch and step in its scope")
        if identical:
            alpha, n_stages = (
                alpha_of(self._settings, len(request.units)),
                stages_of(self._settings),
            )
            decision = decision_of(request, [stage_of(IDENTICAL, alpha=alpha)], n_stages)
            read = ""
        else:
            await self._observe(request.scope, epoch - 1)  # only after a crash is there any
            tried = await self._tried(request, epoch)
            if isinstance(tried, Refused):
                return tried
            decision, read = tried, self._identity(request)
        row = row_of(request, epoch, step, decision, read)
        await self._ledger.ask(Record(scope=request.scope, rows=(row,)))
        return decision

    @handles(GetPower)
    async def power(self, request: GetPower) -> PowerTable:
        """The table of ``power_of``, off the event loop."""
        return await anyio.to_thread.run_sync(power_table, self._settings, request.ladders)

    @handles(PlanFactorial)
    async def plan_factorial(self, request: PlanFactorial) -> FactorialPlan | Refused:
        """The factorial design's schedule, fixed once."""
        return await plan_factorial(self._desk, request)

    @handles(EditorCoins)
    async def editor_coins(self, request: EditorCoins) -> EditorArms:
        """The documents of an epoch's editor draws."""
        return await editor_arms(self._desk, request)

    @handles(RunPhase)
    async def run_phase(self, request: RunPhase) -> PhaseDone | PhaseStopped | Refused:
        """A class's pairs of a phase, as far as they are not drawn."""
        return await run_phase(self._desk, request)

    @handles(Certify)
    async def certify(self, request: Certify) -> Certified:
        """The decision over all edits of the run."""
        return await certify(self._desk, request)

    @property
    def _desk(self) -> Desk:
        assert self._evolver is not None, "the factorial design is wired with an evolver"
        return Desk(
            settings=self._settings,
            seed=self._seed,
            ledger=self._ledger,
            evolver=self._evolver,
            roll=self._roll,
            limiter=self._limiter,
            draining=lambda: self._context.draining,
        )

    async def _roll(self, job: Rollout) -> Answered | Missed:
        """A rollout whose actor failed is missing; a dead house is raised."""
        return await ask_or(self._rollout, job, lambda failure: job.missed(str(failure)))

    @handles(RefreshLadder)
    async def refresh(self, request: RefreshLadder) -> LadderRefreshed:
        """Observe the epochs up to this one; a second time changes nothing (W-5)."""
        return LadderRefreshed(units=await self._observe(request.scope, request.epoch))

    async def _observe(self, scope: Scope, until: int) -> int:
        """Fold in every epoch that is not yet; returns how many units moved, over all of them.

        More than one is due only where a crash lost what was observed after the last checkpoint.
        The state changes once per epoch, when all that it depends on has been read.
        """
        moved = 0
        async with self._observing:
            while self._state.observed_epoch < until:
                epoch = self._state.observed_epoch + 1
                rows = await self._rows(scope, OutcomeRow.TABLE, ("run_key", f"e{epoch}/*"))
                outcomes = rows_of(OutcomeRow, rows)
                decided = await self._rows(scope, DecisionRow.TABLE, ("epoch", epoch))
                decisions = rows_of(DecisionRow, decided)
                snapshots, gone = advance(self._state, decisions, self._settings.fresh_after)
                retired = [row for snapshot in gone for row in await self._drawn(scope, snapshot)]
                decay = self._settings.ema_decay
                units, count = fold(self._state.units, outcomes, decay, retired)
                self._state = GateState(observed_epoch=epoch, units=units, snapshots=snapshots)
                moved += count
        return moved

    async def _drawn(self, scope: Scope, snapshot: KnownSnapshot) -> tuple[BaselineRow, ...]:
        """The draws of a snapshot."""
        selected = await self._rows(
            scope,
            BaselineRow.TABLE,
            ("task_type", snapshot.task_type),
            ("skill_hash", snapshot.skill_hash),
            ("prompts_version", snapshot.prompts_version),
            ("generation", snapshot.generation),
            ("confirms", ""),
        )
        return rows_of(BaselineRow, selected)

    async def _rows(self, scope: Scope, table: str, *where: tuple[str, str | int]) -> Selected:
        conditions = tuple(Where(column=column, value=value) for column, value in where)
        return await self._ledger.ask(Select(scope=scope, table=table, where=conditions))

    def _identity(self, request: Trial) -> str:
        """The skill's part of the snapshot's key, as the baseline store has it."""
        skill = request.current
        return library_hash(skill, request.others) if self._manual else skill.hash

    async def _tried(self, request: Trial, epoch: int) -> Decision | Refused:
        """Stage after stage, as long as each accepts."""
        first = self._first(request, epoch)
        n_stages = stages_of(self._settings)
        stages: list[Stage] = []
        while not stages or (stages[-1].verdict == "accept" and len(stages) < n_stages):
            blind = not (stages and stages[0].seed_draw)
            stage = await self._stage(arms_of(first, len(stages)), blind=blind)
            if isinstance(stage, Refused):
                return stage
            stages.append(stage)
        return decision_of(request, stages, n_stages, first.generation)

    def _first(self, request: Trial, epoch: int) -> Arms:
        """The first stage: the snapshot in force, and an order that knows nothing of it."""
        task_type, prompts = request.units[0].task_type, request.prompts.version
        known = in_force(self._state, task_type, self._identity(request), prompts)
        generation, ema = known.generation, known_difficulty(self._state, known)
        if request.null_generation is not None:
            generation, ema = request.null_generation, {}
        return Arms(
            trial=request,
            seed=self._seed,
            epoch=epoch,
            order=blind_order(request.units, self._seed, epoch, ema),
            generation=generation,
        )

    async def _stage(self, arms: Arms, *, blind: bool) -> Stage | Refused:
        """One stage, block after block. Refused: as ``_ladder``, or an outage leaves too much
        missing to decide (P1-4).

        What was answered is in the cache, so that the trial goes on from there when it is asked
        again; what no waiting mends (a broken tree) makes the verdict ``undecided`` instead, and so
        do replies that are no actions where the current skill's are none either.
        blind: nothing before this stage was chosen by a snapshot that is read.
        """
        built = await self._ladder(arms)
        if isinstance(built, Refused):
            return built
        ladder, snapshot = built
        rules = self._rules(len(ladder), blind=blind and not snapshot.seed_draw)
        blocks: list[tuple[Answers, ...]] = []
        rollouts = 0
        lost: list[Missed] = []
        ends = (0, *block_ends(len(ladder)))
        standing = decide(ladder, blocks, rules)
        while standing is None:
            index = len(blocks)
            units = arms.order[ends[index] : ends[index + 1]]
            block = await answer_block(
                self._roll, arms, index, units, self._settings.missing_retries
            )
            blocks.append(block.answers)
            rollouts += block.spent
            lost += block.missed
            tell(arms.trial.run_key, look_of(ladder, blocks), len(ladder), rules.alpha)
            if out_of_budget(block.missed):  # the operator's own limit decides nothing
                return outage(arms.trial, lost)
            standing = decide(ladder, blocks, rules)
            if await endpoint_garbles(self._roll, arms, index, units, block, self._max_unreadable):
                standing = undecided(ladder, blocks, rules, "unreadable")
        if standing.verdict == "undecided" and not all(missed.lasting for missed in lost):
            return outage(arms.trial, lost)
        return stage_of(
            standing,
            alpha=rules.alpha,
            seed_draw=snapshot.seed_draw,
            drawn=await self._paid(arms, snapshot),
            rollouts=rollouts,
        )

    async def _paid(self, arms: Arms, snapshot: SnapshotReady) -> int:
        """The rollouts that the snapshot cost this test: all of them if no other was before it.

        Counted from rows and not from what was done just now, so that a step that was killed
        after its draws were stored leaves the same decision when it is run again.
        """
        trial = arms.trial
        if trial.null_index is not None:
            return snapshot.drawn
        if arms.confirms:
            return snapshot.rollouts
        used = await self._rows(
            trial.scope,
            DecisionRow.TABLE,
            ("task_type", trial.units[0].task_type),
            ("snapshot_hash", self._identity(trial)),
            ("prompts_version", trial.prompts.version),
            ("generation", arms.generation),
        )
        others = [row for row in rows_of(DecisionRow, used) if row.run_key != trial.run_key]
        return 0 if others else snapshot.rollouts

    def _rules(self, n_units: int, *, blind: bool) -> Rules:
        alpha = alpha_of(self._settings, n_units)
        return Rules(
            alpha=alpha,
            max_missing_share=self._settings.max_missing_share,
            futility_power=self._settings.futility_power,
            harm_e=self._settings.harm_e,
            bound_alpha=bound_of(alpha, stages_of(self._settings), blind=blind),
        )

    async def _ladder(self, arms: Arms) -> tuple[tuple[LadderUnit, ...], SnapshotReady] | Refused:
        """The ordered ladder with its baseline.

        Refused: a unit is not covered (row fail-loud), or an outage kept draws away; those that
        were made are stored, and a later try goes on from them.
        """
        request = arms.trial
        snapshot = await self._baseline.ask(
            GetSnapshot(
                scope=request.scope,
                skill=request.current,
                prompts=request.prompts,
                units=request.units,
                n_draws=draws_of(self._settings, len(request.units)),
                others=request.others,
                generation=arms.generation,
                confirms=arms.confirms,
            )
        )
        if snapshot.outage:
            count = len(snapshot.missing)
            return Refused(
                what=f"{request.run_key}: the baseline of {count} questions is missing",
                remedy="mend what the reason names, then resume",
                details=(snapshot.outage,),
                passing=not snapshot.unreadable,
            )
        try:
            # records may be of any time: a solid one can only hold an accept back
            return build_ladder(arms.order, snapshot.draws, lookup(self._state.units)), snapshot
        except UncoveredUnit as error:
            return Refused(
                what=f"{request.run_key}: {error}",
                remedy="the baseline must answer for every question of the ladder",
                details=error.missing,
            )
