"""One endpoint at run time: its breaker, its limit, what it last said. Never sends, never waits.

Two things keep requests away from it. Its breaker is open when it fails; then it is down, and
its roles may be paused for it. It is out of a role when it answers and serves nobody (a refused
key, an empty account, an unknown model) while another endpoint of that role is left: a long
cool-down, then one call probes it. The last endpoint of a role is never out of it.
"""

from __future__ import annotations

from actors.llm.breaker import Breaker, Lease
from actors.llm.causes import address_of, cause_of
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.limiter import Limit
from protocol.llm import EndpointSeen, Role

__all__ = ["OUT_CAP_S", "OUT_S", "EndpointState"]

OUT_S, OUT_CAP_S = 60.0, 900.0
"""Until an endpoint that is out is tried again: at first, and at most."""


class EndpointState:
    """place: in the order of the configuration. last_error: kind and detail; empty: none yet.

    open_since, probes: of the present rest of its breaker.
    out_of: the roles that it is out of; out_since, refusals: of that.
    bar: a breaker that one refusal opens, and only a whole answer closes.

    Invariant: ``bar`` is closed if and only if ``out_of`` is empty.
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
        self.bar = Breaker(1, OUT_S, OUT_CAP_S, OUT_CAP_S)
        self.out_of: frozenset[Role] = frozenset()
        self.out_since = 0.0
        self.refusals = 0

    @property
    def name(self) -> str:
        """As the configuration calls it."""
        return self.endpoint.name

    @property
    def trouble(self) -> str:
        """Where it is and what is wrong, in words: ``http://.../v1: the name does not resolve``."""
        return f"{address_of(self.endpoint.url)}: {cause_of(self.last_error) or 'unknown'}"

    def seen(self, now: float) -> EndpointSeen:
        """How it stands at this moment."""
        return EndpointSeen(
            name=self.name,
            roles=self.endpoint.roles,
            in_flight=self.in_flight,
            limit=self.limit.value,
            ceiling=self.limit.ceiling,
            breaker="out" if self.out_of else self.breaker.state,
            opens_in_s=round(self.opens_in(now), 1),
            last_error=self.last_error,
        )

    def opens_in(self, now: float, role: Role | None = None) -> float:
        """Seconds until breaker, Retry-After and bar let a request through; 0: now.

        role: whose request; None: of a role that it is out of, if there is any.
        """
        free_in = max(self.breaker.retry_in(now), self.limit.held_for(now))
        barred = self.out_of if role is None else role in self.out_of
        return max(free_in, self.bar.retry_in(now)) if barred else free_in

    def bar_lease(self, now: float, role: Role) -> Lease | None:
        """Leave to be refused; None: what comes of this request says nothing new about that."""
        if role in self.out_of or not self.out_of:
            return self.bar.admit(now)
        return None
