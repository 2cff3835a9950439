"""Names of passes (``run_key``) and salts: pure functions, one place.

A ``run_key`` is a path; deleting a step's rows deletes that path and all below
it (row P2-3). A salt separates draws that must be independent (row P1-1):
everything that must be resampled in every epoch carries the epoch; the baseline
arm does not (row P1-1a). Salts never hold a run id or a time, so that the same
seed and the same endpoint answers give the same run.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = [
    "baseline_key",
    "baseline_salt",
    "candidate_salt",
    "confirm_salt",
    "epoch_salt",
    "evaluation_key",
    "null_key",
    "null_salt",
    "pair_key",
    "pair_salt",
    "phase_key",
    "slow_key",
    "slug",
    "snapshot_key",
    "step_key",
]

PoolName = Literal["diag", "val", "test"]


def slug(task_type: str) -> str:
    """A class name as a file stem: ``OCR Problems`` -> ``ocr-problems``."""
    return re.sub(r"[^a-z0-9_]+", "-", task_type.lower()).strip("-")


def step_key(epoch: int, task_type: str, step: int) -> str:
    """The step's own path; rollouts, diagnosis, proposal and gate lie below it."""
    return f"e{epoch}/{slug(task_type)}/s{step}"


def slow_key(epoch: int) -> str:
    """The slow update's own path: its two passes and everything that it writes lie below it."""
    return f"e{epoch}/slow"


def evaluation_key(epoch: int, pool: PoolName, kind: str) -> str:
    """A whole-package pass over a pool; epoch 0 is before training."""
    return f"e{epoch}/{pool}/{kind}"


def baseline_key(
    task_type: str,
    skill_hash: str,
    prompts_version: str,
    draw: int,
    generation: int = 0,
    confirms: str = "",
) -> str:
    """One draw of a class's fixed baseline snapshot; see ``baseline_salt`` for the last two."""
    return f"{snapshot_key(task_type, skill_hash, prompts_version, generation, confirms)}d{draw}"


def snapshot_key(
    task_type: str, skill_hash: str, prompts_version: str, generation: int = 0, confirms: str = ""
) -> str:
    """What the keys of all draws of a snapshot begin with."""
    which = _snapshot(generation, confirms)
    return f"baseline/{slug(task_type)}/{skill_hash[:16]}/{prompts_version}/{which}"


def null_key(task_type: str, index: int) -> str:
    """A null comparison of a class: the current text against itself."""
    return f"aa/{slug(task_type)}/n{index}"


def phase_key(task_type: str, phase: int) -> str:
    """All pairs of a class in a phase of the factorial gate; not below an epoch's path."""
    return f"factorial/{slug(task_type)}/p{phase}"


def pair_key(task_type: str, phase: int, pair: int, arm: str) -> str:
    """One arm (``a`` or ``b``) of a pair."""
    return f"{phase_key(task_type, phase)}/{pair}/{arm}"


def epoch_salt(seed: int, epoch: int) -> str:
    """Rollouts, val and test: resampled across epochs, a hit on resume within one."""
    return f"seed{seed}/e{epoch}"


def candidate_salt(seed: int, epoch: int, task_type: str, block: int, candidate_hash: str) -> str:
    """The gate's candidate arm: epoch + block + candidate."""
    return f"seed{seed}/e{epoch}/{slug(task_type)}/b{block}/{candidate_hash[:16]}"


def baseline_salt(seed: int, draw: int, generation: int = 0, confirms: str = "") -> str:
    """The gate's baseline arm: no epoch; draws of one snapshot are told apart.

    generation: 0 for a skill's first snapshot, 1 for the one that replaces it, and so on.
    confirms: the run_key of the test whose second stage this snapshot alone serves, else empty.
    """
    return f"seed{seed}/baseline/{_snapshot(generation, confirms)}d{draw}"


def confirm_salt(seed: int, run_key: str, block: int, candidate_hash: str) -> str:
    """The candidate arm of a test's second stage: never drawn for any other test."""
    return f"seed{seed}/confirm/{run_key}/b{block}/{candidate_hash[:16]}"


def null_salt(seed: int, index: int, task_type: str, block: int, text_hash: str) -> str:
    """The second arm of a null comparison, told apart from other arms by its index."""
    return f"seed{seed}/aa{index}/{slug(task_type)}/b{block}/{text_hash[:16]}"


def pair_salt(seed: int, task_type: str, pair: int, arm: str) -> str:
    """One arm of a pair of the factorial gate; pairs are numbered over all phases of a class."""
    return f"seed{seed}/factorial/{slug(task_type)}/{pair}/{arm}"


def _snapshot(generation: int, confirms: str) -> str:
    """Which snapshot of a skill; a first one is not named, so that its draws keep their names."""
    if confirms:
        return f"confirm/{confirms}/"
    return f"g{generation}/" if generation else ""
