"""S11 as a property: calls fail, crash and are cancelled at any moment; no place is lost."""

from __future__ import annotations

from typing import Literal, NamedTuple

import anyio
import hypothesis.strategies as st
from hypothesis import given
from hypothesis import settings as profile
from structlog.testing import capture_logs

from protocol.llm import Role
from tests.llm.pools import BUSY, DOWN, REFUSED, once, pool, sending
from tests.llm.support import in_virtual_time


class Call(NamedTuple):
    """One call: when it comes, how long each try takes, what becomes of it, when it is cancelled.

    Times are in tenths of a second, so that many things happen at the same moment.
    """

    role: Role
    comes: int
    takes: int
    ends: Literal["answer", "down", "busy", "refused", "crash"]
    cancelled: int | None


calls = st.lists(
    st.builds(
        Call,
        st.sampled_from(["search", "search", "judge"]),
        st.integers(0, 30),
        st.integers(0, 30),
        st.sampled_from(["answer", "answer", "answer", "down", "busy", "refused", "crash"]),
        st.none() | st.integers(0, 60),
    ),
    max_size=40,
)


class Run:
    """Calls against three endpoints; some of them fail, crash or are cancelled at any moment."""

    NAMES = ("a", "b", "c")

    def __init__(self) -> None:
        self.pool = pool(
            *self.NAMES,
            limit=2,
            failures=2,
            outage_s=1e6,
            roles={"a": ("search",), "b": ("search", "judge"), "c": ("judge",)},
        )
        self.most = dict.fromkeys(self.NAMES, 2)
        self.ended = 0

    async def call(self, call: Call) -> None:
        await anyio.sleep(call.comes / 10)
        with anyio.CancelScope() as scope:
            if call.cancelled is not None:
                scope.deadline = anyio.current_time() + call.cancelled / 10
            try:
                await self.send(call)
            except LookupError:
                assert call.ends == "crash"
        self.ended += 1

    async def send(self, call: Call) -> None:
        async with sending(self.pool, call.role) as slot:
            name = slot.endpoint.name
            self.most[name] = max(self.most[name], self.pool.limit(name))
            assert self.pool.in_flight(name) <= self.most[name]
            assert call.role in slot.endpoint.roles
            await anyio.sleep(call.takes / 10)
            match call.ends:
                case "crash":
                    raise LookupError
                case "down":
                    slot.settle(DOWN, None)
                case "busy":
                    slot.settle(BUSY, None)
                case "refused":
                    slot.settle(REFUSED, None)
                case "answer":
                    slot.settle(None, 0.1)
        for role in ("search", "judge"):  # the last endpoint of a role is never out of it
            states = self.pool._of_role[role]
            assert not all(role in state.out_of for state in states)
            assert all((state.bar.state == "closed") == (not state.out_of) for state in states)

    async def take(self, calls: list[Call]) -> None:
        with anyio.fail_after(10_000):
            async with anyio.create_task_group() as tasks:
                for call in calls:
                    tasks.start_soon(self.call, call)
        assert self.ended == len(calls)
        assert self.pool.waiting == 0
        assert [self.pool.in_flight(name) for name in self.NAMES] == [0, 0, 0]
        with anyio.fail_after(1000):
            for role in ("search", "judge"):
                await once(self.pool, role=role)


@profile(max_examples=150, deadline=None)
@given(calls)
def test_S11_whatever_happens_every_call_ends_and_no_place_is_lost(calls: list[Call]) -> None:
    """S11: and never are there more in flight than the limit allows."""
    with capture_logs():
        in_virtual_time(lambda: Run().take(calls))
