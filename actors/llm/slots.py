"""A place in the queue before the endpoints, and the leave to send that comes of it."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from actors.llm.breaker import Lease
from actors.llm.classify import Failure
from actors.llm.limiter import Permit
from actors.llm.states import EndpointState
from protocol.llm import Role

__all__ = ["Slot", "Waiter"]


class Slot:
    """Leave to send one request to ``endpoint``.

    Left without ``settle`` (cancelled, crashed) it says nothing about the endpoint, so that no
    probe is lost and none counts. lease: of its breaker; bar: whether it counts for being out.
    """

    def __init__(
        self, state: EndpointState, lease: Lease, bar: Lease | None, permit: Permit
    ) -> None:
        self.endpoint = state.endpoint
        self.probe = lease.probe or (bar is not None and bar.probe)
        self.state = state
        self.lease = lease
        self.bar = bar
        self.permit = permit
        self.failure: Failure | None = None
        self.first_token_s: float | None = None
        self.settled = False

    def settle(self, failure: Failure | None, first_token_s: float | None) -> None:
        """What came of it. failure: None for a whole answer. first_token_s: None if none came."""
        self.settled = True
        self.failure = failure
        self.first_token_s = first_token_s


class Waiter:
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
