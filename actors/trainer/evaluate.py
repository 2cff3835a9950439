"""A whole package over a pool, as one evaluation row."""

from __future__ import annotations

from typing import cast

import msgspec
import structlog

from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.redraws import redraws, to_redraw
from actors.trainer.score import score, wilson
from actors.trainer.usable import outage, unread
from protocol.base import Refused, Scope
from protocol.dataset import GetPool
from protocol.documents import PackageTexts
from protocol.keys import PoolName, epoch_salt, evaluation_key
from protocol.ledger import DeleteRun, Record, Select, Where, rows_of
from protocol.redraws import redrawn
from protocol.rollout import out_of_budget
from protocol.rows import EvaluationRow, OutcomeRow
from protocol.settings import TrainerSettings

__all__ = ["evaluate", "outcomes_of", "restated"]

log = structlog.get_logger("trainer")

_CONTROL = 8
"""Questions that tell an endpoint that is at fault from a package that is."""


async def evaluate(
    peers: Peers,
    texts: PackageTexts,
    *,
    seed: int,
    epoch: int,
    pool: PoolName,
    kind: str,
    settings: TrainerSettings,
    control: PackageTexts | None = None,
) -> EvaluationRow | Refused:
    """Run the pass, unless its row is there already, and record it.

    control: the package in force, where another one is on trial. Where the replies cannot be
    read, it is asked the same: what it can answer was spoilt by the package on trial.

    Refused: coverage is under ``min_coverage``, or the endpoint's replies cannot be read; such a
    pass decides nothing and leaves no row.
    """
    run_key = evaluation_key(epoch, pool, kind)
    stored = await peers.ledger.ask(
        Select(table="evaluations", where=(Where(column="run_key", value=run_key),))
    )
    for row in rows_of(EvaluationRow, stored):
        if row.package == texts.package:
            return row
    scope = Scope(epoch=epoch)
    await peers.ledger.ask(DeleteRun(scope=scope, run_key=run_key))
    questions = (await peers.dataset.ask(GetPool(scope=scope, pool=pool))).questions
    again = await redraws(peers, run_key)
    salt = redrawn(epoch_salt(seed, epoch), again)
    jobs = jobs_for(questions, texts, run_key, salt, scope)
    results = await run_jobs(peers.roll, jobs)
    counted = score(results)
    enough = counted.planned > 0 and counted.coverage >= settings.min_coverage
    whole = enough and not out_of_budget(results)
    garbled = unread(run_key, results, settings.max_unreadable_share)
    if whole and garbled and control is not None:
        asked = jobs_for(questions[:_CONTROL], control, f"{run_key}/control", salt, scope)
        told = await run_jobs(peers.roll, asked)
        garbled = unread(f"{run_key}/control", told, settings.max_unreadable_share)
    usable = whole and garbled is None
    low, high = wilson(counted.right, counted.planned)
    log.info(
        "evaluation.done" if usable else "evaluation.unusable",
        epoch=epoch,
        pool=pool,
        kind=kind,
        package=str(texts.package),
        right=counted.right,
        planned=counted.planned,
        missing=counted.missing,
        accuracy=round(counted.hard, 4) if usable else None,
        interval=[round(low, 4), round(high, 4)] if usable else None,
    )
    if counted.planned == 0:
        return Refused(
            what=f"{run_key}: the pool {pool} has no question that counts",
            remedy="look at the pre-flight table; split with more videos in this pool",
        )
    if not whole:
        return outage(run_key, counted, results)
    if garbled is not None:
        return await to_redraw(peers, scope, run_key, again, garbled)
    row = EvaluationRow(
        run_key=run_key,
        epoch=epoch,
        pool=pool,
        kind=kind,
        skills_version=texts.package.skills,
        prompts_version=texts.package.prompts,
        planned=counted.planned,
        right=counted.right,
        missing=counted.missing,
        soft=counted.soft,
        mixed=counted.mixed,
        outcomes_key=run_key,
    )
    await peers.ledger.ask(Record(scope=scope, rows=(row,)))
    return row


async def outcomes_of(peers: Peers, row: EvaluationRow) -> dict[str, bool]:
    """The pass behind a row as question id -> right; missing questions are left out."""
    selected = await peers.ledger.ask(
        Select(table=OutcomeRow.TABLE, where=(Where(column="run_key", value=row.outcomes_key),))
    )
    outcomes = rows_of(OutcomeRow, selected)
    return {one.question_id: one.outcome == "right" for one in outcomes if one.outcome != "missing"}


def restated(row: EvaluationRow, kind: str) -> EvaluationRow:
    """The same pass under another kind: the outcomes stay where they are."""
    key = evaluation_key(row.epoch, cast(PoolName, row.pool), kind)
    return msgspec.structs.replace(row, run_key=key, kind=kind)
