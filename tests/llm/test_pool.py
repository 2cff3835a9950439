"""Who may send, and where: order, choice, outages, and that no place is ever lost (S11)."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint
from trio.testing import MockClock

from actors.llm.classify import Failure
from protocol.llm import Role
from tests.llm.pools import BUSY, COOLDOWN_S, DOWN, PROBE_S, once, pool, sending
from tests.runtime.support import on_trio

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str | tuple[str, dict[str, object]]:
    """Both: they differ in what happens when a call is let through and cancelled at once."""
    if request.param == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio"


async def test_least_in_flight_then_the_order_of_the_configuration() -> None:
    """A failure of this call outweighs the load, and the fewest failures win."""
    two = pool("a", "b")
    async with sending(two) as first, sending(two) as second:
        assert (first.endpoint.name, second.endpoint.name) == ("a", "b")
        assert (two.in_flight("a"), two.in_flight("b")) == (1, 1)
    async with sending(two), sending(two, failures={"b": 1}) as slot:
        assert slot.endpoint.name == "a"
    async with sending(two, failures={"a": 2, "b": 1}) as slot:
        assert slot.endpoint.name == "b"
    assert two.in_flight("a") == two.in_flight("b") == 0


async def test_an_endpoint_that_failed_this_call_is_better_than_none() -> None:
    """With no room elsewhere the call goes back to it, without waiting."""
    two = pool("a", "b", limit=1)
    async with sending(two, failures={"a": 1}) as first, sending(two, failures={"b": 1}) as second:
        assert (first.endpoint.name, second.endpoint.name) == ("b", "a")


async def test_a_role_knows_its_own_endpoints_only() -> None:
    """In the order of the configuration; a role without any has none."""
    two = pool("a", "b", roles={"a": ("search",), "b": ("judge", "search")})
    assert [one.name for one in two.of_role("search")] == ["a", "b"]
    assert [one.name for one in two.of_role("judge")] == ["b"]
    assert two.of_role("vision") == ()
    assert await once(two, role="judge") == "b"


async def test_never_more_than_the_limit_and_first_come_first_served() -> None:
    """Over roles: an agent's call does not overtake a judge's."""
    one = pool("a", limit=1)
    order: list[int] = []

    async def call(number: int, role: Role) -> None:
        async with sending(one, role):
            assert one.in_flight("a") == 1
            order.append(number)
            await checkpoint()

    async with anyio.create_task_group() as tasks, sending(one):
        roles: list[Role] = ["search", "judge", "judge", "search", "evolve"]
        for number, role in enumerate(roles * 4):
            tasks.start_soon(call, number, role)
            await anyio.wait_all_tasks_blocked()
        assert one.waiting == 20
    assert order == list(range(20))
    assert one.waiting == 0


@on_trio
async def test_who_comes_when_the_pause_is_over_does_not_overtake_who_sat_it_out() -> None:
    """Even if the sleepers have not looked at the clock yet."""
    now = 0.0
    one = pool("a", limit=1, clock=lambda: now)
    await once(one, BUSY)
    order: list[str] = []

    async def call(name: str) -> None:
        async with sending(one):
            order.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "waited")
        await anyio.wait_all_tasks_blocked()
        now = 2.0
        await call("came late")
    assert order == ["waited", "came late"]


async def test_a_limit_that_grows_lets_more_through_at_once() -> None:
    """The eighth answer doubles it, and both places are taken."""
    one = pool("a", limit=1)
    for _ in range(7):
        await once(one)
    assert one.limit("a") == 1
    let_through = 0
    go = anyio.Event()

    async def call() -> None:
        nonlocal let_through
        async with sending(one):
            let_through += 1
            await go.wait()

    async with anyio.create_task_group() as tasks:
        async with sending(one) as slot:
            for _ in range(3):
                tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert let_through == 0
            slot.settle(None, None)
        await anyio.wait_all_tasks_blocked()
        assert (one.limit("a"), let_through, one.waiting) == (2, 2, 1)
        go.set()


async def test_an_open_breaker_is_passed_over() -> None:
    """As long as there is another endpoint."""
    two = pool("a", "b")
    assert await once(two, DOWN) == "a"
    assert [await once(two) for _ in range(4)] == ["b"] * 4


@on_trio
async def test_S6_a_herd_sends_one_probe() -> None:
    """S6: its success lets the others through at that moment."""
    one = pool("a", limit=200, ceiling=200)
    await once(one, DOWN)
    times: list[tuple[float, bool]] = []
    began = anyio.current_time()

    async def call() -> None:
        async with sending(one) as slot:
            times.append((anyio.current_time() - began, slot.probe))
            await anyio.sleep(5.0)
            slot.settle(None, None)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(call)
    assert times == [(COOLDOWN_S, True)] + [(COOLDOWN_S + 5.0, False)] * 99


@on_trio
async def test_P2_6_a_probe_that_is_refused_has_reached_the_server() -> None:
    """P2-6: a 429 closes the breaker; how much it bears is the limiter's business."""
    one = pool("a")
    await once(one, DOWN)
    async with sending(one) as slot:
        assert slot.probe
        slot.settle(Failure("rate_limit", "HTTP 429"), None)
    async with sending(one) as slot:
        assert not slot.probe


