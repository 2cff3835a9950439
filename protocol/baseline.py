"""Fixed baseline outcomes per unit (rows P1-1a, P1-4, P2-2)."""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Request
from protocol.dataset import KnownOutcome, Unit
from protocol.documents import Prompts, Skill

__all__ = ["Draws", "GetSnapshot", "SeedOutcomes", "SeedOutcomesReady", "SnapshotReady"]


class Draws(Message, frozen=True, kw_only=True, tag=True):
    """A question's fixed draws under one skill, oldest first; empty when all are missing."""

    unit_id: str
    question_id: str
    right: tuple[bool, ...]


class SnapshotReady(Message, frozen=True, kw_only=True, tag=True):
    """The snapshot of a class: one entry per question of the asked units, in their order.

    drawn: how many rollouts were run for it now (0: all were there).
    missing: question ids whose draws are incomplete after the retries.
    outage: what kept draws away that a later try may get, empty if nothing did.
    unreadable: that they could not be read kept them away: nothing that passes by itself.
    seed_draw: some of the draws are the seed's own predictions, which also chose the pools.
    rollouts: how many of the draws were rollouts of this run, whenever they were made.
    """

    draws: tuple[Draws, ...]
    drawn: int
    missing: tuple[str, ...]
    outage: str = ""
    unreadable: bool = False
    seed_draw: bool = False
    rollouts: int = 0


class GetSnapshot(Request[SnapshotReady], frozen=True, kw_only=True, tag=True):
    """The outcomes of the current skill on these units, drawn once and kept.

    n_draws: draws per question (GATE.md: k).
    others: the package's other skills; part of the snapshot where the agent chooses its skill.
    generation: which snapshot of the skill: 0 the first, 1 the one that replaces it, ...
    confirms: run_key of the test whose second stage the snapshot alone serves, else empty.
    """

    IDEMPOTENT: ClassVar[bool] = True

    skill: Skill
    prompts: Prompts
    units: tuple[Unit, ...]
    n_draws: int
    others: tuple[Skill, ...] = ()
    generation: int = 0
    confirms: str = ""


class SeedOutcomesReady(Message, frozen=True, kw_only=True, tag=True):
    """The seed's predictions, one per question, ordered by question id."""

    run_id: str
    outcomes: tuple[KnownOutcome, ...]


class SeedOutcomes(Request[SeedOutcomesReady], frozen=True, kw_only=True, tag=True):
    """What the seed's baseline run answered; read-only, no call is made."""

    IDEMPOTENT: ClassVar[bool] = True
