"""The operator's pause: nobody is let through, nothing is lost, and no clock runs against it."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors.llm.limiter import Limit
from actors.llm.pace import Pace
from tests.llm.pools import COOLDOWN_S, DOWN, once, pool, sending

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Seconds are exact and cost nothing."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def test_a_pause_admits_nobody_and_what_is_in_flight_finishes() -> None:
    """Who came first is let through first when it goes on."""
    pace = Pace()
    one = pool("a", limit=1, pace=pace)
    order: list[int] = []

    async def call(number: int) -> None:
        async with sending(one):
            order.append(number)

    async with anyio.create_task_group() as tasks:
        async with sending(one):
            assert pace.pause("me")
            assert not pace.pause("another"), "it says who was first"
            assert pace.paused_by == "me"
            for number in range(5):
                tasks.start_soon(call, number)
                await anyio.wait_all_tasks_blocked()
        await anyio.sleep(50_000)
        assert order == []
        assert (one.in_flight("a"), one.waiting) == (0, 5)
        assert pace.resume()
        assert not pace.resume()
    assert order == list(range(5))


async def test_an_outage_does_not_age_while_the_operator_has_paused() -> None:
    """A call that may wait 1000 s for its role still waits 1000 s after a pause of a day."""
    pace = Pace()
    one = pool("a", limit=4, outage_s=1000.0, pace=pace)
    gave_up_at: list[float] = []

    async def keep_failing() -> None:
        while not gave_up_at:
            async with one.slot("search", {}, retry=False) as slot:
                if slot is None:
                    gave_up_at.append(anyio.current_time())
                else:
                    slot.settle(DOWN, None)

    async with anyio.create_task_group() as tasks:
        await once(one, DOWN)
        begun = anyio.current_time()
        tasks.start_soon(keep_failing)
        await anyio.sleep(500)
        pace.pause("me")
        await anyio.sleep(86_400)
        assert gave_up_at == []
        assert one.working_time() < 1000
        pace.resume()
    waited = gave_up_at[0] - begun - 86_400
    assert waited == pytest.approx(1000)


async def test_no_probe_is_made_in_a_pause_and_one_as_soon_as_it_ends() -> None:
    """A broken endpoint is left alone too; the cool-down that passed meanwhile counts."""
    pace = Pace()
    one = pool("a", pace=pace)
    await once(one, DOWN)
    answered: list[float] = []

    async def call() -> None:
        async with sending(one) as slot:
            answered.append(anyio.current_time())
            slot.settle(None, 0.1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        pace.pause("me")
        await anyio.sleep(10 * COOLDOWN_S)
        assert answered == []
        resumed = anyio.current_time()
        with capture_logs() as logs:
            pace.resume()
            await anyio.sleep(1)
    assert answered == [resumed]
    told = [event["event"] for event in logs]
    assert told == ["llm.breaker_half_open", "llm.breaker_closed", "llm.resumed"]
    assert all(event["next"] for event in logs)


async def test_another_ceiling_holds_at_once_and_is_grown_into() -> None:
    """Lowered: the limit falls. Raised: it may grow further; who waits is served."""
    pace = Pace()
    two = pool("a", "b", limit=8, ceiling=8, pace=pace)
    pace.allow("a", 2)
    assert (two.limit("a"), two.limit("b")) == (2, 8)
    pace.allow("b", 64)
    assert two.limit("b") == 8
    assert [one.ceiling for one in two.seen()] == [2, 64]
    with pytest.raises(ValueError, match="pause instead"):
        pace.allow("a", 0)


async def test_wishes_outlive_the_pool() -> None:
    """The client crashed and was built anew: it is still paused, with the same ceilings."""
    pace = Pace()
    pool("a", limit=8, pace=pace)
    pace.pause("me")
    pace.allow("a", 3)
    second = pool("a", limit=8, pace=pace)
    assert second.limit("a") == 3
    let: list[str] = []

    async def call() -> None:
        let.append(await once(second))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.sleep(10)
        assert let == []
        pace.resume()
    assert let == ["a"]


@pytest.mark.parametrize("ceiling", [1, 7, 8, 200])
def test_the_limit_never_leaves_its_bounds(ceiling: int) -> None:
    """The invariant of ``Limit``, with a ceiling that moves under it."""
    limit = Limit(8, 64)
    limit.allow(ceiling)
    for second in range(2000):
        permit = limit.admit("search", limit.value, retry=False)
        if second % 97 == 0:
            limit.limited(permit, float(second), None)
        else:
            limit.answered(permit, float(second), 0.1)
        assert 1 <= limit.value <= ceiling
        if second == 1000:
            limit.recovered()
