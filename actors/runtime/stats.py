"""What can be seen of the actors: plain numbers, read at any time, logged every ``stats_s``."""

from __future__ import annotations

import math

import msgspec

from actors.runtime.control import State

__all__ = ["ActorStats", "LoopLag", "Tally"]


class Tally:
    """The counters of one actor, over all its incarnations; only the runtime writes them."""

    __slots__ = (
        "abandoned",
        "crashes",
        "failed",
        "handled",
        "handler_s",
        "handler_s_max",
        "redelivered",
        "restarts",
        "wait_s",
        "wait_s_max",
    )

    def __init__(self) -> None:
        self.handled = 0
        self.failed = 0
        self.abandoned = 0
        self.crashes = 0
        self.restarts = 0
        self.redelivered = 0
        self.wait_s = 0.0
        self.wait_s_max = 0.0
        self.handler_s = 0.0
        self.handler_s_max = 0.0

    def waited(self, seconds: float) -> None:
        """A message was taken out of the mailbox after this long."""
        self.wait_s += seconds
        self.wait_s_max = max(self.wait_s_max, seconds)

    def ran(self, seconds: float) -> None:
        """A handler ended, in whatever way, after this long."""
        self.handler_s += seconds
        self.handler_s_max = max(self.handler_s_max, seconds)


class LoopLag:
    """How late the event loop comes to what is due: samples of one period of statistics.

    Only the runtime writes and takes them. A loop that is held up answers nobody meanwhile.
    """

    __slots__ = ("_late_s",)

    def __init__(self) -> None:
        self._late_s: list[float] = []

    def add(self, late_s: float) -> None:
        """Something was begun this long after it was due."""
        self._late_s.append(late_s)

    def take(self) -> dict[str, float]:
        """``lag_max_ms`` and ``lag_p99_ms`` of the samples so far, and forget them.

        The p99 is the smallest sample that at least 99 % do not exceed; both are 0 without one.
        """
        ordered, self._late_s = sorted(self._late_s), []
        if not ordered:
            return {"lag_max_ms": 0.0, "lag_p99_ms": 0.0}
        p99 = ordered[math.ceil(0.99 * len(ordered)) - 1]
        return {"lag_max_ms": round(ordered[-1] * 1e3, 2), "lag_p99_ms": round(p99 * 1e3, 2)}


class ActorStats(msgspec.Struct, frozen=True, kw_only=True):
    """One actor at one moment; times in seconds, counts since the start of the run."""

    actor: str
    """Its name in the wiring."""
    state: State
    """starting, up, restarting, stopping or dead."""
    incarnation: int
    """1 for the first, one more after every restart."""
    depth: int
    """Messages that wait in the mailbox."""
    size: int
    """Most messages that senders may have waiting."""
    high_water: int
    """The largest number that senders had waiting."""
    senders_waiting: int
    """Senders held up because the mailbox is full."""
    oldest_s: float
    """Age of the message that has waited longest, 0 if none waits."""
    in_flight: int
    """Handlers running now."""
    running_s: float
    """How long the oldest of them has been running, 0 if none runs."""
    pending_asks: int
    """Asks to this actor that have not ended: waiting, queued or running."""
    handled: int
    """Messages handled to their end."""
    failed: int
    """Messages that ended with an AskFailed from below."""
    abandoned: int
    """Messages dropped or cut short: the deadline passed, or the asker left."""
    crashes: int
    """Crashes of an incarnation."""
    restarts: int
    """Incarnations after a crash."""
    redelivered: int
    """Messages handed to another incarnation."""
    wait_s: float
    """Time between being sent and being begun, summed over the messages."""
    wait_s_max: float
    """The longest of these."""
    handler_s: float
    """Time spent in handlers, summed."""
    handler_s_max: float
    """The longest of these."""
