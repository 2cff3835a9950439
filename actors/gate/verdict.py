"""From what the stages of a test saw to the decision and its row. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.gate.decide import Standing
from actors.gate.levels import bound_of
from protocol.gate import Decision, Stage, Trial, Verdict
from protocol.rows import DecisionRow

__all__ = ["IDENTICAL", "decision_of", "row_of", "stage_of"]

IDENTICAL = Standing(
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
"""A candidate that is the current text has nothing to test."""


def stage_of(
    standing: Standing, *, alpha: float, seed_draw: bool = False, drawn: int = 0, rollouts: int = 0
) -> Stage:
    """Where a stage ended, with its level and its cost."""
    return Stage(
        verdict=standing.verdict,
        reason=standing.reason,
        alpha=alpha,
        evaluated=standing.evaluated,
        wins=standing.wins,
        losses=standing.losses,
        ties=standing.ties,
        missing=standing.missing,
        e_value=standing.e_value,
        p_gate=standing.p_gate,
        lower_bound=standing.lower_bound,
        looks=standing.looks,
        seed_draw=seed_draw,
        drawn=drawn,
        rollouts=rollouts,
    )


def decision_of(
    request: Trial, stages: Sequence[Stage], n_stages: int, generation: int = 0
) -> Decision:
    """The test as a whole.

    stages: those that ran; a later one only after an accept. n_stages: how many an accept takes.
    """
    last = stages[-1]
    blind = not stages[0].seed_draw
    e_value, p_gate = _evidence(stages, n_stages, blind=blind)
    return Decision(
        verdict=_verdict(stages),
        reason=last.reason,
        alpha=bound_of(last.alpha, n_stages, blind=blind),
        n_units=len(request.units),
        evaluated=last.evaluated,
        wins=last.wins,
        losses=last.losses,
        ties=last.ties,
        missing=last.missing,
        e_value=e_value,
        p_gate=p_gate,
        lower_bound=last.lower_bound,
        looks=last.looks,
        in_sample=request.in_sample,
        rollouts=sum(stage.rollouts for stage in stages),
        baseline_rollouts=sum(stage.drawn for stage in stages),
        stages=tuple(stages) if n_stages > 1 else (),
        generation=generation,
        seed_draw=not blind,
    )


def _verdict(stages: Sequence[Stage]) -> Verdict:
    """The last stage's; what a second stage cannot test was tested and is not confirmed."""
    last = stages[-1].verdict
    return "reject" if last == "untestable" and len(stages) > 1 else last


def _evidence(stages: Sequence[Stage], n_stages: int, *, blind: bool) -> tuple[float, float]:
    """E-value and p-value of the whole test.

    The second stage's draws are fresh, so that its e-value multiplies the first's, and p is
    alpha_1 p_2 once the first stage has accepted, p_1 (more than alpha_1) where it has not.
    A first stage that was not blind bounds nothing: then the second's alone count.
    """
    first, last = stages[0], stages[-1]
    if n_stages == 1:
        return first.e_value, first.p_gate
    if blind:
        if len(stages) == 1:
            return first.e_value, first.p_gate
        return first.e_value * last.e_value, first.alpha * last.p_gate
    return (1.0, 1.0) if len(stages) == 1 else (last.e_value, last.p_gate)


def row_of(
    request: Trial, epoch: int, step: int, decision: Decision, snapshot_hash: str
) -> DecisionRow:
    """The decision in the ledger. snapshot_hash: as of the row; empty if none was read."""
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
        snapshot_hash=snapshot_hash,
        prompts_version=request.prompts.version,
        generation=decision.generation,
        seed_draw=decision.seed_draw,
        baseline_rollouts=decision.baseline_rollouts,
        stages=msgspec.json.encode(decision.stages).decode(),
    )
