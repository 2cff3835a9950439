"""Which units of a class proposals may read, and which the gate tests on. Pure.

Never looks at outcomes: its arguments hold none, so that the gate's evidence stays
independent of what the proposals were made from (GATE.md, Which units).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from fractions import Fraction

import msgspec

from protocol.dataset import Unit

__all__ = ["Folds", "fold_units"]


class Folds(msgspec.Struct, frozen=True, kw_only=True):
    """One class in one epoch. in_sample: both folds are all units of the class."""

    design: tuple[Unit, ...]
    ladder: tuple[Unit, ...]
    in_sample: bool


def fold_units(
    units: Iterable[Unit],
    *,
    seed: int,
    epoch: int,
    design_share: float,
    trainable_min_units: int,
) -> Folds:
    """Design and gate fold of the units of ONE class, each ordered by video.

    The videos are ranked by a keyed hash of (seed, epoch, class, video); the first
    ``design_share`` of them are the design fold, at least one. A gate fold with fewer
    than ``trainable_min_units`` cannot decide: then both are all units, ``in_sample``.

    Raises ValueError if the units belong to several classes.
    """
    ordered = sorted(units, key=lambda unit: unit.video_id)
    classes = {unit.task_type for unit in ordered}
    if len(classes) > 1:
        raise ValueError(f"folds are made per class, got {sorted(classes)}")
    ranked = sorted(ordered, key=lambda unit: _rank(unit, seed, epoch))
    # Fraction(str): 0.7 means seven tenths, not the float a hair below it
    n_design = max(1, int(len(ranked) * Fraction(str(design_share))))
    if len(ranked) - n_design < trainable_min_units:
        return Folds(design=tuple(ordered), ladder=tuple(ordered), in_sample=True)
    chosen = {unit.unit_id for unit in ranked[:n_design]}
    return Folds(
        design=tuple(unit for unit in ordered if unit.unit_id in chosen),
        ladder=tuple(unit for unit in ordered if unit.unit_id not in chosen),
        in_sample=False,
    )


def _rank(unit: Unit, seed: int, epoch: int) -> str:
    key = f"fold/seed{seed}/e{epoch}/{unit.task_type}/{unit.video_id}"
    return hashlib.sha256(key.encode("utf-8")).hexdigest()
