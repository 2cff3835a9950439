"""The ladder's error levels in words: those of its decisions, whatever is set now. Pure."""

from __future__ import annotations

from collections.abc import Collection

from actors.gate.levels import alpha_of
from protocol.settings import GateSettings

__all__ = ["level_words"]


def level_words(gate: GateSettings, alphas: Collection[float], *, changed: bool) -> str:
    """``profile balanced, error level 0.2 ...``.

    alphas: of the decisions. changed: a setting was changed on the way, so that those of now need
    not be those of the decisions.
    """
    small, large = (alpha_of(gate, gate.small_units + more) for more in (0, 1))
    if not alphas or (not changed and {small, large}.issuperset(alphas)):
        return (
            f"profile {gate.profile}, error level {small:g} for classes of at most "
            f"{gate.small_units} units, {large:g} for larger ones"
        )
    low, high = min(alphas), max(alphas)
    levels = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return f"profile {gate.profile}, error level of the decisions {levels}"
