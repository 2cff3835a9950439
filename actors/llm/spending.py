"""What a workspace has spent, against its limits. Never talks to anybody.

Calls are counted when they are sent, tokens and money when they are known: what is in flight
when a limit is reached is still paid for.
"""

from __future__ import annotations

from protocol.llm import Usage
from protocol.settings import LimitSettings

__all__ = ["Spending"]

_RAISE = "raise it with --set and resume, nothing is lost"


class Spending:
    """Running sums. calls, tokens, usd: what former processes spent."""

    def __init__(
        self, limits: LimitSettings, *, calls: int = 0, tokens: int = 0, usd: float = 0.0
    ) -> None:
        self._limits = limits
        self.calls = calls
        self.tokens = tokens
        self.usd = usd

    def over(self) -> str | None:
        """Which limit forbids another call, in words; None: none does."""
        limits = self._limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            return f"limits.max_calls = {limits.max_calls}: {self.calls} calls were made; {_RAISE}"
        if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
            used = f"limits.max_tokens = {limits.max_tokens}: {self.tokens} tokens were used"
            return f"{used}; {_RAISE}"
        if limits.max_usd is not None and self.usd >= limits.max_usd:
            return f"limits.max_usd = {limits.max_usd:g}: ${self.usd:.2f} were spent; {_RAISE}"
        return None

    def begin(self) -> None:
        """A request is sent."""
        self.calls += 1

    def add(self, usage: Usage, usd: float | None) -> None:
        """Its tokens are known."""
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.usd += usd or 0.0
