"""How strict the gate is with a class, and how often it draws, by the size of its ladder. Pure."""

from __future__ import annotations

from fractions import Fraction

from actors.gate.eprocess import exact_alpha
from protocol.settings import GateSettings

__all__ = [
    "AUDIT_ALPHA",
    "GROWTH_ALPHA",
    "GROWTH_Q",
    "alpha_of",
    "bound_of",
    "draws_of",
    "q_of",
    "stages_of",
]

GROWTH_ALPHA = 0.3
AUDIT_ALPHA = 0.3
GROWTH_Q = Fraction(1, 5)


def alpha_of(settings: GateSettings, n_units: int) -> float:
    """The error level of a stage for a class of this size (GATE.md, The decision)."""
    if settings.profile == "growth":
        return GROWTH_ALPHA
    if settings.profile == "audit":
        return AUDIT_ALPHA
    return settings.alpha_small if n_units <= settings.small_units else settings.alpha_large


def draws_of(settings: GateSettings, n_units: int) -> int:
    """Baseline draws per question of a class of this size (GATE.md: k)."""
    return settings.draws_small if n_units <= settings.small_units else settings.draws_large


def stages_of(settings: GateSettings) -> int:
    """How many stages an accept takes; each has a level of ``alpha_of`` and draws of its own."""
    return 2 if settings.profile == "audit" else 1


def bound_of(alpha: float, n_stages: int, *, blind: bool) -> float:
    """The level that holds for a whole test of so many stages.

    Nothing is assumed about how the stages' results depend on each other. The second stage's
    draws, of both arms, are made for it alone, so that whatever has been seen before (the first
    stage too) a candidate that is no better passes it with at most alpha (study, T5); and it is
    only reached by what the first stage took, at most alpha for a snapshot drawn without looking
    (T2). Hence alpha * alpha over both.

    blind: nothing was chosen by the first snapshot's answers. Where something was, the first
    stage bounds nothing and alpha of the second remains.
    """
    level = exact_alpha(alpha)
    return float(Fraction(level ** (n_stages if blind else 1)))


def q_of(settings: GateSettings) -> Fraction:
    """The factorial design's bound of the share of adopted edits that change nothing."""
    return GROWTH_Q if settings.profile == "growth" else exact_alpha(settings.q)
