"""Rows for the ledger's tests."""

from __future__ import annotations

from protocol.rows import EpochRow, OutcomeRow, TraceRow

__all__ = ["epoch", "outcome", "trace"]


def outcome(run_key: str, question_id: str, result: str = "right", **changes: str) -> OutcomeRow:
    """An outcome with every column filled."""
    fields: dict[str, object] = {
        "run_key": run_key,
        "question_id": question_id,
        "video_id": "v1",
        "task_type": "Counting Problem",
        "outcome": result,
        "letter": "B",
        "submitted": "B",
        "confidence": 0.75,
        "stop": "submitted",
        "missing_kind": None,
        "detail": "",
        "n_steps": 3,
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "seconds": 0.5,
        "skill_hash": "0" * 64,
        "prompts_version": "v1",
        "salt": "seed1/e1",
        **changes,
    }
    return OutcomeRow(**fields)  # type: ignore[arg-type]  # a test's shorthand


def epoch(number: int) -> EpochRow:
    """An epoch row."""
    return EpochRow(
        epoch=number,
        skills_version="v2",
        prompts_version="v1",
        tests=4,
        accepted=1,
        sum_alpha=0.8,
        seed_draws=0,
        epochs_since_best_improved=0,
    )


def trace(run_key: str, question_id: str, step: int) -> TraceRow:
    """A step."""
    return TraceRow(
        run_key=run_key,
        question_id=question_id,
        step=step,
        thought="",
        tool="view_node",
        arguments="{}",
        observation="",
        raw="",
        node_ids="[]",
        prompt_tokens=1,
        completion_tokens=1,
        seconds=0.1,
    )
