"""An epoch under the factorial gate: editor draws, new edits, pairs; after the last, the decision.

Every class's base document stays what it was until the run decides. Only units of the design fold
are ever answered here; what the gate draws comes back as counts of pairs, and nothing of how an
edit fares reaches whoever proposes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio
import msgspec
import structlog

from actors.trainer.epoch import Drained, EpochSkills, own_skill
from actors.trainer.factorial_prompts import propose_prompts
from actors.trainer.factorial_rows import (
    adoption_rows,
    compared_draws,
    draw_key,
    new_rows,
    prompt_adoption_rows,
    step_row,
)
from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.redraws import redraws, to_redraw
from actors.trainer.score import Score, score
from actors.trainer.step import (
    cases_of,
    diagnose_wrong,
    editor_away,
    silent_judge,
    tell_step,
    unjudged,
)
from actors.trainer.usable import too_little, unread
from protocol.base import Refused, Scope
from protocol.dataset import Question, Unit
from protocol.diagnoser import Diagnosis, route
from protocol.documents import PackageTexts, Skill
from protocol.evolver import Edit, NoProposal
from protocol.factorial import (
    Certified,
    Certify,
    ClassFold,
    EditorCoins,
    FactorialPlan,
    GetUnits,
    PhaseStopped,
    PlanFactorial,
    ProposeEdits,
    RunPhase,
)
from protocol.factorial_rows import PROMPTS, FactorialEditRow, FactorialRunRow
from protocol.keys import epoch_salt, step_key
from protocol.ledger import DeleteRun, Record, Select, Where, rows_of
from protocol.redraws import redrawn
from protocol.rollout import Rollout
from protocol.rows import AnyRow, DocumentRow, OutcomeRow, StepRow
from protocol.settings import Config
from protocol.slow import Compared

__all__ = ["claims_void", "run_factorial_epoch"]

log = structlog.get_logger("trainer")


@dataclass(frozen=True)
class _Run:
    """What all epochs share. texts: the package that the run began with, every edit's base."""

    peers: Peers
    config: Config
    texts: PackageTexts
    plan: FactorialPlan
    units: Mapping[str, tuple[Unit, ...]]


@dataclass(frozen=True)
class _Evidence:
    """A class's editor draws of an epoch. compared: with those of the epoch before."""

    counted: Score
    questions: tuple[Question, ...]
    diagnoses: tuple[Diagnosis, ...]
    compared: tuple[Compared, ...]


async def run_factorial_epoch(
    peers: Peers, config: Config, epoch: int, texts: PackageTexts
) -> EpochSkills | Drained | Refused:
    """An epoch of all classes side by side; the last one also certifies and decides.

    Returns the documents that the run adopts something in: none before the last epoch.
    """
    run = await _begin(peers, config, epoch, texts)
    if isinstance(run, Refused):
        return run
    folds = run.plan.folds
    proposed = await _side_by_side(folds, lambda fold: _class_step(run, epoch, fold))
    if proposed is None:  # the pairs of every class are drawn under the prompts' edits, too
        proposed = await propose_prompts(peers, config, epoch, texts, folds, run.units)
    if proposed is not None:
        return proposed
    trained = await _side_by_side(folds, lambda fold: _phase(run, epoch, epoch, fold))
    if trained is not None or epoch < config.trainer.epochs:
        return trained or EpochSkills((), ())
    tested = await _side_by_side(run.plan.folds, lambda fold: _phase(run, epoch, epoch + 1, fold))
    if tested is not None:
        return tested
    bases = tuple(own_skill(texts, fold.task_type) for fold in run.plan.folds)
    decided = await peers.gate.ask(
        Certify(scope=Scope(epoch=epoch), bases=bases, prompts=texts.prompts)
    )
    await _keep(run, epoch, decided)
    return EpochSkills(decided.skills, (), decided.prompts)


async def _keep(run: _Run, epoch: int, decided: Certified) -> None:
    """The adopted edits as a last, accepted step of their class, and of the prompts: every line
    has an origin."""
    budget = run.config.gate.candidates
    rows: list[AnyRow] = []
    for skill in decided.skills:
        base = own_skill(run.texts, skill.task_type)
        adopted = await _adopted(run, skill.task_type)
        rows += adoption_rows(epoch, budget, base, skill, adopted)
    if decided.prompts:
        adopted = await _adopted(run, PROMPTS)
        rows += prompt_adoption_rows(epoch, budget, run.texts.prompts, decided.prompts, adopted)
    if rows:
        await run.peers.ledger.ask(Record(scope=Scope(epoch=epoch), rows=tuple(rows)))


