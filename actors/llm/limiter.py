"""How many requests one endpoint bears: adaptive concurrency as a pure state machine.

    slow start   the limit doubles after every round in which all went well
    first cut    a rate limit, or first tokens that come far later than they used to
    afterwards   +5 % a round, cut to 80 % once per episode

A round is as many clean answers as the limit allows at a time. It counts only if the limit was
used (S5), and an answer counts only if its request began after the last cut (S4), was no retry
and came outside the cool-down. A server that queues silently (vLLM, SGLang) never says 429: its
first tokens come late instead, compared role by role, since a judge's prompt is longer than an
agent's. Time comes in from outside; never sleeps.
"""

from __future__ import annotations

from statistics import median

import msgspec

__all__ = ["Limit", "Permit"]

_CUT = 0.8
_GROWTH = 1.05
_USED = 0.8
"""Share of the limit that must have been in flight for a round to show anything."""
_COOLDOWN_S = 15.0
_LATE_FACTOR, _LATE_S = 4.0, 2.0
"""Queueing: the median first token is this many times the best one, and this much later."""
_SLOW_FACTOR, _SLOW_S = 2.0, 0.5
"""Not yet queueing, but no reason to send more."""
_JUDGED_FROM = 8
"""First tokens that make a median worth a comparison."""
_FORGET = 1.05
"""The best median fades by this much a round: the prompts of a later phase are other prompts."""


class Permit(msgspec.Struct, frozen=True):
    """Leave for one request. generation: of the limit it was given under; role: whose it is."""

    generation: int
    role: str
    retry: bool


class Limit:
    """The limit of one endpoint.

    start, ceiling: requests in flight, 1 <= start <= ceiling.

    Invariant: 1 <= value <= ceiling.
    """

    def __init__(self, start: int, ceiling: int) -> None:
        self.value = min(start, ceiling)
        self._floor = self.value
        self._ceiling = ceiling
        self._generation = 0
        self._slow_start = True
        self._cool_until = float("-inf")
        self._held_until = float("-inf")
        self._clean = 0
        self._peak = 0
        self._late: dict[str, list[float]] = {}
        self._best: dict[str, float] = {}

    @property
    def ceiling(self) -> int:
        """The most that ``value`` may become."""
        return self._ceiling

    def allow(self, ceiling: int) -> None:
        """Another ceiling, from now on: a lower one holds at once, a higher one is grown into."""
        self._ceiling = ceiling
        self.value = min(self.value, ceiling)

    def held_for(self, now: float) -> float:
        """Seconds for which the server asked to be left alone; 0: none."""
        return max(0.0, self._held_until - now)

    def admit(self, role: str, in_flight: int, *, retry: bool) -> Permit:
        """Note a request that is sent now. in_flight: with this one."""
        self._peak = max(self._peak, in_flight)
        return Permit(self._generation, role, retry)

    def hold(self, now: float, seconds: float) -> None:
        """The server said when to come back, with whatever status: nobody sends before."""
        self._held_until = max(self._held_until, now + seconds)

    def limited(self, permit: Permit, now: float, retry_after_s: float | None) -> bool:
        """A 429. True if it cut the limit: once per episode, however many requests it met."""
        self._cool_until = max(self._cool_until, now + max(_COOLDOWN_S, retry_after_s or 0.0))
        if permit.generation != self._generation:
            return False
        self._cut(1)
        return True

    def failed(self) -> None:
        """Any other failure of the server: it does not cut, but the round showed nothing."""
        self._clean = 0
        self._peak = 0

    def answered(self, permit: Permit, now: float, first_token_s: float | None) -> bool:
        """A whole answer. True if it ended a round and the limit changed."""
        if permit.generation != self._generation or permit.retry or now < self._cool_until:
            return False
        if first_token_s is not None:
            self._late.setdefault(permit.role, []).append(first_token_s)
        self._clean += 1
        enough = max(self.value, _JUDGED_FROM)
        if self._clean >= enough:
            return self._end_round()
        # failures begin the round anew, but must not hide that a server is overloaded
        return len(self._late.get(permit.role, ())) >= enough and self._relieve(permit.role)

    def recovered(self) -> None:
        """The server is back after an outage: what it bears now is found out from the start."""
        self._generation += 1
        self._slow_start = True
        self._clean = 0
        self._peak = 0
        self._late.clear()
        self.value = min(self.value, self._floor)

    def _end_round(self) -> bool:
        used = self._peak >= _USED * self.value
        pressure = max(map(self._judge, self._late), default=0)
        self._late.clear()
        self._clean = 0
        self._peak = 0
        before = self.value
        if pressure == 2:
            self._cut(min(self._floor, before))
        elif used and pressure == 0:
            step = 2.0 if self._slow_start else _GROWTH
            self.value = min(self._ceiling, max(self.value + 1, int(self.value * step)))
        return self.value != before

    def _relieve(self, role: str) -> bool:
        """Cut for late first tokens in the middle of a round; True if it did."""
        pressure = self._judge(role)
        self._late.pop(role)
        before = self.value
        if pressure == 2:
            self._cut(min(self._floor, before))
        return self.value != before

    def _judge(self, role: str) -> int:
        """0: first tokens come as ever; 1: slower; 2: the server queues."""
        times = self._late[role]
        if len(times) < _JUDGED_FROM:
            return 0
        now = median(times)
        best = min(now, self._best.get(role, now) * _FORGET)
        self._best[role] = best
        if now > _LATE_FACTOR * best and now > best + _LATE_S:
            return 2
        return int(now > _SLOW_FACTOR * best and now > best + _SLOW_S)

    def _cut(self, floor: int) -> None:
        self._generation += 1
        self._slow_start = False
        self._clean = 0
        self._peak = 0
        self._late.clear()
        self.value = max(floor, int(self.value * _CUT))
