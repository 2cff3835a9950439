"""Rows as scalars, a point per epoch, under names that stay. Only counts what the rows say.

Whatever belongs to an epoch is told when that epoch is whole and never changes afterwards: so a
later export begins with the very bytes of the earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from actors.commands.html.gather import compare, point_of
from actors.commands.html.gather_run import Attempts, cost_of
from actors.factorial_view import FactorialView, factorial_view
from actors.ledger.reader import Reader
from actors.trainer.holdout import SEED_OUTCOMES
from protocol.keys import slug
from protocol.ledger import Where
from protocol.rows import DecisionRow, EpochRow, EvaluationRow, OutcomeRow, SlowRow, StepRow
from protocol.seed import BaselinePrediction

__all__ = ["Scalar", "Source", "scalars_of"]

Named = Iterator[tuple[str, float]]


@dataclass(frozen=True, order=True)
class Scalar:
    """A point of a curve. wall_time: seconds since 1970."""

    step: int
    tag: str
    value: float
    wall_time: float


@dataclass(frozen=True)
class Source:
    """What is counted. epochs: the whole ones, which alone are told, beside the seed's (0).

    ends: when each ended, as far as it is known; began, last: the run's first and last call.
    seeded: the seed's answers to the test pool.
    """

    reader: Reader
    epochs: frozenset[int]
    began: float
    last: float
    ends: Mapping[int, float]
    attempts: Attempts
    seeded: Mapping[str, BaselinePrediction]


def scalars_of(source: Source) -> tuple[Scalar, ...]:
    """All points, ordered by step and tag."""
    reader = source.reader
    evaluations = reader.rows(EvaluationRow)
    epochs = {row.epoch: row for row in reader.rows(EpochRow)}
    slow = {row.epoch: row for row in reader.rows(SlowRow)}
    decisions, steps = reader.rows(DecisionRow), reader.rows(StepRow)
    view = factorial_view(reader)
    found = [
        Scalar(0, tag, value, source.began)
        for row in evaluations
        if (row.epoch, row.pool, row.kind) == (0, "val", "seed")
        for tag, value in _evaluation("val", row)
    ]
    for epoch in source.epochs:
        told = [
            *_evaluations(epoch, evaluations),
            *_gains(source, epoch, evaluations),
            *(_gate(epochs[epoch]) if view is None else _factorial(view, epoch)),
            *(_decisions([row for row in decisions if row.epoch == epoch]) if view is None else ()),
            *_steps([row for row in steps if row.epoch == epoch]),
            *(_slow(slow[epoch]) if epoch in slow else ()),
            *_cost(source, epoch),
        ]
        at = source.ends.get(epoch, source.last)
        found += [Scalar(epoch, tag, float(value), at) for tag, value in told]
    return tuple(sorted(found))


def _evaluations(epoch: int, rows: Sequence[EvaluationRow]) -> Named:
    """The passes of an epoch. The seed's curve on test is drawn in every epoch, as a level."""
    for row in rows:
        if row.epoch == epoch:
            whole = row.pool == "val" and row.kind == "final"
            yield from _evaluation("val" if whole else f"{row.pool}/{row.kind}", row)
    if any((row.epoch, row.pool, row.kind) == (epoch, "test", "final") for row in rows):
        for row in rows:
            if (row.epoch, row.pool, row.kind) == (0, "test", "seed"):
                yield from _evaluation("test/seed", row)


def _evaluation(name: str, row: EvaluationRow) -> Named:
    point = point_of(row)
    yield f"{name}/accuracy", point.share
    yield f"{name}/accuracy_low", point.low
    yield f"{name}/accuracy_high", point.high
    yield f"{name}/missing", point.missing


def _gains(source: Source, epoch: int, rows: Sequence[EvaluationRow]) -> Named:
    """The package at the end of the epoch against the seed's, by class, as a share of accuracy."""
    passes = {(row.epoch, row.pool, row.kind): row for row in rows}
    for pool in ("val", "test"):
        before, after = passes.get((0, pool, "seed")), passes.get((epoch, pool, "final"))
        if before is None or after is None:
            continue
        (was, _), (is_, classes) = _answers(source, before), _answers(source, after)
        whole = compare(point_of(before), point_of(after), was, is_, classes)
        yield f"gain/{pool}/all", whole.after.share - whole.before.share
        for one in whole.classes:
            yield f"gain/{pool}/{slug(one.task_type)}", (one.after - one.before) / one.planned


