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
Never sends, never reads a configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio

from actors.llm.breaker import Breaker, Lease
from actors.llm.classify import Failure, verdict_of
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.limiter import Limit, Permit
from actors.llm.pace import Pace
from actors.llm.states import EndpointState
from actors.llm.telling import tell_breaker, tell_limit_cut, tell_paused, tell_resumed
from protocol.llm import EndpointSeen, Role

__all__ = ["EndpointPool", "Slot"]


class Slot:
    """Leave to send one request to ``endpoint``.

    Left without ``settle`` (cancelled, crashed) it says nothing about the endpoint, so that no
    probe is lost and none counts.
    """

    def __init__(self, state: EndpointState, lease: Lease, permit: Permit) -> None:
        self.endpoint = state.endpoint
        self.probe = lease.probe
        self.state = state
        self.lease = lease
        self.permit = permit
        self.failure: Failure | None = None
        self.first_token_s: float | None = None
        self.settled = False

    def settle(self, failure: Failure | None, first_token_s: float | None) -> None:
        """What came of it. failure: None for a whole answer. first_token_s: None if none came."""
        self.settled = True
        self.failure = failure
        self.first_token_s = first_token_s


class _Waiter:
    """A call in the queue; ``slot`` is set when it is let through.

    woken: look again, with or without a slot.
    """

    def __init__(self, number: int, role: Role, failures: Mapping[str, int], retry: bool) -> None:
        self.number = number
        self.role = role
        self.failures = failures
        self.retry = retry
        self.woken = anyio.Event()
        self.slot: Slot | None = None


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
        self._queues: dict[Role, deque[_Waiter]] = {role: deque() for role in self._of_role}
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
        return tuple(
            EndpointSeen(
                name=state.endpoint.name,
                roles=state.endpoint.roles,
                in_flight=state.in_flight,
                limit=state.limit.value,
                ceiling=state.limit.ceiling,
                breaker=state.breaker.state,
                opens_in_s=round(state.opens_in(now), 1),
                last_error=state.last_error,
            )
            for state in self._states
        )

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
            slot = await self._wait(queue, _Waiter(self._arrivals, role, failures, retry))
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
            if state.in_flight < state.limit.value and state.opens_in(now) <= 0
        ]
        if not ready:
            return None
        state = min(ready, key=lambda s: (failures.get(s.endpoint.name, 0), s.in_flight, s.place))
        lease = state.breaker.admit(now)
        assert lease is not None, "retry_in said that it lets a request through"
        if lease.probe:
            tell_breaker(state, now)
        state.in_flight += 1
        return Slot(state, lease, state.limit.admit(role, state.in_flight, retry=retry))

    async def _wait(self, queue: deque[_Waiter], waiter: _Waiter) -> Slot | None:
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
        openings = (state.opens_in(now) for state in self._of_role[role])
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
        verdict = verdict_of(slot.failure, slot.probe) if slot.settled else "neutral"
        if slot.settled and slot.failure is None:
            self._answered.add(state.name)
        if slot.failure is not None:
            state.last_error = f"{slot.failure.kind}: {slot.failure.detail}"
        if state.breaker.record(slot.lease, verdict, now):
            if state.breaker.state == "closed":
                state.limit.recovered()
            tell_breaker(state, now)
            self._tell_roles(state.endpoint.roles)
        self._serve(state.endpoint.roles)
        opens_in = state.opens_in(now)
        if opens_in > 0 and not 0 < opened_in <= opens_in:
            self._wake(state.endpoint.roles)

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
        return all(state.breaker.state != "closed" for state in self._of_role[role])

    def _alike(self, roles: Sequence[Role]) -> list[list[Role]]:
        """The roles, those with the same endpoints together."""
        groups: dict[tuple[str, ...], list[Role]] = {}
        for role in roles:
            names = tuple(state.name for state in self._of_role[role])
            groups.setdefault(names, []).append(role)
        return list(groups.values())
