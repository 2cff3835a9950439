"""What an attempt may use: steps, tokens, seconds of answering. Pure.

A step is a readable action. The time is what the answers took and never the wall clock: waiting
for an endpoint, its outage or a retry is infrastructure, not the agent's slowness, and a replayed
answer counts like the first one did.
"""

from __future__ import annotations

import math

from protocol.rollout import ForcedBy
from protocol.settings import AgentSettings

__all__ = ["Budget"]

_SHOWN_BELOW = 0.5


class Budget:
    """Counts, and says what is left.

    Tokens and time are told in tenths, and only when half is gone: a request that named the
    second would be another request in every run, and no run could be repeated.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self.steps = 0
        self.tokens = 0
        self.seconds = 0.0

    def spend(self, tokens: int, seconds: float) -> None:
        """Book a model's reply."""
        self.tokens += tokens
        self.seconds += seconds

    def ended(self, next_prompt: int) -> ForcedBy:
        """The budget that does not reach for another look; empty: all do.

        next_prompt: tokens that the next request will have: the answer must still be paid for.
        """
        limit = self._settings.token_budget
        if self.steps >= self._settings.max_steps:
            return "steps"
        if limit is not None and self.tokens + next_prompt >= limit:
            return "tokens"
        return "time" if self.seconds >= self._settings.time_budget_s else ""

    def opening(self) -> str:
        """The whole budget, as it is told at first."""
        settings = self._settings
        parts = [f"{settings.max_steps} steps"]
        if settings.token_budget is not None:
            parts.append(f"{settings.token_budget} tokens")
        parts.append(f"{settings.time_budget_s:g} seconds of answering")
        return f"Budget: {', '.join(parts)}. Whichever ends first, you can still answer."

    def line(self) -> str:
        """Where the attempt stands."""
        settings = self._settings
        said = f"Step {self.steps} of {settings.max_steps}."
        limit = settings.token_budget
        said += "" if limit is None else _left("Tokens", 1 - self.tokens / limit)
        return said + _left("Time", 1 - self.seconds / settings.time_budget_s)


def _left(what: str, share: float) -> str:
    if share > _SHOWN_BELOW:
        return ""
    return f" {what} left: {max(0, math.ceil(round(share * 10, 6))) * 10} %."
