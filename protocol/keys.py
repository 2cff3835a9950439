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
    "epoch_salt",
    "evaluation_key",
    "slow_key",
    "slug",
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


def baseline_key(task_type: str, skill_hash: str, prompts_version: str, draw: int) -> str:
    """One draw of a class's fixed baseline snapshot."""
    return f"baseline/{slug(task_type)}/{skill_hash[:16]}/{prompts_version}/d{draw}"


def epoch_salt(seed: int, epoch: int) -> str:
    """Rollouts, val and test: resampled across epochs, a hit on resume within one."""
    return f"seed{seed}/e{epoch}"


def candidate_salt(seed: int, epoch: int, task_type: str, block: int, candidate_hash: str) -> str:
    """The gate's candidate arm: epoch + block + candidate."""
    return f"seed{seed}/e{epoch}/{slug(task_type)}/b{block}/{candidate_hash[:16]}"


def baseline_salt(seed: int, draw: int) -> str:
    """The gate's baseline arm: no epoch; draws of one snapshot are told apart."""
    return f"seed{seed}/baseline/d{draw}"
