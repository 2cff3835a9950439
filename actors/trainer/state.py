"""What the trainer carries from epoch to epoch, and how the best is chosen. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from protocol.documents import Package
from protocol.rows import EvaluationRow

__all__ = ["TrainerState", "after_epoch", "best_of"]


class TrainerState(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpointed part.

    epoch: the last whole epoch. observed_epoch: the last epoch whose outcomes the gate has
    observed; ahead of ``epoch`` only between the two checkpoints of a boundary (row W-5).
    """

    epoch: int
    seed_package: Package
    current: Package
    best_hard: Package
    best_mixed: Package
    epochs_since_best_improved: int
    observed_epoch: int

    @property
    def gate_epoch_observed(self) -> bool:
        """Whether the epoch that is under way was already observed by the gate."""
        return self.observed_epoch > self.epoch


def _value(row: EvaluationRow, metric: str) -> float:
    return row.mixed if metric == "mixed" else row.right / row.planned


def best_of(rows: Sequence[EvaluationRow], metric: str) -> Package | None:
    """The package of the best ``seed`` or ``final`` row on val; ties: the earlier epoch.

    metric: ``hard`` or ``mixed``. None if no row counts.
    """
    counted = [row for row in rows if row.pool == "val" and row.kind in ("seed", "final")]
    best: EvaluationRow | None = None
    for row in sorted(counted, key=lambda row: row.epoch):
        if row.planned and (best is None or _value(row, metric) > _value(best, metric)):
            best = row
    if best is None:
        return None
    return best.package


def after_epoch(
    state: TrainerState, current: Package, rows: Sequence[EvaluationRow]
) -> TrainerState:
    """The state once an epoch is whole.

    ``epochs_since_best_improved`` counts epochs, not steps (row P0-5). An epoch improves the
    best when another package becomes the best; the same package drawn again does not.
    """
    best_hard = best_of(rows, "hard") or state.best_hard
    best_mixed = best_of(rows, "mixed") or state.best_mixed
    improved = (best_hard, best_mixed) != (state.best_hard, state.best_mixed)
    return TrainerState(
        epoch=state.epoch + 1,
        seed_package=state.seed_package,
        current=current,
        best_hard=best_hard,
        best_mixed=best_mixed,
        epochs_since_best_improved=0 if improved else state.epochs_since_best_improved + 1,
        observed_epoch=state.epoch + 1,
    )
