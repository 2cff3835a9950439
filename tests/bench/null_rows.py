"""The rows and messages that ``null_classes`` hands to the gate's code."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from protocol.dataset import Question, Unit
from protocol.gate import Verdict
from protocol.rollout import Answered
from protocol.rows import DecisionRow, OutcomeRow

__all__ = ["CLASS", "answered", "decision_row", "outcome_row", "units_of"]

CLASS = "a class"


@lru_cache
def units_of(n_units: int) -> tuple[Unit, ...]:
    """A class's units, one question each, named by their number."""
    return tuple(
        Unit(
            unit_id=f"{CLASS}/{i}",
            video_id=str(i),
            task_type=CLASS,
            questions=(
                Question(
                    question_id=str(i),
                    video_id=str(i),
                    task_type=CLASS,
                    question="?",
                    options=("1", "2"),
                    answer="A",
                ),
            ),
        )
        for i in range(n_units)
    )


@lru_cache(maxsize=1024)
def answered(question_id: str, right: bool) -> Answered:
    """What a rollout replies."""
    return Answered(
        question_id=question_id,
        right=right,
        letter="A",
        submitted="A",
        confidence=0.5,
        stop="submitted",
        n_steps=1,
    )


def decision_row(
    run_key: str, epoch: int, step: int, skill: str, verdict: Verdict, generation: int
) -> DecisionRow:
    """A decision that read a snapshot; what nothing here reads is empty."""
    row = _no_decision()
    return msgspec.structs.replace(
        row,
        run_key=run_key,
        epoch=epoch,
        step=step,
        verdict=verdict,
        snapshot_hash=skill,
        generation=generation,
    )


@lru_cache
def _no_decision() -> DecisionRow:
    return DecisionRow(
        run_key="",
        epoch=0,
        step=0,
        task_type=CLASS,
        current_hash="",
        candidate_hash="",
        verdict="",
        reason="",
        alpha=0.0,
        n_units=0,
        evaluated=0,
        wins=0,
        losses=0,
        ties=0,
        missing=0,
        e_value=1.0,
        p_gate=1.0,
        lower_bound=None,
        looks="[]",
        in_sample=False,
        rollouts=0,
        prompts_version="v1",
    )


def outcome_row(run_key: str, unit: Unit, right: bool) -> OutcomeRow:
    """A candidate's answer, as a rollout leaves it."""
    return OutcomeRow(
        run_key=run_key,
        question_id=unit.video_id,
        video_id=unit.video_id,
        task_type=CLASS,
        outcome="right" if right else "wrong",
        letter="A",
        submitted="A",
        confidence=0.5,
        stop="submitted",
        missing_kind=None,
        detail="",
        n_steps=1,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
        skill_hash="",
        prompts_version="v1",
        salt="",
    )
