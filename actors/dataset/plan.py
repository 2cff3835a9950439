"""The work of one epoch: folds and batches of every class. Pure.

The dataset actor plans a run's epochs with it, and a split shows with it what the first epoch
would be, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.dataset.batches import make_batches
from actors.dataset.folds import fold_units
from protocol.dataset import ClassWork, Unit
from protocol.settings import DataSettings

__all__ = ["plan_classes"]


def plan_classes(
    units: Mapping[str, Sequence[Unit]],
    right: Mapping[str, bool],
    settings: DataSettings,
    *,
    seed: int,
    epoch: int,
) -> tuple[ClassWork, ...]:
    """The work of each class, ordered by name.

    units: the diag units of the trainable classes. right: the latest known outcomes.

    Raises MissingOutcomeError naming every question of a design fold without an outcome.
    """
    work = []
    for task_type, members in sorted(units.items()):
        folds = fold_units(
            members,
            seed=seed,
            epoch=epoch,
            design_share=settings.design_share,
            trainable_min_units=settings.trainable_min_units,
        )
        batches = make_batches(
            (question for unit in folds.design for question in unit.questions),
            right,
            seed=seed,
            epoch=epoch,
            batch_size=settings.batch_size,
        )
        work.append(
            ClassWork(
                task_type=task_type,
                batches=batches,
                ladder=folds.ladder,
                in_sample=folds.in_sample,
            )
        )
    return tuple(work)