async def _adopted(run: _Run, scope: str) -> list[FactorialEditRow]:
    """What a class, or the prompts, adopted, in canonical order."""
    found = await run.peers.ledger.ask(
        Select(
            table=FactorialEditRow.TABLE,
            where=(
                Where(column="task_type", value=scope),
                Where(column="state", value="adopted"),
            ),
        )
    )
    return sorted(rows_of(FactorialEditRow, found), key=lambda row: row.position)


async def claims_void(peers: Peers) -> bool:
    """Whether the run has decided and its sentinels do not look like coins."""
    found = await peers.ledger.ask(Select(table=FactorialRunRow.TABLE))
    return any(not row.ok for row in rows_of(FactorialRunRow, found))


async def _begin(peers: Peers, config: Config, epoch: int, texts: PackageTexts) -> _Run | Refused:
    scope = Scope(epoch=epoch)
    found = await peers.dataset.ask(GetUnits(scope=scope))
    if isinstance(found, Refused):
        return found
    plan = await peers.gate.ask(
        PlanFactorial(scope=scope, units=found.units, n_epochs=config.trainer.epochs)
    )
    if isinstance(plan, Refused):
        return plan
    if epoch == 1:
        log.info(
            "factorial.schedule",
            pairs=plan.n_pairs,
            draws=plan.draws,
            rollouts=plan.rollouts,
            lines=list(plan.lines),
        )
    names = [fold.task_type for fold in plan.folds]
    units = {name: tuple(unit for unit in found.units if unit.task_type == name) for name in names}
    return _Run(peers, config, texts, plan, units)


async def _side_by_side(
    folds: Sequence[ClassFold], work: Callable[[ClassFold], Awaitable[Drained | Refused | None]]
) -> Drained | Refused | None:
    """Every class's part. The first refusal wins (by class name), then a stop; None: all whole."""
    ended: dict[str, Drained | Refused | None] = {}

    async def one(fold: ClassFold) -> None:
        ended[fold.task_type] = await work(fold)

    async with anyio.create_task_group() as group:
        for fold in folds:
            group.start_soon(one, fold)
    by_class = [ended[name] for name in sorted(ended)]
    refused = next((end for end in by_class if isinstance(end, Refused)), None)
    return refused or next((end for end in by_class if end is not None), None)


async def _class_step(run: _Run, epoch: int, fold: ClassFold) -> Drained | Refused | None:
    """Proposal, unless its row is there (its pairs may have been drawn)."""
    scope = Scope(epoch=epoch, step=1, task_type=fold.task_type)
    structlog.contextvars.bind_contextvars(**dict(scope.fields()))  # the class's own task
    key = step_key(epoch, fold.task_type, 1)
    found = await run.peers.ledger.ask(
        Select(scope=scope, table=StepRow.TABLE, where=(Where(column="run_key", value=key),))
    )
    done = len(rows_of(StepRow, found))
    n_units = len(run.units[fold.task_type]) - len(fold.design)
    planned = {"class": fold.task_type, "steps": 1, "done": done, "units": n_units}
    log.info("class.planned", epoch=epoch, pairs=fold.pairs[epoch - 1], **planned)
    if done:
        return None
    return Drained() if run.peers.draining() else await _step(run, epoch, fold, scope)


async def _phase(run: _Run, epoch: int, phase: int, fold: ClassFold) -> Drained | Refused | None:
    """A class's pairs of a phase."""
    if run.peers.draining():
        return Drained()
    base = own_skill(run.texts, fold.task_type)
    ended = await run.peers.gate.ask(
        RunPhase(
            scope=Scope(epoch=epoch, step=1, task_type=fold.task_type),
            task_type=fold.task_type,
            phase=phase,
            base=base,
            prompts=run.texts.prompts,
            units=run.units[fold.task_type],
            others=run.texts.others(base),
        )
    )
    if isinstance(ended, Refused):
        return ended
    return Drained() if isinstance(ended, PhaseStopped) else None


