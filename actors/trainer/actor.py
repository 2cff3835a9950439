"""The trainer's shell: the epoch loop, its checkpoints, and where it resumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address, ask_or
from actors.trainer.epoch import Drained, EpochSkills, epoch_row, run_epoch
from actors.trainer.evaluate import evaluate, restated
from actors.trainer.factorial import claims_void, run_factorial_epoch
from actors.trainer.holdout import holdout
from actors.trainer.peers import Peers
from actors.trainer.slow import SlowPlan, Stands, slow_update
from actors.trainer.state import TrainerState, after_epoch
from protocol.base import Refused, Scope
from protocol.documents import Package, PackageTexts
from protocol.gate import RefreshLadder
from protocol.keys import evaluation_key
from protocol.ledger import Flush, Record, Select, Where, rows_of
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import DecisionRow, EpochRow, EvaluationRow
from protocol.settings import Config
from protocol.trainer import Train, TrainingEnded
from protocol.workspace import (
    GetManifest,
    OpenPackage,
    SavePrompts,
    SaveSkills,
    UpdateManifest,
)

__all__ = ["TrainerActor", "TrainerPeers"]


@dataclass(frozen=True)
class TrainerPeers:
    """The addresses that the trainer holds."""

    dataset: Address
    rollout: Address
    diagnoser: Address
    evolver: Address
    gate: Address
    baseline: Address
    ledger: Address
    workspace: Address


class TrainerActor(Actor):
    """Runs ``Train`` from wherever the checkpoint and the ledger stand.

    seed_serves: the seed's predictions are this agent's own, so that they stand for the seed
    package on test; else it is evaluated there.
    """

    def __init__(self, config: Config, addresses: TrainerPeers, *, seed_serves: bool) -> None:
        self._seed_serves = seed_serves
        self._config = config
        self._addresses = addresses
        self._state: TrainerState | None = None
        self._factorial = config.gate.design == "factorial"

    async def on_start(self, context: Context) -> None:
        """Take up the checkpointed state."""
        self._context = context
        self._log = context.log
        if context.restored is not None:
            self._state = msgspec.json.decode(context.restored, type=TrainerState)
        self._peers = Peers(
            dataset=self._addresses.dataset,
            diagnoser=self._addresses.diagnoser,
            evolver=self._addresses.evolver,
            gate=self._addresses.gate,
            baseline=self._addresses.baseline,
            ledger=self._addresses.ledger,
            workspace=self._addresses.workspace,
            roll=self._roll,
            draining=lambda: context.draining,
        )

    def snapshot(self) -> bytes | None:
        """The state, for the checkpoint."""
        return None if self._state is None else msgspec.json.encode(self._state)

    async def _roll(self, job: Rollout) -> Answered | Missed:
        """A rollout whose actor failed is missing; a dead house is not, it ends the run."""
        return await ask_or(self._addresses.rollout, job, lambda failure: job.missed(str(failure)))

    @handles(Train)
    async def train(self, request: Train) -> TrainingEnded | Refused:
        """Epochs until they are done, patience is out, or a stop is asked for."""
        state = await self._begin()
        if isinstance(state, Refused):
            return state
        trainer = self._config.trainer
        while True:
            if state.epoch >= trainer.epochs:
                return await self._end(state, "done")
            if not self._factorial and (
                state.epochs_since_best_improved >= trainer.early_stop_patience
            ):
                return await self._end(state, "early_stop")
            ended = await self._epoch(state)
            if isinstance(ended, Refused):
                return ended
            if isinstance(ended, Drained):
                return self._ended(state, "drained")
            state = ended

    async def _begin(self) -> TrainerState | Refused:
        """The state to go on from; a fresh run first evaluates the seed package on val.

        That draw of its own serves as val's baseline: diag and val were chosen with the seed's
        outcomes in view, so those must not serve twice (ALGORITHM.md section 3).
        """
        if self._state is None:
            manifest = await self._peers.workspace.ask(GetManifest())
            self._state = TrainerState(
                epoch=0,
                seed_package=manifest.current,
                current=manifest.current,
                best_hard=manifest.current,
                best_mixed=manifest.current,
                epochs_since_best_improved=0,
                observed_epoch=0,
            )
        state = self._state
        behind = await self._roll_forward(state)
        if behind is not None:
            return behind
        texts = await self._open(state.seed_package)
        if isinstance(texts, Refused):
            return texts
        row = await self._evaluate(texts, epoch=0, kind="seed")
        return row if isinstance(row, Refused) else state

    async def _roll_forward(self, state: TrainerState) -> Refused | None:
        """Bring checkpoint and ledger to the same epoch, or refuse.

        The file comes before the row, so the row may lack the last epoch: it is written. The file
        may be one behind when the previous checkpoint, made in the middle of that boundary, had
        to be used: then the boundary is done again, all its rows are there. Anything else means
        that one of the two was replaced by hand.
        """
        rows = rows_of(EpochRow, await self._peers.ledger.ask(Select(table="epochs")))
        last = max((row.epoch for row in rows), default=0)
        behind = state.epoch == last - 1 and state.observed_epoch == last
        if state.epoch == last and last > 0:
            manifest = await self._peers.workspace.ask(GetManifest())
            if manifest.epoch < last:  # killed between the row and the manifest
                await self._close_epoch(state)
        if state.epoch == last or behind:
            return None
        if state.epoch == last + 1 and await self._evaluated(state.epoch):
            await self._close_epoch(state)
            return None
        return Refused(
            what=f"checkpoint.json is at epoch {state.epoch}, run.db at epoch {last}",
            remedy=(
                "restore the file that belongs to the other (checkpoint.json.prev is the "
                "checkpoint before the last), or start a fresh workspace"
            ),
        )

    async def _evaluated(self, epoch: int) -> bool:
        """Whether the ledger holds that epoch's final pass: a fresh or foreign one does not."""
        run_key = evaluation_key(epoch, "val", "final")
        found = await self._peers.ledger.ask(
            Select(table="evaluations", where=(Where(column="run_key", value=run_key),))
        )
        return bool(rows_of(EvaluationRow, found))

    async def _epoch(self, state: TrainerState) -> TrainerState | Drained | Refused:
        epoch = state.epoch + 1
        first = await self._open(state.current)
        if isinstance(first, Refused):
            return first
        self._log.info("epoch.start", epoch=epoch, package=str(state.current))
        train = run_factorial_epoch if self._factorial else run_epoch
        trained = await train(self._peers, self._config, epoch, first)
        if isinstance(trained, Drained | Refused):
            return trained
        fast = await self._save(first, trained, epoch)
        if isinstance(fast, Refused):
            return fast
        if self._context.draining:
            return Drained()
        if self._factorial and fast.package == first.package:
            return await self._unchanged(state, epoch, first)
        stands = await self._evaluated_end(epoch, trained, first, fast)
        if isinstance(stands, Refused):
            return stands
        if self._context.draining:
            return Drained()
        return await self._boundary(state, stands.package)

    async def _unchanged(
        self, state: TrainerState, epoch: int, texts: PackageTexts
    ) -> TrainerState | Refused:
        """The end of an epoch that adopted nothing: what is known of the package stands."""
        row = await self._evaluate(texts, epoch=0, kind="seed")  # made before the first epoch
        if isinstance(row, Refused):
            return row
        final = restated(msgspec.structs.replace(row, epoch=epoch), "final")
        await self._peers.ledger.ask(Record(scope=Scope(epoch=epoch), rows=(final,)))
        return await self._boundary(state, texts.package)

    async def _evaluated_end(
        self, epoch: int, trained: EpochSkills, first: PackageTexts, fast: PackageTexts
    ) -> Stands | Refused:
        """``fast``, the slow update, and the epoch's one ``final`` row (P2-5)."""
        row = await self._evaluate(fast, epoch=epoch, kind="fast")
        if isinstance(row, Refused):
            return row
        plan = SlowPlan(
            config=self._config,
            epoch=epoch,
            works=trained.works,
            first=first,
            fast=fast,
            fast_row=row,
        )
        stands = await slow_update(self._peers, plan)
        if isinstance(stands, Refused):
            return stands
        final = restated(stands.row, "final")
        await self._peers.ledger.ask(Record(scope=Scope(epoch=epoch), rows=(final,)))
        return stands

    async def _open(self, package: Package) -> PackageTexts | Refused:
        return await self._peers.workspace.ask(OpenPackage(package=package))

    async def _save(
        self, texts: PackageTexts, trained: EpochSkills, epoch: int
    ) -> PackageTexts | Refused:
        """New versions of skills and of prompts where any changed, else the same package."""
        scope, trigger, package = Scope(epoch=epoch), f"epoch-{epoch}", texts.package
        changed = tuple(
            skill for skill in trained.skills if texts.skill_for(skill.task_type).text != skill.text
        )
        if changed:
            skills = await self._peers.workspace.ask(
                SaveSkills(scope=scope, parent=package.skills, skills=changed, trigger=trigger)
            )
            package = Package(skills=skills.version, prompts=package.prompts)
        if trained.prompts:
            prompts = await self._peers.workspace.ask(
                SavePrompts(
                    scope=scope, parent=package.prompts, documents=trained.prompts, trigger=trigger
                )
            )
            package = Package(skills=package.skills, prompts=prompts.version)
        return texts if package == texts.package else await self._open(package)

    async def _evaluate(
        self, texts: PackageTexts, *, epoch: int, kind: str
    ) -> EvaluationRow | Refused:
        return await evaluate(
            self._peers,
            texts,
            seed=self._config.run.seed,
            epoch=epoch,
            pool="val",
            kind=kind,
            settings=self._config.trainer,
        )

    async def _observe(self, state: TrainerState, epoch: int) -> None:
        """Let the gate observe the epoch, and checkpoint at once (row W-5).

        A crash after this finds ``gate_epoch_observed`` and the gate's pools in one file.
        """
        if state.observed_epoch >= epoch:
            return
        if not self._factorial:  # which has no ladder
            await self._peers.gate.ask(RefreshLadder(scope=Scope(epoch=epoch), epoch=epoch))
        self._state = msgspec.structs.replace(state, observed_epoch=epoch)
        await self._context.checkpoint(f"epoch {epoch} observed")

    async def _boundary(self, state: TrainerState, current: Package) -> TrainerState | Refused:
        """Holdout, observation, ledger flushed, checkpoint, epoch row, manifest: in this order."""
        evaluations = await self._peers.ledger.ask(Select(table="evaluations"))
        following = after_epoch(state, current, rows_of(EvaluationRow, evaluations))
        refused = await self._holdout(following)
        if refused is not None:
            return refused
        await self._observe(state, following.epoch)
        await self._peers.ledger.ask(Flush())
        self._state = following
        await self._context.checkpoint(f"epoch {following.epoch}")
        await self._close_epoch(following)
        return following

    async def _close_epoch(self, state: TrainerState) -> None:
        decisions = await self._peers.ledger.ask(
            Select(table="decisions", where=(Where(column="epoch", value=state.epoch),))
        )
        row = epoch_row(
            state.epoch,
            state.current,
            rows_of(DecisionRow, decisions),
            state.epochs_since_best_improved,
        )
        await self._peers.ledger.ask(Record(scope=Scope(epoch=state.epoch), rows=(row,)))
        await self._peers.workspace.ask(
            UpdateManifest(
                scope=Scope(epoch=state.epoch),
                current=state.current,
                best_hard=state.best_hard,
                best_mixed=state.best_mixed,
                epoch=state.epoch,
            )
        )
        self._log.info(
            "epoch.done",
            epoch=state.epoch,
            package=str(state.current),
            best=str(state.best_hard),
            tests=row.tests,
            accepted=row.accepted,
            sum_alpha=row.sum_alpha,
            seed_draws=row.seed_draws,
            epochs_since_best_improved=state.epochs_since_best_improved,
        )

    async def _end(
        self, state: TrainerState, status: Literal["done", "early_stop"]
    ) -> TrainingEnded | Refused:
        """The last epoch's holdout once more: it is lacking if it was only asked for on resume."""
        refused = await self._holdout(state)
        if refused is not None:
            return refused
        await self._peers.ledger.ask(Flush())
        void = self._factorial and await claims_void(self._peers)
        return msgspec.structs.replace(self._ended(state, status), claims_void=void)

    async def _holdout(self, state: TrainerState) -> Refused | None:
        undecided = self._factorial and state.epoch < self._config.trainer.epochs
        if undecided or not self._config.trainer.run_holdout_eval:
            return None
        return await holdout(self._peers, self._config, state, seed_serves=self._seed_serves)

    def _ended(
        self, state: TrainerState, status: Literal["done", "early_stop", "drained"]
    ) -> TrainingEnded:
        return TrainingEnded(
            status=status,
            epochs=state.epoch,
            seed_package=state.seed_package,
            best_hard=state.best_hard,
            best_mixed=state.best_mixed,
        )