def _answers(source: Source, row: EvaluationRow) -> tuple[dict[str, bool], dict[str, str]]:
    """A pass: question id -> right, the missing left out; and the class of every planned one."""
    if row.outcomes_key == SEED_OUTCOMES:
        seeded = source.seeded.items()
        return (
            {name: answer.right for name, answer in seeded},
            {name: answer.task_type for name, answer in seeded},
        )
    rows = source.reader.rows(OutcomeRow, Where(column="run_key", value=row.outcomes_key))
    return (
        {one.question_id: one.outcome == "right" for one in rows if one.outcome != "missing"},
        {one.question_id: one.task_type for one in rows},
    )


def _gate(row: EpochRow) -> Named:
    yield "gate/tests", row.tests
    yield "gate/accepted", row.accepted
    yield "val/epochs_since_best_improved", row.epochs_since_best_improved
    yield "gate/expected_false_accepts", row.sum_alpha
    yield "gate/uncovered", row.seed_draws


def _decisions(rows: Sequence[DecisionRow]) -> Named:
    counted = Counter(row.verdict for row in rows)
    for verdict in ("accept", "reject", "undecided", "untestable"):
        yield f"gate/verdict/{verdict}", counted[verdict]
    yield "gate/rollouts", sum(row.rollouts + row.baseline_rollouts for row in rows)


def _factorial(view: FactorialView, epoch: int) -> Named:
    """The epoch's pairs and new edits; the last epoch also certifies and decides.

    Nothing of how an edit fares before that: a run must not be stopped by it.
    """
    last = epoch == view.n_epochs
    for what in ("planned", "drawn", "void"):
        certified = view.in_phase(epoch + 1, what) if last else 0
        yield f"pairs/{what}", view.in_phase(epoch, what) + certified
    yield "edits/proposed", sum(one.row.born == epoch for one in view.proposed)
    if last and view.run is not None:
        states = Counter(one.row.state for one in view.proposed)
        for state in ("adopted", "rejected", "dropped"):
            yield f"edits/{state}", states[state]
        yield "sentinels/p", view.run.sentinel_p


def _steps(rows: Sequence[StepRow]) -> Named:
    """What the steps answered and what the judge and the editor made of it."""
    planned = sum(row.planned for row in rows)
    if planned:
        yield "train/accuracy", sum(row.right for row in rows) / planned
    yield "train/steps", len(rows)
    yield "train/missing", sum(row.missing for row in rows)
    yield "train/defects", sum(row.defects for row in rows)
    yield "train/lapses", sum(row.lapses for row in rows)
    yield "train/degraded", sum(row.degraded for row in rows)
    yield "train/editor_calls", sum(row.editor_calls for row in rows)
    yield "train/editor_unreadable", sum(row.parse_failures for row in rows)


def _slow(row: SlowRow) -> Named:
    if row.result not in ("kept", "dropped"):
        return
    yield "slow/kept", row.result == "kept"
    yield "slow/won", row.wins
    yield "slow/lost", row.losses
    yield "slow/p_harm", row.p_harm


# -- cost -------------------------------------------------------------------------------


def _cost(source: Source, epoch: int) -> Named:
    """What the run has cost from its begin to the end of the epoch; nothing if that is unknown."""
    if epoch not in source.ends:
        return
    until = datetime.fromtimestamp(source.ends[epoch]).astimezone()
    cost = cost_of(
        {
            role: [row for row in rows if datetime.fromisoformat(row.started) <= until]
            for role, rows in source.attempts.items()
        }
    )
    priced = [role.usd for role in cost.roles if role.usd is not None]
    if priced:
        yield "cost/usd", sum(priced)
    yield "tokens/prompt", sum(role.prompt_tokens for role in cost.roles)
    yield "tokens/completion", sum(role.completion_tokens for role in cost.roles)
    yield "calls/answered", sum(role.answered for role in cost.roles)
    yield "calls/cached", sum(role.cached for role in cost.roles)
    yield "calls/failed_tries", sum(sum(role.failed.values()) for role in cost.roles)
    for role in (*cost.roles, *([cost.embeds] if cost.embeds else ())):
        yield f"tokens/{role.role}", role.prompt_tokens + role.completion_tokens
        yield f"calls/{role.role}", role.answered
        if role.usd is not None:
            yield f"cost/{role.role}", role.usd
