"""One endpoint at run time: its breaker, its limit, what it last said. Never sends, never waits."""

from __future__ import annotations

from actors.llm.breaker import Breaker
from actors.llm.causes import address_of, cause_of
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.limiter import Limit

__all__ = ["EndpointState"]


class EndpointState:
    """place: in the order of the configuration. last_error: kind and detail; empty: none yet.

    open_since, probes: of the present rest of its breaker.
    """

    def __init__(
        self, place: int, endpoint: ResolvedEndpoint, limit: Limit, breaker: Breaker
    ) -> None:
        self.place = place
        self.endpoint = endpoint
        self.limit = limit
        self.breaker = breaker
        self.in_flight = 0
        self.last_error = ""
        self.open_since = 0.0
        self.probes = 0

    @property
    def name(self) -> str:
        """As the configuration calls it."""
        return self.endpoint.name

    @property
    def trouble(self) -> str:
        """Where it is and what is wrong, in words: ``http://.../v1: the name does not resolve``."""
        return f"{address_of(self.endpoint.url)}: {cause_of(self.last_error) or 'unknown'}"

    def opens_in(self, now: float) -> float:
        """Seconds until breaker and Retry-After let a request through; 0: now."""
        return max(self.breaker.retry_in(now), self.limit.held_for(now))
