"""How strict the gate is with a class, and how often it draws, by the size of its ladder. Pure."""

from __future__ import annotations

from protocol.settings import GateSettings

__all__ = ["GROWTH_ALPHA", "alpha_of", "draws_of"]

GROWTH_ALPHA = 0.3


def alpha_of(settings: GateSettings, n_units: int) -> float:
    """The error level of a class of this size under the profile (GATE.md, The decision)."""
    if settings.profile == "growth":
        return GROWTH_ALPHA
    return settings.alpha_small if n_units <= settings.small_units else settings.alpha_large


def draws_of(settings: GateSettings, n_units: int) -> int:
    """Baseline draws per question of a class of this size (GATE.md: k)."""
    return settings.draws_small if n_units <= settings.small_units else settings.draws_large
