"""The retry loop over real sockets: order, waits, failover, breaker (rows P1-3, P2-6)."""

from __future__ import annotations

from datetime import datetime

import anyio
import pytest

from actors.llm.ladder import jitter
from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, asked, endpoint, settings

pytestmark = pytest.mark.anyio


def status(code: int, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {code} x", "Content-Length: 2", *headers, "", "{}")
    return "\r\n".join(lines).encode()


class Script:
    """Answers requests one after the other, over all connections; None: hang up."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    async def __call__(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            self.bodies.append(request[1])
            reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if reply is None:
                return
            await connection.send(reply)


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
    """S9: one cuts in mid-stream, the other gets the original prompt and answers whole."""
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
            with anyio.fail_after(2):
                reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)


async def test_the_total_clock_ends_the_call() -> None:
    """At once, when the wait would outlast it."""
    script = Script(status(503, "Retry-After: 4"))
    async with serving(script) as server:
        wanted = settings(endpoint(server.base_url), total_s=1.0, attempt_s=1.0)
        async with House.open(wanted) as house:
            with anyio.fail_after(0.9):
                reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert reply.kind == "server_error"


async def test_P2_6_a_herd_sends_one_probe() -> None:
    """P2-6, S6: after the cool-down the server sees one request; its success frees the rest."""
    gate = anyio.Event()
    probing = anyio.Event()
    seen: list[int] = []

    async def handler(connection: Connection) -> None:
        while await connection.request() is not None:
            seen.append(connection.number)
            if len(seen) == 1:
                await connection.send(status(500))
                continue
            if len(seen) == 2:
                probing.set()
                await gate.wait()
            await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1, attempts=2)
        async with House.open(wanted) as house:
            replies: list[ChatAnswer | ChatFailed] = []

            async def ask(number: int) -> None:
                replies.append(await house.actor.chat(asked(f"q{number}")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 0)
                await house.recorded.wait()  # q0 fails and opens the breaker
                for number in range(1, 20):
                    tasks.start_soon(ask, number)
                await probing.wait()
                await anyio.wait_all_tasks_blocked()
                assert len(seen) == 2
                gate.set()
    assert len(replies) == 20
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    assert len(seen) == 21


async def test_all_open_waits_for_the_cool_down_and_burns_no_attempt() -> None:
    """The call outlives a cool-down; with too little time it fails as breaker_open."""
    script = Script(status(500), status(500), answer("Hello"))
    async with serving(script) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1)
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
            assert isinstance(reply, ChatAnswer)
            assert len(reply.attempts) == 3

    async def down(connection: Connection) -> None:
        connection.rst()

    async with serving(down) as gone:
        wanted = settings(
            endpoint(gone.base_url), breaker_failures=1, breaker_cooldown_s=30.0, total_s=0.3
        )
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert (reply.kind, reply.fatal, len(reply.attempts)) == ("breaker_open", False, 1)
    assert "transport" in reply.detail


async def test_a_cancelled_probe_leaves_its_place() -> None:
    """S7: the next call probes, and closes the breaker."""
    hung = anyio.Event()
    count = 0

    async def handler(connection: Connection) -> None:
        nonlocal count
        while await connection.request() is not None:
            count += 1
            if count == 1:
                await connection.send(status(500))
            elif count == 2:
                hung.set()
                await connection.until_gone()
                return
            else:
                await connection.send(answer("Hello"))

    async with serving(handler) as server:
        wanted = settings(endpoint(server.base_url), breaker_failures=1)
        async with House.open(wanted) as house:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(house.ask, asked())
                await hung.wait()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(2):
                reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)


def test_jitter_is_repeatable_and_spread() -> None:
    """The same call waits the same; many calls fill [0, 1)."""
    values = [jitter(f"k{i}", 1) for i in range(1000)]
    assert values == [jitter(f"k{i}", 1) for i in range(1000)]
    assert 0.45 < sum(values) / 1000 < 0.55
    assert min(values) < 0.01
    assert max(values) > 0.99
