"""The endpoints of every role: which one is next, how many requests each bears.

Chooses by state alone (breaker, requests in flight, order in the configuration). Never sends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import structlog

from actors.llm.breaker import Breaker, Lease
from actors.llm.classify import Verdict
from protocol.llm import Role
from protocol.settings import Endpoint

__all__ = ["EndpointPool", "ResolvedEndpoint", "Slot", "resolve_endpoints"]

log = structlog.get_logger("llm")


@dataclass(frozen=True)
class ResolvedEndpoint:
    """An endpoint with its key; the key is never shown. url: of chat completions."""

    name: str
    url: str
    model: str
    roles: tuple[Role, ...]
    api_key: str | None = field(default=None, repr=False)


def resolve_endpoints(
    endpoints: Sequence[Endpoint], environ: Mapping[str, str]
) -> tuple[ResolvedEndpoint, ...]:
    """The endpoints with the keys that the environment holds for them.

    Raises ValueError naming variable and endpoint where a key is missing or empty.
    """
    resolved = []
    for endpoint in endpoints:
        api_key = None
        if endpoint.api_key_env is not None:
            api_key = environ.get(endpoint.api_key_env, "").strip()
            if not api_key:
                raise ValueError(
                    f"environment variable {endpoint.api_key_env} is not set; "
                    f"endpoint {endpoint.name!r} takes its key from it"
                )
            if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
                raise ValueError(
                    f"environment variable {endpoint.api_key_env} holds characters that no key "
                    f"has (a line break or blank?); endpoint {endpoint.name!r} needs it"
                )
        resolved.append(
            ResolvedEndpoint(
                name=endpoint.name,
                url=endpoint.base_url.rstrip("/") + "/chat/completions",
                model=endpoint.model,
                roles=endpoint.roles,
                api_key=api_key,
            )
        )
    return tuple(resolved)


class Slot:
    """Leave to send one request. ``verdict`` stays neutral unless the sender sets it.

    detail: what went wrong, for the log line when the breaker opens.
    """

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.verdict: Verdict = "neutral"
        self.detail = ""


class _State:
    """One endpoint at run time. in_flight: requests sent or waiting for a permit."""

    def __init__(self, place: int, limiter: anyio.CapacityLimiter, breaker: Breaker) -> None:
        self.place = place
        self.limiter = limiter
        self.breaker = breaker
        self.in_flight = 0


class EndpointPool:
    """All endpoints, their limiters and their breakers.

    make_breaker: builds one per endpoint. clock: seconds, monotonic.
    """

    def __init__(
        self,
        endpoints: Sequence[ResolvedEndpoint],
        concurrency: int,
        make_breaker: Callable[[], Breaker],
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._clock = clock
        self._endpoints = tuple(endpoints)
        self._states = {
            endpoint.name: _State(place, anyio.CapacityLimiter(concurrency), make_breaker())
            for place, endpoint in enumerate(endpoints)
        }
        self._changed = anyio.Event()

    def of_role(self, role: Role) -> tuple[ResolvedEndpoint, ...]:
        """A role's endpoints, in the order of the configuration."""
        return tuple(endpoint for endpoint in self._endpoints if role in endpoint.roles)

    def models(self, role: Role) -> tuple[str, ...]:
        """The distinct models that serve a role, sorted."""
        return tuple(sorted({endpoint.model for endpoint in self.of_role(role)}))

    def in_flight(self, name: str) -> int:
        """Requests of an endpoint, waiting ones included."""
        return self._states[name].in_flight

    def pick(
        self, role: Role, resting: Callable[[str], bool], failures: Callable[[str], int]
    ) -> ResolvedEndpoint | None:
        """The best endpoint whose breaker lets a request through; None: none does.

        Not resting before resting, fewer failures of this call before more, then the least in
        flight, then the order of the configuration.
        """
        now = self._clock()
        states = self._states
        free = [e for e in self.of_role(role) if states[e.name].breaker.retry_in(now) <= 0]
        return min(
            free,
            key=lambda e: (
                resting(e.name),
                failures(e.name),
                states[e.name].in_flight,
                states[e.name].place,
            ),
            default=None,
        )

    async def wait_for_change(self, role: Role, at_most_s: float) -> None:
        """Until a breaker changes, the first cool-down of the role ends, or the time is over."""
        now = self._clock()
        first = min(
            (self._states[e.name].breaker.retry_in(now) for e in self.of_role(role)), default=0.0
        )
        with anyio.move_on_after(min(at_most_s, first)):
            await self._changed.wait()

    @asynccontextmanager
    async def slot(self, endpoint: ResolvedEndpoint) -> AsyncIterator[Slot | None]:
        """Wait for a permit, then ask the breaker; None: it lets nothing through any more.

        Leaving without a verdict (cancelled, crashed) is neutral, so that no probe is lost.
        """
        state = self._states[endpoint.name]
        state.in_flight += 1
        try:
            async with state.limiter:
                lease = state.breaker.admit(self._clock())
                if lease is None:
                    yield None
                    return
                slot = Slot(lease)
                try:
                    yield slot
                finally:
                    if state.breaker.record(lease, slot.verdict, self._clock()):
                        self._tell(endpoint, state.breaker, slot.detail)
                        self._changed.set()
                        self._changed = anyio.Event()
        finally:
            state.in_flight -= 1

    def _tell(self, endpoint: ResolvedEndpoint, breaker: Breaker, detail: str) -> None:
        """One line per change of state: what the operator needs to know of an outage."""
        if breaker.state == "open":
            log.warning(
                "llm.breaker_open",
                endpoint=endpoint.name,
                last_error=detail,
                retry_in_s=round(breaker.retry_in(self._clock()), 1),
            )
        elif breaker.state == "closed":
            log.info("llm.breaker_closed", endpoint=endpoint.name)
