"""Which classes can be trained at all (row P0-3). Pure; drops nothing itself in silence.

A class with too few val questions cannot be judged, one with too few units cannot be
gated. Such a class leaves diag, val and the gate, with its reason; the test pool is
never filtered, so its questions are answered with the default skill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from actors.dataset.units import make_units
from protocol.dataset import ClassCount, Question

__all__ = ["preflight", "trainable_only"]


def preflight(
    diag: Iterable[Question],
    val: Iterable[Question],
    test: Iterable[Question],
    *,
    eval_min_per_class: int,
    trainable_min_units: int,
) -> tuple[ClassCount, ...]:
    """Every class of any pool with its counts, ordered by name.

    ``reason`` is empty for a trainable class, else it names every threshold missed.
    """
    diag = tuple(diag)
    n_diag = Counter(question.task_type for question in diag)
    n_units = Counter(unit.task_type for unit in make_units(diag))
    n_val = Counter(question.task_type for question in val)
    n_test = Counter(question.task_type for question in test)
    counts = []
    for task_type in sorted({*n_diag, *n_val, *n_test}):
        missed = []
        if n_val[task_type] < eval_min_per_class:
            missed.append(f"n_val {n_val[task_type]} < eval_min_per_class {eval_min_per_class}")
        if n_units[task_type] < trainable_min_units:
            missed.append(
                f"n_units {n_units[task_type]} < trainable_min_units {trainable_min_units}"
            )
        counts.append(
            ClassCount(
                task_type=task_type,
                n_diag=n_diag[task_type],
                n_units=n_units[task_type],
                n_val=n_val[task_type],
                n_test=n_test[task_type],
                trainable=not missed,
                reason="; ".join(missed),
            )
        )
    return tuple(counts)


def trainable_only(
    questions: Iterable[Question], classes: Iterable[ClassCount]
) -> tuple[Question, ...]:
    """The questions of trainable classes, in their order: for diag and val, never for test."""
    kept = {count.task_type for count in classes if count.trainable}
    return tuple(question for question in questions if question.task_type in kept)
