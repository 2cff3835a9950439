"""A whole package over a pool, as one evaluation row."""

from __future__ import annotations

import structlog

from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.score import score, wilson
from protocol.base import Refused, Scope
from protocol.dataset import GetPool
from protocol.documents import PackageTexts
from protocol.keys import PoolName, epoch_salt, evaluation_key
from protocol.ledger import (
    DeleteRun,
    EvaluationRow,
    Record,
    Select,
    Where,
    rows_of,
)

__all__ = ["evaluate"]

log = structlog.get_logger("trainer")


async def evaluate(
    peers: Peers,
    texts: PackageTexts,
    *,
    seed: int,
    epoch: int,
    pool: PoolName,
    kind: str,
    min_coverage: float,
) -> EvaluationRow | Refused:
    """Run the pass, unless its row is there already, and record it.

    Refused: coverage is under ``min_coverage``; such a pass decides nothing and leaves no row.
    """
    run_key = evaluation_key(epoch, pool, kind)
    stored = await peers.ledger.ask(
        Select(table="evaluations", where=(Where(column="run_key", value=run_key),))
    )
    for row in rows_of(EvaluationRow, stored):
        if (row.skills_version, row.prompts_version) == (
            texts.package.skills,
            texts.package.prompts,
        ):
            return row
    scope = Scope(epoch=epoch)
    await peers.ledger.ask(DeleteRun(scope=scope, run_key=run_key))
    questions = (await peers.dataset.ask(GetPool(scope=scope, pool=pool))).questions
    jobs = jobs_for(questions, texts, run_key, epoch_salt(seed, epoch), scope)
    counted = score(await run_jobs(peers.roll, jobs))
    low, high = wilson(counted.right, counted.planned)
    log.info(
        "evaluation.done",
        pool=pool,
        kind=kind,
        package=str(texts.package),
        right=counted.right,
        planned=counted.planned,
        missing=counted.missing,
        accuracy=round(counted.hard, 4),
        interval=[round(low, 4), round(high, 4)],
    )
    if counted.coverage < min_coverage:
        return Refused(
            what=(
                f"{run_key}: only {counted.coverage:.1%} of {counted.planned} questions were "
                f"answered, {counted.missing} are missing"
            ),
            remedy="look at the endpoints (run.db, table attempts), then resume; nothing is lost",
        )
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
    )
    await peers.ledger.ask(Record(scope=scope, rows=(row,)))
    return row
