"""What retries may cost, over all calls: a budget that keeps an outage from becoming a storm.

Every call earns a share of a retry, every retry spends one; beside that a reserve is refilled
at a slow pace, so that a single call can always be repeated. A retry that finds nothing waits
for its turn, it is not given up: the call's own clocks decide about that. Pure: time comes in
from outside.
"""

from __future__ import annotations

__all__ = ["RetryBudget"]

_REFILL_PER_S = 10.0


class RetryBudget:
    """share: retries earned per call. reserve: most retries that can be in hand.

    Invariant: t seconds after the start, retries made <= reserve + share * calls + 10 * t.
    """

    def __init__(self, share: float, reserve: int, now: float) -> None:
        self._share = share
        self._reserve = float(reserve)
        self._left = float(reserve)
        self._seen = now

    def earn(self) -> None:
        """A call begins."""
        self._left = min(self._reserve, self._left + self._share)

    def spend_s(self, now: float) -> float:
        """Take one retry; the seconds to wait before making it (0: at once)."""
        if self._left < self._reserve:
            self._left = min(self._reserve, self._left + _REFILL_PER_S * (now - self._seen))
        self._seen = now
        self._left -= 1.0
        return max(0.0, -self._left / _REFILL_PER_S)
