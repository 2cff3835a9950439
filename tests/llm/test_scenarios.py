"""The scenarios of the reference (S1-S20) through the whole client, over real sockets.

    S1   test_transport: cancellations do not poison the pool
    S2   test_http1: the keep-alive race
    S3   here; the waits in exact time in test_ladder
    S4   here; the limit alone in test_limiter
    S5   here; the limit alone in test_limiter
    S6   here; in exact time in test_pool
    S7   here; in exact time in test_pool
    S8   here; a lease that outlives its probe in test_pool and test_breaker
    S9   here
    S10  here: nothing is handed on before an answer is whole
    S11  here; as a property in test_pool_interleavings
    S12  test_transport: the connection; test_actor: the accounts
    S13  test_scenarios_answers; what a bug leaves behind in test_ladder
    S14  test_actor: identical calls in progress are one
    S15  test_scenarios_answers; what is kept in test_actor
    S16  test_scenarios_answers
    S17  tests/cache
    S18  test_ladder and test_actor; the end of a whole run in tests/system
    S19  test_scenarios_answers; every spelling of the header in test_retry_after
    S20  test_scenarios_answers

Each test carries the id of its scenario.
"""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, Script, asked, endpoint, settings, slow, status

pytestmark = pytest.mark.anyio


async def ask_all(house: House, count: int) -> list[ChatAnswer | ChatFailed]:
    """Different calls at the same time."""
    replies: list[ChatAnswer | ChatFailed] = []

    async def one(number: int) -> None:
        replies.append(await house.actor.chat(asked(f"q{number}")))

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(one, number)
    return replies


async def test_S3_a_server_slower_than_its_clock_is_waited_for() -> None:
    """S3: 1.2 times as slow: the second try has twice the patience, and there is no storm."""
    bodies: list[bytes] = []
    async with serving(slow(0.36, answer("Hello"), bodies)) as server:
        wanted = settings(endpoint(server.base_url), first_token_s=0.3, attempts=4)
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert reply.attempts[0].outcome == "timeout"
    assert 2 <= len(bodies) <= 4


async def test_S3_one_that_is_slower_than_all_patience_gets_no_more_than_the_attempts() -> None:
    """S3: three calls, three tries each."""
    bodies: list[bytes] = []
    async with serving(slow(60.0, answer("Hello"), bodies)) as server:
        wanted = settings(endpoint(server.base_url), first_token_s=0.02)
        async with House.open(wanted) as house:
            replies = await ask_all(house, 3)
    assert [reply.kind for reply in replies if isinstance(reply, ChatFailed)] == ["timeout"] * 3
    assert len(bodies) == 9


async def test_S4_an_episode_of_429_is_one_cut_and_a_pause_for_all() -> None:
    """S4: 200 in flight are all refused; nobody comes back before the time is over."""
    everyone = anyio.Event()
    refused: list[float] = []
    came_back: list[float] = []

    async def handler(connection: Connection) -> None:
        while await connection.request() is not None:
            if len(refused) == 200:
                came_back.append(anyio.current_time())
                await connection.send(answer("Hello"))
                continue
            refused.append(anyio.current_time())
            if len(refused) == 200:
                everyone.set()
            await everyone.wait()
            await connection.send(status(429, "retry-after-ms: 500"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), concurrency=200, concurrency_start=200)
        async with House.open(wanted) as house:
            with capture_logs() as lines:
                replies = await ask_all(house, 200)
            assert house.pool.limit("one") == 160
    assert len(replies) == len(came_back) == 200
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    cuts = [line for line in lines if line["event"] == "llm.limit_cut"]
    assert [(line["before"], line["limit"], line["why"]) for line in cuts] == [
        (200, 160, "rate_limit")
    ]
    assert min(came_back) - refused[-1] >= 0.5
    assert not [line for line in lines if line["event"] == "llm.breaker_open"]


async def test_S5_a_limit_that_is_not_used_does_not_grow() -> None:
    """S5: a thousand successes, two at a time: the fifty that follow still meet the old limit."""
    full = anyio.Event()
    go = anyio.Event()
    go.set()
    held = 0

    async def handler(connection: Connection) -> None:
        nonlocal held
        while await connection.request() is not None:
            if not go.is_set():
                held += 1
                if held == 10:
                    full.set()
                await go.wait()
            await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), concurrency=100, concurrency_start=10)
        async with House.open(wanted) as house:

            async def turns(name: str) -> None:
                for turn in range(500):
                    assert isinstance(await house.actor.chat(asked(f"{name}{turn}")), ChatAnswer)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(turns, "a")
                tasks.start_soon(turns, "b")

            go = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask_all, house, 50)
                await full.wait()
                await anyio.wait_all_tasks_blocked()
                assert (held, house.pool.in_flight("one"), house.pool.waiting) == (10, 10, 40)
                go.set()


