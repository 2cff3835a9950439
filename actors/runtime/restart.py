"""When to restart, when to give up. Pure: time is handed in."""

from __future__ import annotations

import hashlib
from collections import deque

__all__ = ["RestartBudget", "pause_s"]


class RestartBudget:
    """At most ``max_restarts`` crashes within any ``period_s`` seconds."""

    def __init__(self, max_restarts: int, period_s: float) -> None:
        self.max_restarts = max_restarts
        self.period_s = period_s
        self._crashes: deque[float] = deque()

    @property
    def recent(self) -> int:
        """Crashes in the window that ended with the last one."""
        return len(self._crashes)

    @property
    def used(self) -> str:
        """For a log line: ``2 of 5 in 60 s``."""
        return f"{self.recent} of {self.max_restarts} in {self.period_s:g} s"

    def allows(self, now: float) -> bool:
        """Count a crash at ``now`` (seconds); False: give up."""
        self._crashes.append(now)
        while self._crashes[0] <= now - self.period_s:
            self._crashes.popleft()
        return len(self._crashes) <= self.max_restarts


def pause_s(name: str, restart: int, recent: int, *, base_s: float, cap_s: float) -> float:
    """Seconds to wait before a restart: doubled with every recent crash, with jitter.

    restart: how many this actor has had, this one included; recent: crashes in the window,
    at least 1. The jitter takes away up to a half; it is a hash of name and restart, so that
    actors that fall together do not rise together and a run still repeats itself.
    """
    digest = hashlib.sha256(f"restart {name} {restart}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    longest = min(cap_s, base_s * 2.0 ** min(recent - 1, 64))
    return longest * (1.0 - share / 2)
