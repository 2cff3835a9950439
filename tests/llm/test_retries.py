"""The retry loop over real sockets: disconnects, failover, Retry-After, breaker (P1-3, P2-6)."""

from __future__ import annotations

from datetime import datetime

import anyio
import pytest

from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, Script, asked, endpoint, settings, status

pytestmark = pytest.mark.anyio


async def test_P1_3_a_disconnect_is_retried() -> None:
    """P1-3: the server hangs up without a word, then cuts the answer, then answers."""
    cut = SSE_HEAD + chunked(sse("Hel"), last=False)

    class CutScript(Script):
        async def __call__(self, connection: Connection) -> None:
            request = await connection.request()
            if request is not None:
                self.bodies.append(request[1])
                reply = self.answers.pop(0)
                if reply is not None:
                    await connection.send(reply)

    script = CutScript(None, cut, answer("Hello"))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert reply.text == "Hello"
    assert [a.outcome for a in reply.attempts] == ["transport", "truncated", "ok"]
    assert [(r.attempt, r.outcome) for r in house.rows] == [
        (1, "transport"),
        (2, "truncated"),
        (3, "ok"),
    ]
    assert len({row.call for row in house.rows}) == 1
    assert all(datetime.fromisoformat(row.started).tzinfo is not None for row in house.rows)
    assert len(set(script.bodies)) == 1


async def test_attempts_run_out() -> None:
    """The last failure is the reply's kind; every try is in the ledger."""
    script = Script(status(500))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert (reply.kind, reply.fatal, len(reply.attempts)) == ("server_error", False, 3)
    assert [row.attempt for row in house.rows] == [1, 2, 3]
    assert not house.entries


async def test_a_fatal_failure_is_not_retried() -> None:
    """One try."""
    script = Script(status(400))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert (reply.kind, reply.fatal, len(script.bodies)) == ("bad_request", True, 1)


async def test_failover_to_another_endpoint() -> None:
    """The same body to another server; both tries are in the ledger."""
    bad, good = Script(status(503)), Script(answer("Hello"))
    async with serving(bad) as one, serving(good) as two:
        both = settings(endpoint(one.base_url, "bad"), endpoint(two.base_url, "good"))
        async with House.open(both) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert reply.endpoint == "good"
    assert [(row.endpoint, row.outcome) for row in house.rows] == [
        ("bad", "server_error"),
        ("good", "ok"),
    ]
    assert bad.bodies == good.bodies


async def test_retry_after_is_obeyed() -> None:
    """The longer of back-off and Retry-After, at the endpoint that asked for it."""
    script = Script(status(429, "retry-after-ms: 200"), answer("Hello"))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        begun = anyio.current_time()
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert anyio.current_time() - begun >= 0.2


async def test_retry_after_does_not_hold_another_endpoint_back() -> None:
    """The other one is asked at once."""
    busy, free = Script(status(429, "Retry-After: 4")), Script(answer("Hello"))
    async with serving(busy) as one, serving(free) as two:
        both = settings(endpoint(one.base_url, "busy"), endpoint(two.base_url, "free"))
        async with House.open(both) as house:
            reply = await house.actor.chat(asked())
            assert house.pool.waiting == 0
    assert isinstance(reply, ChatAnswer)
    assert reply.endpoint == "free"
    assert (len(busy.bodies), len(free.bodies)) == (1, 1)


async def test_a_retry_after_beyond_the_cap_ends_the_call_and_holds_nobody() -> None:
    """The next call is asked at once: who knows what the number was worth."""
    script = Script(status(503, "Retry-After: 3600"), answer("Hello"))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        first = await house.actor.chat(asked("one"))
        second = await house.actor.chat(asked("two"))
    assert isinstance(first, ChatFailed)
    assert (first.kind, first.fatal) == ("retry_after_too_long", True)
    assert isinstance(second, ChatAnswer)


async def test_the_total_clock_ends_the_call() -> None:
    """At once, when the wait before the next try would outlast it."""
    script = Script(status(503))
    async with serving(script) as server:
        wanted = settings(
            endpoint(server.base_url), total_s=5.0, attempt_s=5.0, backoff_s=1e6, backoff_cap_s=1e6
        )
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert reply.kind == "server_error"
    assert len(script.bodies) == 1


async def test_all_open_waits_for_the_cool_down_and_burns_no_attempt() -> None:
    """The call outlives several cool-downs; when they take too long it fails as breaker_open."""
    script = Script(*[status(500)] * 4, answer("Hello"))
    async with serving(script) as server:
        wanted = settings(
            endpoint(server.base_url), breaker_failures=1, breaker_cooldown_s=0.01, attempts=2
        )
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
            assert isinstance(reply, ChatAnswer)
            assert len(reply.attempts) == len(house.rows) == 5

    async def down(connection: Connection) -> None:
        connection.rst()

    async with serving(down) as gone:
        wanted = settings(
            endpoint(gone.base_url), breaker_failures=1, breaker_cooldown_s=30.0, outage_s=0.1
        )
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert (reply.kind, reply.fatal, len(reply.attempts)) == ("breaker_open", False, 1)
    assert f"has answered yet, in 0.1 s: one {gone.base_url}: " in reply.detail
