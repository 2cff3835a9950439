"""How an endpoint goes out of its roles and comes back, in exact time."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors.llm.classify import Failure
from actors.llm.states import OUT_CAP_S, OUT_S
from protocol.llm import Role
from tests.llm.pools import BUSY, COOLDOWN_S, DOWN, REFUSED, once, pool, sending
from tests.runtime.support import on_trio

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Hours of waiting in no time."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@on_trio
async def test_one_call_probes_it_after_a_long_cool_down() -> None:
    """Twice as late after every refusal, a quarter of an hour at most; then it is back."""
    two = pool("a", "b", failures=8)
    with capture_logs() as lines:
        assert await once(two, REFUSED) == "a"
        waits = []
        for _ in range(6):
            began = anyio.current_time()
            while two.seen()[0].opens_in_s > 0:
                assert await once(two) == "b"
                await anyio.sleep(1.0)
            waits.append(anyio.current_time() - began)
            async with sending(two) as probe, sending(two) as other:
                assert (probe.endpoint.name, probe.probe) == ("a", True)
                assert (other.endpoint.name, other.probe) == ("b", False)
                probe.settle(REFUSED, None)
                other.settle(None, None)
        await anyio.sleep(OUT_CAP_S)
        assert await once(two) == "a"
    assert waits == [OUT_S, 2 * OUT_S, 4 * OUT_S, 8 * OUT_S, OUT_CAP_S, OUT_CAP_S]
    assert [one.breaker for one in two.seen()] == ["closed", "closed"]
    assert [line["event"] for line in lines] == ["llm.endpoint_out"] * 7 + ["llm.endpoint_back"]
    assert [line.get("repeated") for line in lines[:7]] == [False, *[True] * 6]
    assert lines[7]["out_s"] == sum(waits) + OUT_CAP_S


@on_trio
@pytest.mark.parametrize("said", [DOWN, BUSY], ids=["down", "busy"])
async def test_a_probe_that_fails_otherwise_says_nothing_about_its_key(said: Failure) -> None:
    """The next call may probe, when breaker and Retry-After allow it."""
    two = pool("a", "b", failures=8)
    await once(two, REFUSED)
    await anyio.sleep(OUT_S)
    assert await once(two, said) == "a"
    assert two.seen()[0].breaker == "out"
    await anyio.sleep(two.seen()[0].opens_in_s)
    assert await once(two) == "a"
    assert two.seen()[0].breaker == "closed"


@on_trio
async def test_those_that_were_under_way_are_told_once() -> None:
    """Refusals of requests that were sent before it was out change nothing; nor do answers."""
    two = pool("a", "b", limit=8)
    with capture_logs() as lines:
        async with sending(two) as first, sending(two), sending(two) as second, sending(two):
            async with sending(two) as third:
                assert {s.endpoint.name for s in (first, second, third)} == {"a"}
                third.settle(REFUSED, None)
            first.settle(REFUSED, None)
            second.settle(None, None)
    assert [line["event"] for line in lines] == ["llm.endpoint_out"]
    assert two.seen()[0].breaker == "out"


@on_trio
async def test_it_is_out_only_where_another_one_is_left() -> None:
    """A judge that nobody can stand in for is asked as before, and its refusals stand."""
    roles: dict[str, tuple[Role, ...]] = {"a": ("search", "judge"), "b": ("search",)}
    two = pool("a", "b", roles=roles)
    with capture_logs() as lines:
        await once(two, REFUSED)
        assert await once(two, REFUSED, role="judge") == "a"
    assert [line["roles"] for line in lines] == [["search"]]
    assert two.goes_on("search", "a", REFUSED)
    assert not two.goes_on("judge", "a", REFUSED)
    assert not two.goes_on("search", "b", REFUSED)
    assert await once(two) == "b"


@on_trio
async def test_it_goes_out_of_another_role_when_somebody_is_left_there() -> None:
    """Else the calls of that role would be sent back to it without an end."""
    roles: dict[str, tuple[Role, ...]] = {
        "a": ("search", "judge"),
        "b": ("judge",),
        "c": ("search",),
    }
    three = pool("a", "b", "c", roles=roles)
    async with sending(three, "judge") as one, sending(three, "judge") as two:
        assert (one.endpoint.name, two.endpoint.name) == ("a", "b")
        two.settle(REFUSED, None)
        one.settle(None, None)
    await once(three, REFUSED)
    assert three._states[0].out_of == {"search"}
    await anyio.sleep(OUT_S - 1.0)
    async with sending(three, "judge") as last:  # b is let in again meanwhile
        assert last.endpoint.name == "a"
        await anyio.sleep(1.0)
        assert await once(three, role="judge") == "b"
        last.settle(REFUSED, None)
    assert three._states[0].out_of == {"search", "judge"}
    assert three.goes_on("judge", "a", REFUSED)


@on_trio
async def test_a_role_is_paused_for_those_that_are_left() -> None:
    """Who waits is let go when the outage is over, not when the key is refused again."""
    two = pool("a", "b", outage_s=1000.0, answered={"a"})
    began = anyio.current_time()
    with capture_logs() as lines:
        assert await once(two, DOWN) == "a"
        assert await once(two, REFUSED) == "b"
        assert two.stands_still("search")
        asked_at: dict[str, list[float]] = {"a": [], "b": []}
        while True:
            async with two.slot("search", {}, retry=True) as slot:
                if slot is None:
                    break
                assert slot.probe
                asked_at[slot.endpoint.name].append(anyio.current_time() - began)
                slot.settle(DOWN if slot.endpoint.name == "a" else REFUSED, None)
    assert anyio.current_time() - began == 1000.0
    assert asked_at["a"][0] == COOLDOWN_S
    assert asked_at["b"] == [60.0, 180.0, 420.0, 900.0]
    assert len([line for line in lines if line["event"] == "llm.paused"]) == 1


@on_trio
async def test_an_endpoint_that_is_back_ends_the_pause() -> None:
    """The other is still down: its roles go on with the one whose key is taken again."""
    two = pool("a", "b", answered={"a"})
    with capture_logs() as lines:
        await once(two, DOWN)
        await once(two, REFUSED)
        await anyio.sleep(OUT_S)
        assert await once(two, DOWN) == "a"
        assert await once(two) == "b"
    assert not two.stands_still("search")
    assert [line["event"] for line in lines][-2:] == ["llm.endpoint_back", "llm.resumed"]
