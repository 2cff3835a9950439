"""Pools of endpoints that nobody serves, and requests that only wait: who may send, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import msgspec

from actors.llm.breaker import Breaker
from actors.llm.classify import Failure
from actors.llm.endpoints import resolve_endpoints
from actors.llm.limiter import Limit
from actors.llm.pace import Pace
from actors.llm.pool import EndpointPool, Slot
from protocol.llm import Role
from tests.llm.support import endpoint

__all__ = ["BUSY", "COOLDOWN_S", "DOWN", "PROBE_S", "REFUSED", "once", "pool", "sending"]

DOWN = Failure("transport", "ConnectError")
BUSY = Failure("rate_limit", "HTTP 429", 2.0)
REFUSED = Failure("auth", "HTTP 401: no")
COOLDOWN_S = 10.0
PROBE_S = 300.0
OUTAGE_S = 1000.0


def pool(
    *names: str,
    limit: int = 2,
    ceiling: int = 64,
    failures: int = 1,
    outage_s: float = OUTAGE_S,
    first_answer_s: float = float("inf"),
    answered: set[str] | None = None,
    roles: Mapping[str, tuple[Role, ...]] | None = None,
    pace: Pace | None = None,
    clock: Callable[[], float] = anyio.current_time,
) -> EndpointPool:
    """Endpoints for every role, save those in ``roles``."""
    wanted = [endpoint(f"http://{name}/v1", name) for name in names]
    if roles is not None:
        wanted = [msgspec.structs.replace(one, roles=roles[one.name]) for one in wanted]
    return EndpointPool(
        resolve_endpoints(wanted, {}, ceiling),
        lambda endpoint: Limit(limit, endpoint.concurrency),
        lambda _: Breaker(failures, COOLDOWN_S, PROBE_S),
        outage_s=outage_s,
        first_answer_s=first_answer_s,
        answered=set() if answered is None else answered,
        pace=pace,
        clock=clock,
    )


@asynccontextmanager
async def sending(
    of: EndpointPool, role: Role = "search", failures: Mapping[str, int] | None = None
) -> AsyncIterator[Slot]:
    """A slot that there must be."""
    async with of.slot(role, failures or {}, retry=bool(failures)) as slot:
        assert slot is not None
        yield slot


async def once(of: EndpointPool, failure: Failure | None = None, role: Role = "search") -> str:
    """One request; the name of the endpoint that it went to."""
    async with sending(of, role) as slot:
        slot.settle(failure, None)
        return slot.endpoint.name