async def test_S6_a_herd_sends_one_probe() -> None:
    """S6, P2-6: after the cool-down the server sees one request; its success frees the rest."""
    gate = anyio.Event()
    probing = anyio.Event()
    seen = 0

    async def handler(connection: Connection) -> None:
        nonlocal seen
        while await connection.request() is not None:
            seen += 1
            if seen == 1:
                await connection.send(status(500))
                continue
            if seen == 2:
                probing.set()
                await gate.wait()
            await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1, attempts=2)
        async with House.open(wanted) as house:
            replies: list[ChatAnswer | ChatFailed] = []

            async def herd() -> None:
                replies.extend(await ask_all(house, 100))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(house.ask, asked())
                await house.recorded.wait()  # it fails and opens the breaker
                tasks.start_soon(herd)
                await probing.wait()
                await anyio.wait_all_tasks_blocked()
                assert seen == 2
                gate.set()
    assert len(replies) == 100
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    assert seen == 102


async def test_S7_a_cancelled_probe_leaves_its_place() -> None:
    """S7: the next call probes, and closes the breaker."""
    hung = anyio.Event()
    seen = 0

    async def handler(connection: Connection) -> None:
        nonlocal seen
        while await connection.request() is not None:
            seen += 1
            if seen == 1:
                await connection.send(status(500))
            elif seen == 2:
                hung.set()
                await connection.until_gone()
                return
            else:
                await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1, attempts=2)
        async with House.open(wanted) as house:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(house.ask, asked())
                await hung.wait()
                tasks.cancel_scope.cancel()
            assert isinstance(await house.actor.chat(asked()), ChatAnswer)
    assert [row.outcome for row in house.rows] == ["server_error", "cancelled", "ok"]
    assert seen == 3


async def test_S8_a_probe_that_is_never_answered_makes_room_for_another() -> None:
    """S8: its own clock ends it; those who wait for it get their answers all the same."""
    seen = 0

    async def handler(connection: Connection) -> None:
        nonlocal seen
        while await connection.request() is not None:
            seen += 1
            if seen == 1:
                await connection.send(status(500))
            elif seen == 2:
                await connection.until_gone()
                return
            else:
                await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1, first_token_s=0.5)
        async with House.open(wanted) as house:
            replies = await ask_all(house, 20)
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    assert "timeout" in {row.outcome for row in house.rows}


async def test_S9_S10_a_cut_answer_is_asked_for_elsewhere_and_nothing_of_it_leaks() -> None:
    """S9, S10: the other one gets the original prompt; the caller sees its text alone."""
    bodies: list[bytes] = []

    async def cuts(connection: Connection) -> None:
        request = await connection.request()
        assert request is not None
        bodies.append(request[1])
        await connection.send(SSE_HEAD + chunked(sse("Once upon"), sse(" a"), last=False))

    good = Script(answer("Once upon a time"))
    async with serving(cuts) as one, serving(good) as two:
        both = settings(endpoint(one.base_url, "cuts"), endpoint(two.base_url, "good"))
        async with House.open(both) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert (reply.text, reply.endpoint) == ("Once upon a time", "good")
    assert bodies == good.bodies
    assert [(row.endpoint, row.outcome) for row in house.rows] == [
        ("cuts", "truncated"),
        ("good", "ok"),
    ]
    assert [entry.text for entry in house.entries.values()] == ["Once upon a time"]


async def test_S11_calls_that_are_cancelled_in_the_queue_are_never_sent() -> None:
    """S11: a thousand asks, ten places, 990 cancelled: ten requests, and every place is free."""
    go = anyio.Event()
    full = anyio.Event()
    bodies: list[bytes] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            bodies.append(request[1])
            if len(bodies) == 10:
                full.set()
            await go.wait()
            await connection.send(answer("Hello"))

    scopes = [anyio.CancelScope() for _ in range(1000)]
    replies: list[ChatAnswer | ChatFailed] = []

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), concurrency=10, concurrency_start=10)
        async with House.open(wanted) as house:

            async def ask(number: int) -> None:
                with scopes[number]:
                    replies.append(await house.actor.chat(asked(f"q{number}")))

            async with anyio.create_task_group() as tasks:
                for number in range(1000):
                    tasks.start_soon(ask, number)
                await full.wait()
                await anyio.wait_all_tasks_blocked()
                assert (house.pool.in_flight("one"), house.pool.waiting) == (10, 990)
                sent = [f"q{n}" for n in range(1000) if f'"q{n}"'.encode() in b"".join(bodies)]
                for number, scope in enumerate(scopes):
                    if f"q{number}" not in sent:
                        scope.cancel()
                await anyio.wait_all_tasks_blocked()
                assert house.pool.waiting == 0
                go.set()
            assert (len(replies), len(bodies), len(house.rows)) == (10, 10, 10)
            assert (house.pool.in_flight("one"), house.pool.waiting) == (0, 0)
            assert isinstance(await house.actor.chat(asked("last")), ChatAnswer)
