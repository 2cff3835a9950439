"""Test, which training never sees: four curves, each package answered once (row holdout).

The seed's curve comes from its own predictions where they are this agent's. ``final`` is really
answered in every epoch. ``best_hard`` and ``best_mixed`` point at the row of their package, which
is only answered anew if it never was. What was answered before is read from the ledger, so that
a resumed run counts the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from actors.trainer.evaluate import evaluate
from actors.trainer.peers import Peers
from actors.trainer.score import score
from actors.trainer.state import TrainerState
from protocol.base import Refused
from protocol.baseline import SeedOutcomes
from protocol.dataset import GetPool, KnownOutcome, Question
from protocol.documents import Package
from protocol.keys import evaluation_key
from protocol.ledger import Record, Select, Where, rows_of
from protocol.rollout import Answered, Missed
from protocol.rows import EvaluationRow
from protocol.settings import Config
from protocol.workspace import OpenPackage

__all__ = ["SEED_OUTCOMES", "holdout", "memo_of", "seed_row"]

log = structlog.get_logger("trainer")

SEED_OUTCOMES = "seed"
"""The ``outcomes_key`` of the row whose outcomes are the seed's predictions."""


async def holdout(
    peers: Peers, config: Config, state: TrainerState, *, seed_serves: bool
) -> Refused | None:
    """Write the epoch's four rows on test, as far as they are not there.

    state: after the epoch. Refused: coverage was too low; nothing is decided on test.
    """
    if not (await peers.dataset.ask(GetPool(pool="test"))).questions:
        log.warning("holdout.skipped", reason="the test pool is empty", epoch=state.epoch)
        return None
    seeded = await _seed(peers, config, state, seed_serves=seed_serves)
    if isinstance(seeded, Refused):
        return seeded
    final = await _answer(peers, config, state.current, state.epoch, "final")
    if isinstance(final, Refused):
        return final
    for kind, package in (("best_hard", state.best_hard), ("best_mixed", state.best_mixed)):
        known = memo_of(await _rows(peers)).get(package)
        if known is None:
            answered = await _answer(peers, config, package, state.epoch, kind)
            if isinstance(answered, Refused):
                return answered
        else:
            await _point(peers, state.epoch, kind, known)
    return None


def memo_of(rows: Sequence[EvaluationRow]) -> Mapping[Package, EvaluationRow]:
    """Each package's first row on test: the one that its curves point at."""
    memo: dict[Package, EvaluationRow] = {}
    for row in sorted(rows, key=lambda row: (row.epoch, row.kind != "final", row.run_key)):
        memo.setdefault(row.package, row)
    return memo


def seed_row(
    package: Package, questions: Sequence[Question], predictions: Sequence[KnownOutcome]
) -> EvaluationRow:
    """The seed package on test from its own predictions: no call is made."""
    known = {outcome.question_id: outcome for outcome in predictions}
    counted = score([_as_result(question, known) for question in questions])
    return EvaluationRow(
        run_key=evaluation_key(0, "test", "seed"),
        epoch=0,
        pool="test",
        kind="seed",
        skills_version=package.skills,
        prompts_version=package.prompts,
        planned=counted.planned,
        right=counted.right,
        missing=counted.missing,
        soft=counted.soft,
        mixed=counted.mixed,
        outcomes_key=SEED_OUTCOMES,
    )


def _as_result(question: Question, known: Mapping[str, KnownOutcome]) -> Answered | Missed:
    outcome = known.get(question.question_id)
    if outcome is None:
        detail = "the seed has no prediction"
        return Missed(question_id=question.question_id, kind="storage", detail=detail)
    return Answered(
        question_id=question.question_id,
        right=outcome.right,
        letter=None,
        submitted="",
        confidence=outcome.confidence,
        stop="submitted",
        n_steps=0,
    )


async def _seed(
    peers: Peers, config: Config, state: TrainerState, *, seed_serves: bool
) -> EvaluationRow | Refused:
    if not seed_serves:
        return await _answer(peers, config, state.seed_package, 0, "seed")
    questions = (await peers.dataset.ask(GetPool(pool="test"))).questions
    predictions = (await peers.baseline.ask(SeedOutcomes())).outcomes
    row = seed_row(state.seed_package, questions, predictions)
    await peers.ledger.ask(Record(rows=(row,)))
    return row


async def _answer(
    peers: Peers, config: Config, package: Package, epoch: int, kind: str
) -> EvaluationRow | Refused:
    texts = await peers.workspace.ask(OpenPackage(package=package))
    if isinstance(texts, Refused):
        return texts
    return await evaluate(
        peers,
        texts,
        seed=config.run.seed,
        epoch=epoch,
        pool="test",
        kind=kind,
        settings=config.trainer,
    )


async def _rows(peers: Peers) -> tuple[EvaluationRow, ...]:
    selected = await peers.ledger.ask(
        Select(table=EvaluationRow.TABLE, where=(Where(column="pool", value="test"),))
    )
    return rows_of(EvaluationRow, selected)


async def _point(peers: Peers, epoch: int, kind: str, known: EvaluationRow) -> None:
    row = msgspec.structs.replace(
        known, run_key=evaluation_key(epoch, "test", kind), epoch=epoch, kind=kind
    )
    await peers.ledger.ask(Record(rows=(row,)))
