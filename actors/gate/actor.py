"""The gate actor: runs a candidate over the ladder, block by block, until it is decided.

It decides nothing itself: ``decide`` does. It must never let an outcome of the current snapshot
reach the order of the units, and must never resample a pair because of how it came out: only
what infrastructure lost is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.to_thread
import msgspec

from actors.gate.decide import Answers, LadderUnit, Rules, Standing, decide
from actors.gate.ema import UnitEma, fold, lookup
from actors.gate.ladder import UncoveredUnit, blind_order, build_ladder
from actors.gate.levels import alpha_of, draws_of
from actors.gate.looks import block_ends
from actors.gate.power import power_of
from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address, ask_or
from protocol.base import Refused, Scope
from protocol.baseline import GetSnapshot
from protocol.dataset import Question, Unit
from protocol.gate import (
    Decision,
    GetPower,
    LadderRefreshed,
    PowerTable,
    RefreshLadder,
    Trial,
)
from protocol.keys import candidate_salt
from protocol.ledger import DecisionRow, OutcomeRow, Record, Select, Where, rows_of
from protocol.rollout import Answered, Missed, Rollout, out_of_budget, reasons_of
from protocol.settings import GateSettings

__all__ = ["GateActor", "GateState"]


class GateState(msgspec.Struct, frozen=True, kw_only=True):
    """What the checkpoint keeps. observed_epoch: the last one folded into the EMA (row W-5)."""

    observed_epoch: int = 0
    units: tuple[UnitEma, ...] = ()


class GateActor(Actor):
    """Tests candidates; knows every unit's difficulty from earlier epochs.

    Raises ValueError for the profile ``audit``, which is not available yet.
    """

    def __init__(
        self,
        settings: GateSettings,
        seed: int,
        baseline: Address,
        rollout: Address,
        ledger: Address,
    ) -> None:
        if settings.profile == "audit":
            raise ValueError(
                "gate.profile: audit is not available yet (its second stage needs fresh draws "
                "of both arms); use balanced or growth"
            )
        self._settings = settings
        self._seed = seed
        self._baseline = baseline
        self._rollout = rollout
        self._ledger = ledger
        self._state = GateState()
        self._refreshing = anyio.Lock()

    async def on_start(self, context: Context) -> None:
        """Take up the EMA from the checkpoint."""
        if context.restored is not None:
            self._state = msgspec.json.decode(context.restored, type=GateState)

    def snapshot(self) -> bytes:
        """EMA and observed epoch, as JSON."""
        return msgspec.json.encode(self._state)

    @handles(Trial)
    async def test(self, request: Trial) -> Decision | Refused:
        """Snapshot, ladder, blocks, decision; the decision is in the ledger when it returns."""
        epoch, step = request.scope.epoch, request.scope.step
        if epoch is None or step is None:
            raise ValueError(f"{request.run_key}: a trial needs epoch and step in its scope")
        if not request.units:
            return Refused(
                what=f"{request.run_key}: a trial without units",
                remedy="a class without a ladder does not train; see the pre-flight table",
            )
        if request.candidate.text == request.current.text:
            decision = self._identical(request)
        else:
            built = await self._ladder(request, epoch)
            if isinstance(built, Refused):
                return built
            tried = await self._run(request, epoch, *built)
            if isinstance(tried, Refused):
                return tried
            decision = tried
        await self._ledger.ask(
            Record(scope=request.scope, rows=(_row(request, epoch, step, decision),))
        )
        return decision

    @handles(GetPower)
    async def power(self, request: GetPower) -> PowerTable:
        """The table of ``power_of``, off the event loop."""
        classes = [
            await anyio.to_thread.run_sync(
                power_of,
                ladder.task_type,
                ladder.n_units,
                ladder.n_wrong,
                alpha_of(self._settings, ladder.n_units),
                draws_of(self._settings, ladder.n_units),
            )
            for ladder in request.ladders
        ]
        return PowerTable(classes=tuple(classes))

    @handles(RefreshLadder)
    async def refresh(self, request: RefreshLadder) -> LadderRefreshed:
        """Fold an epoch's candidate arm into the EMA; a second time changes nothing (W-5)."""
        async with self._refreshing:
            if request.epoch <= self._state.observed_epoch:
                return LadderRefreshed(units=0)
            selected = await self._ledger.ask(
                Select(
                    scope=request.scope,
                    table=OutcomeRow.TABLE,
                    where=(Where(column="run_key", value=f"e{request.epoch}/*"),),
                )
            )
            rows = rows_of(OutcomeRow, selected)
            units, moved = fold(self._state.units, rows, self._settings.ema_decay)
            self._state = GateState(observed_epoch=request.epoch, units=units)
            return LadderRefreshed(units=moved)

    async def _ladder(
        self, request: Trial, epoch: int
    ) -> tuple[tuple[LadderUnit, ...], tuple[Unit, ...]] | Refused:
        """The ordered ladder with its baseline.

        Refused: a unit is not covered (row fail-loud), or an outage kept draws away; those that
        were made are stored, and a later try goes on from them.
        """
        ema = lookup(self._state.units)
        ordered = blind_order(request.units, self._seed, epoch, ema)
        snapshot = await self._baseline.ask(
            GetSnapshot(
                scope=request.scope,
                skill=request.current,
                prompts=request.prompts,
                units=request.units,
                n_draws=draws_of(self._settings, len(request.units)),
                others=request.others,
            )
        )
        if snapshot.outage:
            count = len(snapshot.missing)
            return Refused(
                what=f"{request.run_key}: the baseline of {count} questions is missing",
                remedy="mend what the reason names, then resume",
                details=(snapshot.outage,),
                passing=True,
            )
        try:
            return build_ladder(ordered, snapshot.draws, ema), ordered
        except UncoveredUnit as error:
            return Refused(
                what=f"{request.run_key}: {error}",
                remedy="the baseline must answer for every question of the ladder",
                details=error.missing,
            )

    async def _run(
        self,
        request: Trial,
        epoch: int,
        ladder: Sequence[LadderUnit],
        ordered: Sequence[Unit],
    ) -> Decision | Refused:
        """Block after block. Refused: an outage leaves too much missing to decide (P1-4).

        What was answered is in the cache, so that the trial goes on from there when it is asked
        again; what no waiting mends (a broken tree) makes the verdict ``undecided`` instead.
        """
        alpha = alpha_of(self._settings, len(ladder))
        rules = Rules(
            alpha=alpha,
            max_missing_share=self._settings.max_missing_share,
            futility_power=self._settings.futility_power,
            harm_e=self._settings.harm_e,
        )
        blocks: list[tuple[Answers, ...]] = []
        rollouts = 0
        lost: list[Missed] = []
        ends = (0, *block_ends(len(ladder)))
        standing = decide(ladder, blocks, rules)
        while standing is None:
            index = len(blocks)
            units = ordered[ends[index] : ends[index + 1]]
            answers, spent, missed = await self._block(request, epoch, index, units)
            blocks.append(answers)
            rollouts += spent
            lost += missed
            if out_of_budget(missed):  # the operator's own limit: what it cut off decides nothing
                return _outage(request, lost)
            standing = decide(ladder, blocks, rules)
        if standing.verdict == "undecided" and not all(missed.lasting for missed in lost):
            return _outage(request, lost)
        return _decision(request, standing, alpha, len(ladder), rollouts)

    async def _block(
        self, request: Trial, epoch: int, index: int, units: Sequence[Unit]
    ) -> tuple[tuple[Answers, ...], int, list[Missed]]:
        """The candidate on a block, all questions side by side; the missing again.

        Returns the answers, how many rollouts were asked, and what stayed missing.
        """
        salt = candidate_salt(self._seed, epoch, units[0].task_type, index, request.candidate.hash)
        right: dict[str, bool] = {}
        wanted = [question for unit in units for question in unit.questions]
        spent = 0
        missed: list[Missed] = []
        for _ in range(1 + self._settings.missing_retries):
            replies = await self._answer(request, f"{request.run_key}/gate/b{index}", salt, wanted)
            spent += len(replies)
            right |= {r.question_id: r.right for r in replies if isinstance(r, Answered)}
            missed = [reply for reply in replies if isinstance(reply, Missed)]
            wanted = [question for question in wanted if question.question_id not in right]
            if not wanted:
                break
        answers = tuple(
            tuple(right.get(question.question_id) for question in unit.questions) for unit in units
        )
        return answers, spent, missed

    async def _answer(
        self, request: Trial, run_key: str, salt: str, questions: Sequence[Question]
    ) -> list[Answered | Missed]:
        """Rollouts of the candidate side by side, replies in the questions' order."""
        replies: dict[int, Answered | Missed] = {}

        async def one(position: int, question: Question) -> None:
            job = Rollout(
                scope=Scope(
                    epoch=request.scope.epoch,
                    step=request.scope.step,
                    task_type=question.task_type,
                    question_id=question.question_id,
                ),
                run_key=run_key,
                question=question,
                skill=request.candidate,
                prompts=request.prompts,
                salt=salt,
                others=request.others,
            )
            replies[position] = await ask_or(
                self._rollout, job, lambda failure: job.missed(str(failure))
            )

        async with anyio.create_task_group() as tasks:
            for position, question in enumerate(questions):
                tasks.start_soon(one, position, question)
        return [replies[position] for position in range(len(questions))]

    def _identical(self, request: Trial) -> Decision:
        """A candidate that is the current text has nothing to test."""
        nothing = Standing(
            verdict="reject",
            reason="identical",
            looks=(),
            evaluated=0,
            wins=0,
            losses=0,
            ties=0,
            missing=0,
            e_value=1.0,
            p_gate=1.0,
            lower_bound=None,
        )
        n_units = len(request.units)
        return _decision(request, nothing, alpha_of(self._settings, n_units), n_units, 0)


