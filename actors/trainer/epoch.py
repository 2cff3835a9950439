"""One epoch: every class's steps, side by side; each class owns its skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import structlog

from actors.trainer.peers import Peers
from actors.trainer.schedule import edit_budget
from actors.trainer.step import StepPlan, run_step
from protocol.base import Refused, Scope
from protocol.baseline import SeedOutcomes
from protocol.dataset import ClassWork, KnownOutcome, PlanEpoch
from protocol.documents import Document, Package, PackageTexts, Skill
from protocol.ledger import Select, Where, rows_of
from protocol.rows import DecisionRow, DocumentRow, EpochRow, OutcomeRow, StepRow
from protocol.settings import Config

__all__ = [
    "Drained",
    "EpochSkills",
    "epoch_row",
    "known_outcomes",
    "own_skill",
    "run_epoch",
]

log = structlog.get_logger("trainer")


@dataclass(frozen=True)
class Drained:
    """A stop was asked for; the steps that are whole stay."""


@dataclass(frozen=True)
class EpochSkills:
    """The skills that stand at the end of the epoch's steps, one per trained class.

    works: the epoch's plan. prompts: the system prompt and the tool prompts that changed.
    """

    skills: tuple[Skill, ...]
    works: tuple[ClassWork, ...]
    prompts: tuple[Document, ...] = ()


async def known_outcomes(peers: Peers, epoch: int) -> tuple[KnownOutcome, ...]:
    """The latest known result of every question before an epoch begins.

    At first the seed's; then those of the rollouts of earlier epochs. The epoch's own are
    left out, so that a resumed epoch is planned as it was planned at first.
    """
    seeded = await peers.baseline.ask(SeedOutcomes())
    known = {outcome.question_id: outcome.right for outcome in seeded.outcomes}
    for earlier in range(1, epoch):
        found = await peers.ledger.ask(
            Select(table="outcomes", where=(Where(column="run_key", value=f"e{earlier}/*"),))
        )
        rollouts = [
            row
            for row in rows_of(OutcomeRow, found)
            if row.run_key.endswith("/rollout") and row.outcome != "missing"
        ]
        known.update({row.question_id: row.outcome == "right" for row in rollouts})
    return tuple(KnownOutcome(question_id=key, right=right) for key, right in sorted(known.items()))


async def run_epoch(
    peers: Peers, config: Config, epoch: int, texts: PackageTexts
) -> EpochSkills | Drained | Refused:
    """Run every class's remaining steps side by side.

    The first refusal wins (by class name); classes that run finish their step meanwhile.
    """
    plan = await peers.dataset.ask(
        PlanEpoch(scope=Scope(epoch=epoch), epoch=epoch, known=await known_outcomes(peers, epoch))
    )
    if isinstance(plan, Refused):
        return plan
    ended: dict[str, Skill | Drained | Refused] = {}

    async def run(work: ClassWork) -> None:
        ended[work.task_type] = await _run_class(peers, config, epoch, work, texts)

    async with anyio.create_task_group() as group:
        for work in plan.classes:
            group.start_soon(run, work)
    return _together(ended, plan.classes)


def _together(
    ended: Mapping[str, Skill | Drained | Refused], works: tuple[ClassWork, ...]
) -> EpochSkills | Drained | Refused:
    by_class = [ended[name] for name in sorted(ended)]
    for result in by_class:
        if isinstance(result, Refused):
            return result
    skills = [result for result in by_class if isinstance(result, Skill)]
    whole = len(skills) == len(by_class)
    return EpochSkills(tuple(skills), works) if whole else Drained()


async def _run_class(
    peers: Peers, config: Config, epoch: int, work: ClassWork, texts: PackageTexts
) -> Skill | Drained | Refused:
    """The class's steps in order, from the first that is not whole."""
    limit = config.trainer.max_batches
    n_steps = len(work.batches) if limit is None else min(limit, len(work.batches))
    done, skill = await _resume_class(peers, epoch, work, texts)
    planned = {"class": work.task_type, "steps": n_steps, "done": done, "units": len(work.ladder)}
    log.info("class.planned", epoch=epoch, **planned)
    for step in range(done + 1, n_steps + 1):
        if peers.draining():
            return Drained()
        ended = await run_step(
            peers,
            StepPlan(
                seed=config.run.seed,
                epoch=epoch,
                step=step,
                work=work,
                skill=skill,
                texts=texts,
                edit_budget=edit_budget(
                    config.evolver,
                    (epoch - 1) * n_steps + step - 1,
                    config.trainer.epochs * n_steps,
                ),
                max_degraded_share=config.diagnoser.max_degraded_share,
                min_coverage=config.trainer.min_coverage,
                max_unreadable_share=config.trainer.max_unreadable_share,
            ),
        )
        if isinstance(ended, Refused):
            return ended
        skill = ended.skill
    return skill


async def _resume_class(
    peers: Peers, epoch: int, work: ClassWork, texts: PackageTexts
) -> tuple[int, Skill]:
    """How many of the class's steps are whole, and the skill that stands after them.

    Raises LookupError if the ledger names a text that it does not hold.
    """
    skill = own_skill(texts, work.task_type)
    found = await peers.ledger.ask(
        Select(
            table="steps",
            where=(
                Where(column="epoch", value=epoch),
                Where(column="task_type", value=work.task_type),
            ),
        )
    )
    rows = sorted(rows_of(StepRow, found), key=lambda row: row.step)
    whole = 0
    while whole < len(rows) and rows[whole].step == whole + 1:
        whole += 1
    if whole == 0 or rows[whole - 1].skill_after == skill.hash:
        return whole, skill
    wanted = rows[whole - 1].skill_after
    stored = await peers.ledger.ask(
        Select(table="documents", where=(Where(column="hash", value=wanted),))
    )
    for document in rows_of(DocumentRow, stored):
        return whole, Skill(task_type=work.task_type, text=document.text)
    raise LookupError(
        f"run.db: steps of {work.task_type!r} name skill {wanted}, which is not there"
    )


def own_skill(texts: PackageTexts, task_type: str) -> Skill:
    """The class's own skill. Raises LookupError: a trainable class needs a document to train."""
    skill = texts.skill_for(task_type)
    if skill.task_type == task_type:
        return skill
    raise LookupError(
        f"the package has no skill for the trainable class {task_type!r}; "
        "add skills/vN/<class>.md to the seed (a copy of _default.md with its own front matter)"
    )


def epoch_row(
    epoch: int, package: Package, decisions: Sequence[DecisionRow], since_best: int
) -> EpochRow:
    """The summary of a whole epoch (``EpochRow`` says what is counted)."""
    tested = [row for row in decisions if row.rollouts > 0]
    at_stake = [row for row in decisions if row.rollouts > 0 or row.verdict == "untestable"]
    return EpochRow(
        epoch=epoch,
        skills_version=package.skills,
        prompts_version=package.prompts,
        tests=len(tested),
        accepted=sum(row.verdict == "accept" for row in tested),
        sum_alpha=round(sum(row.alpha for row in at_stake if not row.seed_draw), 10),
        seed_draws=sum(row.seed_draw for row in at_stake),
        epochs_since_best_improved=since_best,
    )
