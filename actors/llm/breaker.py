"""A circuit breaker as a pure state machine; time comes in from outside.

    closed --failures in a row--> open --cool-down--> half-open --probe succeeds--> closed
                                   ^                      |
                                   +-----probe fails------+   (cool-down doubled, capped)

A failure that says itself how long to wait opens it at once, for that long.
Half-open lets exactly one probe through, as a lease (row P2-6): a probe that is cancelled or
answered with something that says nothing gives it back, and one that is lost may be retaken.
Never sleeps, never reads a clock.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.llm.classify import Verdict

__all__ = ["Breaker", "Lease", "State"]

State = Literal["closed", "open", "half_open"]

COOLDOWN_CAP_S = 60.0


class Lease(msgspec.Struct, frozen=True):
    """Leave to make one request. generation: results of an older one do not count."""

    generation: int
    probe: bool


class Breaker:
    """The breaker of one endpoint.

    failures: in a row, that open it. cooldown_s: first wait before a probe.
    probe_s: after which a probe without a result is taken for lost. cap_s: longest cool-down.

    Invariant: outside ``closed`` at most one lease is current, the probe's.
    """

    def __init__(
        self, failures: int, cooldown_s: float, probe_s: float, cap_s: float = COOLDOWN_CAP_S
    ) -> None:
        self._limit = failures
        self._base_s = cooldown_s
        self._probe_s = probe_s
        self._cap_s = max(cap_s, cooldown_s)
        self._cooldown_s = cooldown_s
        self._state: State = "closed"
        self._failures = 0
        self._generation = 0
        self._until = 0.0  # open: end of the cool-down; half-open: end of the probe's lease

    @property
    def state(self) -> State:
        """Where it stands; a cool-down that is over shows only once a probe is admitted."""
        return self._state

    def retry_in(self, now: float) -> float:
        """Seconds until a request may be let through; 0: now."""
        return 0.0 if self._state == "closed" else max(0.0, self._until - now)

    def admit(self, now: float) -> Lease | None:
        """Let a request through, or not."""
        if self._state == "closed":
            return Lease(self._generation, probe=False)
        if now < self._until:
            return None
        self._state = "half_open"
        self._until = now + self._probe_s
        self._generation += 1
        return Lease(self._generation, probe=True)

    def record(
        self, lease: Lease, verdict: Verdict, now: float, rest_s: float | None = None
    ) -> bool:
        """Take a result in; true if it changed what is let through.

        rest_s: with a failure, how long the server wants to be left alone.
        """
        if lease.generation != self._generation:
            return False  # begun before the trip, or a probe that was given up
        if lease.probe:
            return self._record_probe(verdict, now, rest_s)
        if verdict == "success":
            self._failures = 0
        elif verdict == "failure":
            self._failures += 1
            if rest_s is not None or self._failures >= self._limit:
                self._open(now, rest_s)
                return True
        return False

    def _record_probe(self, verdict: Verdict, now: float, rest_s: float | None) -> bool:
        if verdict == "success":
            self._state = "closed"
            self._failures = 0
            self._cooldown_s = self._base_s
            self._generation += 1
        elif verdict == "failure":
            if rest_s is None:
                self._cooldown_s = min(self._cooldown_s * 2, self._cap_s)
            self._open(now, rest_s)
        else:
            self._generation += 1
            self._until = now  # still half-open; the next caller may probe at once
        return True

    def _open(self, now: float, rest_s: float | None) -> None:
        self._state = "open"
        self._until = now + (self._cooldown_s if rest_s is None else rest_s)
        self._generation += 1