# -- a step -----------------------------------------------------------------------------


async def _step(run: _Run, epoch: int, fold: ClassFold, scope: Scope) -> Refused | None:
    """Editor draws, diagnosis, proposal; the step's row and its edits are written together."""
    key, peers = step_key(epoch, fold.task_type, 1), run.peers
    await peers.ledger.ask(DeleteRun(scope=scope, run_key=key))
    evidence = await _evidence(run, epoch, fold, scope)
    if isinstance(evidence, Refused):
        return evidence
    base = own_skill(run.texts, fold.task_type)
    found = await peers.ledger.ask(
        Select(
            scope=scope,
            table=FactorialEditRow.TABLE,
            where=(Where(column="task_type", value=fold.task_type),),
        )
    )
    known = sorted(rows_of(FactorialEditRow, found), key=lambda row: row.position)
    earlier = tuple(row for row in known if not row.sentinel)
    defects, lapses = (
        cases_of(key, evidence.questions, part) for part in route(evidence.diagnoses)
    )
    proposal = await peers.evolver.ask(
        ProposeEdits(
            scope=scope,
            run_key=f"{key}/proposal",
            base=base,
            earlier=tuple(msgspec.json.decode(row.edit, type=Edit) for row in earlier),
            defects=defects,
            lapses=lapses,
            n_edits=run.config.gate.candidates,
            compared=evidence.compared,
        )
    )
    if isinstance(proposal, NoProposal) and (refused := editor_away(key, proposal)):
        return refused
    budget = run.config.gate.candidates
    row = step_row(epoch, budget, base, evidence.counted, evidence.diagnoses, proposal)
    edits = () if isinstance(proposal, NoProposal) else new_rows(earlier, proposal, epoch, row)
    document = DocumentRow(hash=base.hash, task_type=fold.task_type, text=base.text)
    await peers.ledger.ask(Record(scope=scope, rows=(row, document, *edits)))
    tell_step(row, edits=0 if isinstance(proposal, NoProposal) else len(proposal.new))
    return None


async def _evidence(run: _Run, epoch: int, fold: ClassFold, scope: Scope) -> _Evidence | Refused:
    """Each design unit once, under the base and the undecided edits by coins, and why it failed."""
    key, peers = step_key(epoch, fold.task_type, 1), run.peers
    base = own_skill(run.texts, fold.task_type)
    coins = await peers.gate.ask(
        EditorCoins(
            scope=scope,
            epoch=epoch,
            base=base,
            prompts=run.texts.prompts,
            unit_ids=fold.design,
        )
    )
    units = {unit.unit_id: unit for unit in run.units[fold.task_type]}
    asked: list[tuple[Question, Skill]] = []
    jobs: list[Rollout] = []
    again = await redraws(peers, key)
    salt = redrawn(epoch_salt(run.config.run.seed, epoch), again)
    for arm in coins.arms:
        questions = units[arm.unit_id].questions
        texts = msgspec.structs.replace(run.texts.with_skill(arm.skill), prompts=arm.prompts)
        asked += [(question, arm.skill) for question in questions]
        jobs += jobs_for(questions, texts, f"{key}/rollout", salt, scope)
    results = await run_jobs(peers.roll, jobs)
    if refused := too_little(f"{key}/rollout", results, run.config.trainer.min_coverage):
        return refused
    if refused := unread(f"{key}/rollout", results, run.config.trainer.max_unreadable_share):
        return await to_redraw(peers, scope, key, again, refused)
    counted = score(results)
    diagnoses = await diagnose_wrong(peers, key, scope, asked, results, again)
    if isinstance(diagnoses, Refused):
        return diagnoses
    silent = silent_judge(key, diagnoses, run.config.diagnoser.max_degraded_share)
    if silent is not None:
        return await unjudged(peers, scope, key, again, diagnoses, silent)
    drawn = tuple(question for question, _ in asked)
    before = await peers.ledger.ask(
        Select(
            scope=scope,
            table=OutcomeRow.TABLE,
            where=(Where(column="run_key", value=draw_key(epoch - 1, fold.task_type)),),
        )
    )
    compared = compared_draws(epoch, rows_of(OutcomeRow, before), drawn, results)
    return _Evidence(counted, drawn, tuple(diagnoses), compared)
