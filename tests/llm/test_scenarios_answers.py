"""The scenarios S13 to S20 of the reference: what is an answer, what is kept, what is waited for.

Where each scenario is tested stands in ``test_scenarios``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime

import anyio
import httpx
import pytest

from actors.llm import transport
from actors.llm.http1 import Http1Transport
from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, Script, asked, endpoint, settings, slow, status

pytestmark = pytest.mark.anyio


async def test_S13_a_bug_below_surfaces_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """S13: an exception that is none of HTTP's is not a failure of the server."""
    raised = 0

    async def buggy(self: Http1Transport, request: httpx.Request) -> httpx.Response:
        nonlocal raised
        raised += 1
        raise RuntimeError("a bug")

    script = Script(answer("Hello"))
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        with monkeypatch.context() as patched:
            patched.setattr(Http1Transport, "handle_async_request", buggy)
            with pytest.raises(RuntimeError, match="a bug"):
                await house.actor.chat(asked())
        assert (raised, len(script.bodies), house.pool.in_flight("one")) == (1, 0, 0)
        assert isinstance(await house.actor.chat(asked()), ChatAnswer)


@pytest.mark.parametrize(
    "first",
    [
        status(400),
        answer("I cannot", "content_filter"),
        answer(""),
        SSE_HEAD + chunked(sse("cut"), b'data: {"error": {"code": 400}}\n\n'),
    ],
    ids=["error", "content_filter", "empty", "error in the stream"],
)
async def test_S15_a_bad_first_answer_is_asked_for_again(first: bytes) -> None:
    """S15: it is in no cache."""
    script = Script(first, answer("Hello"))
    async with serving(script) as server:
        wanted = settings(endpoint(server.base_url), attempts=1)
        async with House.open(wanted) as house:
            await house.actor.chat(asked())
            again = await house.actor.chat(asked())
    assert isinstance(again, ChatAnswer)
    assert (again.text, again.cached, len(script.bodies)) == ("Hello", False, 2)


async def test_S16_thirty_samples_are_thirty_answers_for_ever() -> None:
    """S16: each salt has its own; a rerun gives the same ones back without asking."""
    seen = 0

    async def handler(connection: Connection) -> None:
        nonlocal seen
        while await connection.request() is not None:
            seen += 1
            await connection.send(answer(f"sample {seen}"))

    async with serving(handler) as server, House.open(settings(endpoint(server.base_url))) as house:

        async def draw(salt: int, texts: dict[int, str]) -> None:
            reply = await house.actor.chat(asked(salt=f"draw{salt}"))
            assert isinstance(reply, ChatAnswer)
            texts[salt] = reply.text

        first: dict[int, str] = {}
        again: dict[int, str] = {}
        for texts in (first, again):
            async with anyio.create_task_group() as tasks:
                for salt in range(30):
                    tasks.start_soon(draw, salt, texts)
    assert len(set(first.values())) == 30
    assert first == again
    assert seen == 30


class JumpingClock(datetime):
    """A wall clock that is an hour further back whenever it is read again."""

    reads = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # no subclass
        cls.reads += 1
        return datetime.now(tz) - timedelta(hours=cls.reads)


async def test_S19_a_clock_that_jumps_makes_no_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """S19: a date is read once, against the server's own; from then on only durations count."""
    server_s = datetime(2020, 1, 1, tzinfo=UTC)
    headers = (
        f"Date: {format_datetime(server_s, usegmt=True)}",
        f"Retry-After: {format_datetime(server_s + timedelta(seconds=1), usegmt=True)}",
    )
    script = Script(status(429, *headers), answer("Hello"))
    monkeypatch.setattr(transport, "datetime", JumpingClock)
    async with serving(script) as server, House.open(settings(endpoint(server.base_url))) as house:
        begun = anyio.current_time()
        reply = await house.actor.chat(asked())
    assert JumpingClock.reads >= 2
    assert isinstance(reply, ChatAnswer)
    assert [attempt.outcome for attempt in reply.attempts] == ["rate_limit", "ok"]
    assert anyio.current_time() - begun >= 1.0
    assert all(0 <= attempt.seconds < 60 for attempt in reply.attempts)


BODY = b'{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    "reply", [answer("Hello"), WHOLE % (len(BODY), BODY)], ids=["streamed", "whole"]
)
async def test_S20_a_long_silence_before_the_first_token_is_a_setting(reply: bytes) -> None:
    """S20: a healthy server that thinks longer than it ever pauses later; one try is enough."""
    bodies: list[bytes] = []
    async with serving(slow(0.3, reply, bodies)) as server:
        wanted = settings(endpoint(server.base_url), first_token_s=30.0, idle_s=0.1, attempts=1)
        async with House.open(wanted) as house:
            patient = await house.actor.chat(asked())
        hasty = settings(endpoint(server.base_url), first_token_s=0.1, idle_s=30.0, attempts=1)
        async with House.open(hasty) as house:
            gave_up = await house.actor.chat(asked())
    assert isinstance(patient, ChatAnswer)
    assert patient.text == "Hello"
    assert isinstance(gave_up, ChatFailed)
    assert (gave_up.kind, gave_up.fatal) == ("timeout", False)
