"""A whole package over a pool, as one evaluation row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
import structlog

from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.score import Score, score, wilson
from protocol.base import Refused, Scope
from protocol.dataset import GetPool
from protocol.documents import PackageTexts
from protocol.keys import PoolName, epoch_salt, evaluation_key
from protocol.ledger import DeleteRun, Record, Select, Where, rows_of
from protocol.rollout import Answered, Missed, out_of_budget, reasons_of
from protocol.rows import EvaluationRow, OutcomeRow

__all__ = ["evaluate", "outage", "outcomes_of", "restated", "too_little"]

log = structlog.get_logger("trainer")

_UNREADABLE_SHARE = 0.2


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
        if row.package == texts.package:
            return row
    scope = Scope(epoch=epoch)
    await peers.ledger.ask(DeleteRun(scope=scope, run_key=run_key))
    questions = (await peers.dataset.ask(GetPool(scope=scope, pool=pool))).questions
    jobs = jobs_for(questions, texts, run_key, epoch_salt(seed, epoch), scope)
    results = await run_jobs(peers.roll, jobs)
    counted = score(results)
    usable = counted.planned > 0 and counted.coverage >= min_coverage and not out_of_budget(results)
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
    _warn_of_unreadable(run_key, results)
    if counted.planned == 0:
        return Refused(
            what=f"{run_key}: the pool {pool} has no question that counts",
            remedy="look at the pre-flight table; split with more videos in this pool",
        )
    if not usable:
        return outage(run_key, counted, results)
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


def too_little(
    run_key: str, results: Sequence[Answered | Missed], min_coverage: float
) -> Refused | None:
    """Why nothing may be learnt from a small pass; None: enough was answered.

    One missing answer is borne, whatever its share; a limit of the configuration never is.
    """
    counted = score(results)
    borne = max(1, (1.0 - min_coverage) * counted.planned)
    if counted.missing > borne or out_of_budget(results):
        return outage(run_key, counted, results)
    return None


def outage(run_key: str, counted: Score, results: Sequence[Answered | Missed]) -> Refused:
    """Why the pass does not count, by what the endpoint or the disk said."""
    missed = [result for result in results if isinstance(result, Missed)]
    nothing = counted.missing == counted.planned
    try_all = " (bin/train CONFIG --check tries every endpoint)" if nothing else ""
    return Refused(
        what=(
            f"{run_key}: only {counted.coverage:.1%} of {counted.planned} questions were "
            f"answered, {counted.missing} are missing"
        ),
        remedy=f"mend what the reasons name{try_all}, then resume; nothing is lost, "
        "nothing was scored",
        details=reasons_of(missed),
        passing=not any(result.lasting for result in missed),
    )


def _warn_of_unreadable(run_key: str, results: Sequence[Answered | Missed]) -> None:
    """Replies that cannot be read are wrong answers, but they are no sign of a bad skill."""
    unreadable = sum(
        result.stop == "parse_error" for result in results if isinstance(result, Answered)
    )
    if unreadable > _UNREADABLE_SHARE * len(results):
        log.warning(
            "pass.unreadable",
            run_key=run_key,
            rollouts=unreadable,
            of=len(results),
            remedy="the model does not keep to the reply format: see run.db, traces.raw",
        )