@on_trio
async def test_S7_a_cancelled_probe_gives_its_place_to_the_next_at_once() -> None:
    """S7: and says nothing about the endpoint: the cool-down is not doubled."""
    one = pool("a")
    await once(one, DOWN)
    began = anyio.current_time()
    with anyio.move_on_after(COOLDOWN_S + 1.0):
        async with sending(one) as slot:
            assert slot.probe
            await anyio.sleep_forever()
    async with sending(one) as slot:
        assert slot.probe
        assert anyio.current_time() - began == COOLDOWN_S + 1.0
        slot.settle(DOWN, None)
    await once(one)
    assert anyio.current_time() - began == COOLDOWN_S + 1.0 + 2 * COOLDOWN_S


@on_trio
async def test_S8_a_probe_that_never_ends_is_taken_for_lost() -> None:
    """S8: after its time another call may probe; the limit must have room for both."""
    one = pool("a")
    await once(one, DOWN)
    began = anyio.current_time()
    probing = anyio.Event()

    async def hang() -> None:
        async with sending(one):
            probing.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hang)
        await probing.wait()
        async with sending(one) as slot:
            assert slot.probe
            assert anyio.current_time() - began == COOLDOWN_S + PROBE_S
            slot.settle(None, None)
        await once(one)
        tasks.cancel_scope.cancel()


@on_trio
async def test_a_pause_that_the_server_asked_for_holds_everyone() -> None:
    """Also those who come later, and those of another role; another endpoint is not held."""
    one = pool("a", limit=10)
    began = anyio.current_time()
    await once(one, BUSY)
    times: list[float] = []

    async def call(role: Role, after: float) -> None:
        await anyio.sleep(after)
        async with sending(one, role):
            times.append(anyio.current_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "search", 0.0)
        tasks.start_soon(call, "judge", 1.0)
        tasks.start_soon(call, "search", 1.5)
    assert times == [2.0, 2.0, 2.0]
    two = pool("a", "b")
    await once(two, BUSY)
    assert [await once(two) for _ in range(4)] == ["b"] * 4


@on_trio
async def test_a_pause_after_a_failure_that_is_final_holds_nobody() -> None:
    """A Retry-After beyond the cap ends its own call; who knows what it is worth to others."""
    one = pool("a")
    await once(one, Failure("retry_after_too_long", "an hour", 3600.0))
    with anyio.fail_after(1.0):
        await once(one)


@on_trio
@pytest.mark.parametrize("failure", [DOWN, BUSY], ids=["breaker", "pause"])
async def test_who_waits_for_room_learns_that_the_endpoint_went_down(failure: Failure) -> None:
    """Also when the call that saw it is gone: nobody must sleep until the end of the outage."""
    one = pool("a", limit=1)
    began = anyio.current_time()

    async def call() -> None:
        async with sending(one, "judge") as slot:
            slot.settle(None, None)

    async with anyio.create_task_group() as tasks, sending(one) as slot:
        for _ in range(3):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        slot.settle(failure, None)
    assert anyio.current_time() - began == (COOLDOWN_S if failure is DOWN else 2.0)


@on_trio
async def test_waiting_for_room_has_no_end() -> None:
    """Back-pressure is no outage, however long it takes."""
    one = pool("a", limit=1, outage_s=100.0)
    async with anyio.create_task_group() as tasks, sending(one):
        tasks.start_soon(once, one)
        await anyio.sleep(10_000.0)
        assert one.waiting == 1
    assert one.waiting == 0


@pytest.mark.parametrize("first", ["cancelled", "let through"])
async def test_who_is_let_through_and_cancelled_at_once_gives_the_place_back(first: str) -> None:
    """S11: in the same tick of the loop, in either order; the next one gets it."""
    one = pool("a", limit=1)
    served: list[str] = []
    scope = anyio.CancelScope()

    async def doomed() -> None:
        with scope:
            async with sending(one):
                await checkpoint()
                served.append("doomed")

    async def patient() -> None:
        async with sending(one):
            served.append("patient")

    async with anyio.create_task_group() as tasks:
        async with sending(one):
            tasks.start_soon(doomed)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(patient)
            await anyio.wait_all_tasks_blocked()
            if first == "cancelled":
                scope.cancel()
        scope.cancel()
    assert served == ["patient"]
    assert (one.in_flight("a"), one.waiting) == (0, 0)


async def test_S11_cancelled_waiters_leave_nothing_behind() -> None:
    """S11: a thousand calls for ten places; 990 are cancelled in the queue."""
    one = pool("a", limit=10, ceiling=10)
    served = 0
    go = anyio.Event()

    async def call(scope: anyio.CancelScope) -> None:
        nonlocal served
        with scope:
            async with sending(one):
                served += 1
                await go.wait()

    scopes = [anyio.CancelScope() for _ in range(1000)]
    async with anyio.create_task_group() as tasks:
        for scope in scopes:
            tasks.start_soon(call, scope)
        await anyio.wait_all_tasks_blocked()
        assert (served, one.waiting, one.in_flight("a")) == (10, 990, 10)
        for number in range(1000):
            if number % 100:
                scopes[number].cancel()
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert 10 <= served <= 20
    assert (one.in_flight("a"), one.waiting) == (0, 0)
