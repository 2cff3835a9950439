"""The whole training, as asked by the command line."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request
from protocol.documents import Package

__all__ = ["Train", "TrainingEnded"]


class TrainingEnded(Message, frozen=True, kw_only=True, tag=True):
    """Where the training stands.

    status: ``done``, ``early_stop`` (patience is out) or ``drained`` (asked to stop; resumable).
    epochs: whole epochs. claims_void: the factorial gate's sentinels do not look like coins.
    """

    status: Literal["done", "early_stop", "drained"]
    epochs: int
    seed_package: Package
    best_hard: Package
    best_mixed: Package
    claims_void: bool = False


class Train(Request[TrainingEnded | Refused], frozen=True, kw_only=True, tag=True):
    """Train to the configured number of epochs, from wherever the workspace stands.

    Idempotent: a trainer that crashed goes on from the ledger and the last checkpoint.
    """

    IDEMPOTENT: ClassVar[bool] = True