def _outage(request: Trial, lost: Sequence[Missed]) -> Refused:
    return Refused(
        what=f"{request.run_key}: {len(lost)} questions of the ladder stayed missing",
        remedy="mend what the reasons name, then resume; what was answered is in the cache",
        details=reasons_of(lost),
        passing=True,
    )


def _decision(
    request: Trial, standing: Standing, alpha: float, n_units: int, rollouts: int
) -> Decision:
    return Decision(
        verdict=standing.verdict,
        reason=standing.reason,
        alpha=alpha,
        n_units=n_units,
        evaluated=standing.evaluated,
        wins=standing.wins,
        losses=standing.losses,
        ties=standing.ties,
        missing=standing.missing,
        e_value=standing.e_value,
        p_gate=standing.p_gate,
        lower_bound=standing.lower_bound,
        looks=standing.looks,
        in_sample=request.in_sample,
        rollouts=rollouts,
    )


def _row(request: Trial, epoch: int, step: int, decision: Decision) -> DecisionRow:
    return DecisionRow(
        run_key=request.run_key,
        epoch=epoch,
        step=step,
        task_type=request.units[0].task_type,
        current_hash=request.current.hash,
        candidate_hash=request.candidate.hash,
        verdict=decision.verdict,
        reason=decision.reason,
        alpha=decision.alpha,
        n_units=decision.n_units,
        evaluated=decision.evaluated,
        wins=decision.wins,
        losses=decision.losses,
        ties=decision.ties,
        missing=decision.missing,
        e_value=decision.e_value,
        p_gate=decision.p_gate,
        lower_bound=decision.lower_bound,
        looks=msgspec.json.encode(decision.looks).decode(),
        in_sample=decision.in_sample,
        rollouts=decision.rollouts,
    )
