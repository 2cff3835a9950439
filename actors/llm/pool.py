"""Who may send now, and where: the queue before all endpoints of a role.

A call waits here, never inside the HTTP client. It is let through to the endpoint whose breaker
is closed, whose limit has room and which asked for no pause; of several to one that has not
failed it yet, then to the one with the least in flight. First come, first served.

While every endpoint of a role is down the role is paused: that is said once, its calls wait,
and each breaker lets one probe through when its cool-down is over; the first that succeeds ends
the pause. The clock of an outage begins with the first call that waits and runs for all of them:
when it is over they are let go, and so is who comes later, until a probe succeeds. It is shorter
for a role that nobody has answered yet: that is a wrong address more often than an outage. An
operator's pause (``Pace``) admits nobody at all, probes neither, and stops the clock.

An endpoint that serves nobody while another one of its role may is out of that role (``states``):
no outage, so that the role is paused only for those that are left. One that wants to be left alone
for longer than a call would wait rests for as long as it said; for longer than an outage may last
it is out.
Never sends, never reads a configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio

from actors.llm.breaker import Breaker
from actors.llm.classify import TOO_LONG, Failure, Verdict, verdict_of
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.limiter import Limit
from actors.llm.pace import Pace
from actors.llm.slots import Slot, Waiter
from actors.llm.states import EndpointState
from actors.llm.telling import (
    tell_back,
    tell_breaker,
    tell_limit_cut,
    tell_out,
    tell_paused,
    tell_resumed,
)
from protocol.llm import EndpointSeen, Role

__all__ = ["EndpointPool", "Slot"]


class EndpointPool:
    """All endpoints with their limits and breakers.

    make_limit, make_breaker: build those of an endpoint. outage_s: how long calls wait while
    their role is paused; first_answer_s: if none of its endpoints has answered yet.
    answered: their names, added to here. pace: the operator's wishes. clock: seconds, monotonic.

    Invariant: an endpoint has at most ``limit.value`` requests in flight, save those that were
    sent before the limit was cut.
    """

    def __init__(
        self,
        endpoints: Sequence[ResolvedEndpoint],
        make_limit: Callable[[ResolvedEndpoint], Limit],
        make_breaker: Callable[[ResolvedEndpoint], Breaker],
        *,
        outage_s: float,
        first_answer_s: float,
        answered: set[str],
        pace: Pace | None = None,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._clock = clock
        self._pace = pace or Pace()
        self._paused_at: float | None = None
        self._paused_s = 0.0
        self._outage_s = outage_s
        self._first_answer_s = min(first_answer_s, outage_s)
        self._answered = answered
        self._states = [
            EndpointState(place, endpoint, make_limit(endpoint), make_breaker(endpoint))
            for place, endpoint in enumerate(endpoints)
        ]
        self._of_role: dict[Role, list[EndpointState]] = {}
        for state in self._states:
            for role in state.endpoint.roles:
                self._of_role.setdefault(role, []).append(state)
        self._queues: dict[Role, deque[Waiter]] = {role: deque() for role in self._of_role}
        self._down_since: dict[Role, float] = {}
        self._waited_since: dict[Role, float] = {}  # of the present outage, by its first waiter
        self._arrivals = 0
        self._pace.obeyed_by(self._obey)
        self._obey()

    def working_time(self) -> float:
        """Seconds, monotonic; it stands still while the operator has paused."""
        now = self._clock() if self._paused_at is None else self._paused_at
        return now - self._paused_s

    def seen(self) -> tuple[EndpointSeen, ...]:
        """Every endpoint at this moment."""
        now = self._clock()
        return tuple(state.seen(now) for state in self._states)

    def _obey(self) -> None:
        """Take up the operator's wishes."""
        now, paused = self._clock(), self._pace.paused_by is not None
        for state in self._states:
            wanted = self._pace.ceilings.get(state.endpoint.name, state.limit.ceiling)
            if wanted != state.limit.ceiling:
                state.limit.allow(wanted)
        if paused and self._paused_at is None:
            self._paused_at = now
        elif not paused and self._paused_at is not None:
            self._paused_s += now - self._paused_at
            self._paused_at = None
        self._serve(tuple(self._queues))
        self._wake(tuple(self._queues))  # whoever slept without an end has one again

    def of_role(self, role: Role) -> tuple[ResolvedEndpoint, ...]:
        """A role's endpoints, in the order of the configuration."""
        return tuple(state.endpoint for state in self._of_role.get(role, ()))

    def never_answered(self, role: Role) -> bool:
        """Whether no endpoint of a role has given a whole answer yet."""
        return not any(state.name in self._answered for state in self._of_role[role])

    def patience_s(self, role: Role) -> float:
        """How long calls wait while all endpoints of their role are down."""
        return self._first_answer_s if self.never_answered(role) else self._outage_s

    def stands_still(self, role: Role) -> bool:
        """Whether nobody is let through but a probe: all are down, or the operator has paused."""
        return self._paused_at is not None or role in self._down_since

    def troubles(self, role: Role) -> dict[str, str]:
        """Where a role's endpoints are and what is wrong with each, in words, by their names."""
        return {state.name: state.trouble for state in self._of_role[role]}

    def goes_on(self, role: Role, name: str, failure: Failure) -> bool:
        """Whether a call may still be answered after a failure that is fatal at endpoint ``name``.

        Elsewhere, or there when the time is over that it asked for.
        """
        if not failure.of_endpoint:
            return False
        return self._rest_s(failure) is not None or self._others(role, name)

    def _others(self, role: Role, name: str) -> bool:
        """Whether a role has another endpoint that it is not out of."""
        return any(role not in state.out_of for state in self._of_role[role] if state.name != name)

    def _rest_s(self, failure: Failure) -> float | None:
        """How long an endpoint wants to be left alone, if that is worth waiting for."""
        wait = failure.retry_after_s
        if failure.kind != TOO_LONG or wait is None or wait > self._outage_s:
            return None
        return wait

    def in_flight(self, name: str) -> int:
        """Requests of an endpoint that are under way."""
        return next(state.in_flight for state in self._states if state.endpoint.name == name)

    def limit(self, name: str) -> int:
        """The present limit of an endpoint."""
        return next(state.limit.value for state in self._states if state.endpoint.name == name)

    @property
    def waiting(self) -> int:
        """Calls in the queues."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def slot(
        self, role: Role, failures: Mapping[str, int], *, retry: bool
    ) -> AsyncIterator[Slot | None]:
        """Wait until an endpoint may be asked; None: all were down for ``patience_s``.

        failures: endpoint name -> how often it has failed this call. retry: not the first try.
        """
        queue = self._queues[role]
        slot = None if queue else self._choose(role, failures, retry)
        if slot is None:
            self._arrivals += 1
            slot = await self._wait(queue, Waiter(self._arrivals, role, failures, retry))
        if slot is None:
            yield None
            return
        try:
            yield slot
        finally:
            self._leave(slot)

    def _choose(self, role: Role, failures: Mapping[str, int], retry: bool) -> Slot | None:
        if self._pace.paused_by is not None:
            return None
        now = self._clock()
        ready = [
            state
            for state in self._of_role[role]
            if state.in_flight < state.limit.value and state.opens_in(now, role) <= 0
        ]
        if not ready:
            return None
        state = min(ready, key=lambda s: (failures.get(s.endpoint.name, 0), s.in_flight, s.place))
        lease = state.breaker.admit(now)
        assert lease is not None, "retry_in said that it lets a request through"
        if lease.probe:
            tell_breaker(state, now)
        bar = state.bar_lease(now, role)
        state.in_flight += 1
        return Slot(state, lease, bar, state.limit.admit(role, state.in_flight, retry=retry))

    async def _wait(self, queue: deque[Waiter], waiter: Waiter) -> Slot | None:
        queue.append(waiter)
        try:
            while waiter.slot is None:
                left = self._outage_left(waiter.role)
                if left <= 0:
                    return None
                with anyio.move_on_after(min(left, self._next_opening(waiter.role))):
                    await waiter.woken.wait()
                if waiter.slot is None:
                    waiter.woken = anyio.Event()
                    self._serve((waiter.role,))
        except BaseException:
            if waiter.slot is not None:  # let through and cancelled at the same moment
                self._leave(waiter.slot)
            raise
        finally:
            if waiter.slot is None:
                queue.remove(waiter)
        return waiter.slot

    def _outage_left(self, role: Role) -> float:
        """Seconds that a call may still wait; the first one that asks starts the clock."""
        if self._paused_at is not None or role not in self._down_since:
            return float("inf")
        now = self.working_time()
        return self.patience_s(role) - (now - self._waited_since.setdefault(role, now))

    def _next_opening(self, role: Role) -> float:
        """Seconds until time alone changes something for a role; infinity: it never does."""
        if self._paused_at is not None:
            return float("inf")
        now = self._clock()
        openings = (state.opens_in(now, role) for state in self._of_role[role])
        return min((opening for opening in openings if opening > 0), default=float("inf"))

    def _serve(self, roles: Sequence[Role]) -> None:
        """Let through whoever can be, the longest waiting first."""
        heads = [self._queues[role] for role in roles if self._queues[role]]
        while heads:
            queue = min(heads, key=lambda queue: queue[0].number)
            first = queue[0]
            first.slot = self._choose(first.role, first.failures, first.retry)
            if first.slot is None:
                heads.remove(queue)
                continue
            queue.popleft()
            first.woken.set()
            if not queue:
                heads.remove(queue)

    def _leave(self, slot: Slot) -> None:
        state, now = slot.state, self._clock()
        opened_in = state.opens_in(now)
        state.in_flight -= 1
        if slot.settled:
            self._adapt(slot, now)
        if slot.failure is not None:
            state.last_error = f"{slot.failure.kind}: {slot.failure.detail}"
        verdict, rest_s = self._speaks(slot)
        if slot.settled and (slot.failure is None or rest_s is not None):
            self._answered.add(state.name)  # who says when to come back is there
        changed = state.breaker.record(slot.lease, verdict, now, rest_s)
        if changed:
            if state.breaker.state == "closed":
                state.limit.recovered()
            tell_breaker(state, now)
        if self._bar(slot, now) or changed:
            self._tell_roles(state.endpoint.roles)
        self._serve(state.endpoint.roles)
        opens_in = state.opens_in(now)
        if opens_in > 0 and not 0 < opened_in <= opens_in:
            self._wake(state.endpoint.roles)

    def _speaks(self, slot: Slot) -> tuple[Verdict, float | None]:
        """What a result says to the endpoint's breaker, and for how long it wants to rest."""
        if not slot.settled:
            return "neutral", None
        rest_s = None if slot.failure is None else self._rest_s(slot.failure)
        if rest_s is not None:
            return "failure", rest_s
        return verdict_of(slot.failure, slot.lease.probe), None

    def _bar(self, slot: Slot, now: float) -> bool:
        """Take the endpoint out of roles, or let it in again; true if either was done."""
        state, failure = slot.state, slot.failure
        roles = frozenset[Role]()
        verdict: Verdict = "success" if slot.settled and failure is None else "neutral"
        if failure is not None and failure.of_endpoint and self._rest_s(failure) is None:
            roles = frozenset(r for r in state.endpoint.roles if self._others(r, state.name))
            verdict = "failure" if roles else "neutral"
        if slot.bar is None:  # of a role that it was not out of; since then another may be left
            changed = bool(state.out_of) and not roles <= state.out_of
        else:
            wait_s = failure.retry_after_s if failure and failure.kind == TOO_LONG else None
            changed = state.bar.record(slot.bar, verdict, now, wait_s) and verdict != "neutral"
        if changed and verdict == "success":
            tell_back(state, now)
            state.out_of = frozenset()
        elif changed:
            state.out_of |= roles
            tell_out(state, now)
        return changed

    def _wake(self, roles: Sequence[Role]) -> None:
        """An endpoint opens at a time that who sleeps does not know of: all look again."""
        for role in roles:
            for waiter in self._queues[role]:
                waiter.woken.set()

    def _adapt(self, slot: Slot, now: float) -> None:
        """Feed the limiter."""
        limit, failure = slot.state.limit, slot.failure
        before = limit.value
        if failure is None:
            limit.answered(slot.permit, now, slot.first_token_s)
        else:
            if failure.retry_after_s is not None and not failure.fatal:
                limit.hold(now, failure.retry_after_s)
            if failure.kind == "rate_limit":
                limit.limited(slot.permit, now, failure.retry_after_s)
            elif verdict_of(failure) == "failure":
                limit.failed()
        if limit.value < before:
            why = "first tokens come late" if failure is None else failure.kind
            tell_limit_cut(slot.state, before, why)

    def _tell_roles(self, roles: Sequence[Role]) -> None:
        """A line for those that are paused now, one for those that go on.

        Roles with the same endpoints share it: it is one thing that happened.
        """
        down = [role for role in roles if self._all_rest(role) and role not in self._down_since]
        up = [role for role in roles if not self._all_rest(role) and role in self._down_since]
        now = self.working_time()
        for alike in self._alike(down):
            for role in alike:
                self._down_since[role] = now
            states, never = self._of_role[alike[0]], self.never_answered(alike[0])
            tell_paused(alike, states, self.patience_s(alike[0]), never=never)
        for alike in self._alike(up):
            began = min(self._down_since.pop(role) for role in alike)
            for role in alike:
                self._waited_since.pop(role, None)
            tell_resumed(alike, now - began)

    def _all_rest(self, role: Role) -> bool:
        return all(
            state.breaker.state != "closed" or role in state.out_of for state in self._of_role[role]
        )

    def _alike(self, roles: Sequence[Role]) -> list[list[Role]]:
        """The roles, those with the same endpoints together."""
        groups: dict[tuple[str, ...], list[Role]] = {}
        for role in roles:
            names = tuple(state.name for state in self._of_role[role])
            groups.setdefault(names, []).append(role)
        return list(groups.values())
