"""An endpoint that serves nobody while another one of its role does, over real sockets."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import Connection, answer, serving
from tests.llm.support import House, Script, asked, endpoint, settings, status

pytestmark = pytest.mark.anyio

QUOTA = b'{"error": {"type": "insufficient_quota", "message": "pay"}}'
NO_MODEL = b'{"error": {"message": "The model `m` does not exist"}}'


def refusal(code: int, body: bytes = b"{}", *headers: str) -> bytes:
    """A response that is no answer, with its reason."""
    lines = (f"HTTP/1.1 {code} x", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def told(lines: Sequence[EventDict], event: str) -> list[EventDict]:
    """The log's lines of one event."""
    return [line for line in lines if line["event"] == event]


@pytest.mark.parametrize(
    ("reply", "kind", "remedy"),
    [
        pytest.param(refusal(401), "auth", "check its key", id="key"),
        pytest.param(refusal(403), "auth", "check its key", id="forbidden"),
        pytest.param(refusal(402), "quota", "top up", id="unpaid"),
        pytest.param(refusal(429, QUOTA), "quota", "top up", id="quota"),
        pytest.param(refusal(404), "bad_request", "base_url and model", id="no-chats"),
        pytest.param(refusal(400, NO_MODEL), "bad_request", "base_url and model", id="no-model"),
        pytest.param(
            refusal(503, b"{}", "Retry-After: 99999"),
            "retry_after_too_long",
            "llm.outage_s",
            id="retry-after",
        ),
    ],
)
async def test_one_bad_endpoint_does_not_kill_a_role_with_a_healthy_one(
    reply: bytes, kind: str, remedy: str
) -> None:
    """Every call is answered, the bad endpoint is asked once, and that is told once."""
    bad, good = Script(reply), Script(answer("Hello"))
    async with serving(bad) as one, serving(good) as two:
        wanted = settings(
            endpoint(one.base_url, "bad"),
            endpoint(two.base_url, "good"),
            attempts=1,
            concurrency_start=1,
        )
        replies: list[ChatAnswer | ChatFailed] = []

        async def ask(house: House, number: int) -> None:
            replies.append(await house.ask(asked(f"q{number}")))

        with capture_logs() as lines:
            async with House.open(wanted) as house:
                async with anyio.create_task_group() as tasks:
                    for number in range(20):
                        tasks.start_soon(ask, house, number)
                seen = {one.name: one for one in house.pool.seen()}
    assert [type(one) for one in replies] == [ChatAnswer] * 20
    assert len(bad.bodies) == 1
    failed = [row for row in house.rows if row.outcome != "ok"]
    assert [(row.endpoint, row.outcome, row.attempt) for row in failed] == [("bad", kind, 1)]
    assert (seen["bad"].breaker, seen["good"].breaker) == ("out", "closed")
    assert seen["bad"].opens_in_s > 50
    [line] = told(lines, "llm.endpoint_out")
    assert (line["endpoint"], line["repeated"]) == ("bad", False)
    assert line["roles"] == ["evolve", "judge", "search", "vision"]
    assert line["last_error"].startswith(f"{kind}: ")
    assert remedy in line["remedy"]
    assert f"bad ({one.base_url})" in line["line"]
    assert not told(lines, "llm.paused")


async def test_what_is_wrong_with_the_request_is_not_tried_everywhere() -> None:
    """A 400 says nothing about the endpoint: the call fails, and both go on being asked."""
    bad, good = Script(status(400), answer("Hello")), Script(answer("Hello"))
    async with serving(bad) as one, serving(good) as two:
        both = settings(endpoint(one.base_url, "bad"), endpoint(two.base_url, "good"))
        async with House.open(both) as house:
            first = await house.actor.chat(asked("one"))
            second = await house.actor.chat(asked("two"))
    assert isinstance(first, ChatFailed)
    assert (first.kind, first.fatal, len(first.attempts)) == ("bad_request", True, 1)
    assert isinstance(second, ChatAnswer)
    assert (second.endpoint, len(good.bodies)) == ("bad", 0)


async def test_the_last_endpoint_of_a_role_is_not_taken_out() -> None:
    """Where none is left the call fails as with one endpoint, and the next one is asked again."""
    bad, worse = Script(refusal(401)), Script(refusal(403), answer("Hello"))
    async with serving(bad) as one, serving(worse) as two:
        both = settings(endpoint(one.base_url, "bad"), endpoint(two.base_url, "worse"))
        async with House.open(both) as house:
            first = await house.actor.chat(asked("one"))
            second = await house.actor.chat(asked("two"))
            seen = [one.breaker for one in house.pool.seen()]
    assert isinstance(first, ChatFailed)
    assert (first.kind, first.fatal) == ("auth", True)
    assert "HTTP 403" in first.detail
    assert [attempt.endpoint for attempt in first.attempts] == ["bad", "worse"]
    assert isinstance(second, ChatAnswer)
    assert (second.endpoint, len(bad.bodies)) == ("worse", 1)
    assert seen == ["out", "closed"]


async def test_an_outage_of_the_only_one_left_is_a_pause() -> None:
    """One is down, the other's key is refused: waited for, not failed; one line says both."""
    hung_up = 0

    async def down(connection: Connection) -> None:
        nonlocal hung_up
        hung_up += 1
        if hung_up > 4:
            await Script(answer("Hello"))(connection)

    bad = Script(refusal(401))
    async with serving(down) as one, serving(bad) as two:
        both = settings(
            endpoint(one.base_url, "down"),
            endpoint(two.base_url, "bad"),
            attempts=2,
            breaker_failures=1,
            breaker_cooldown_s=0.01,
        )
        with capture_logs() as lines:
            async with House.open(both) as house:
                reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert [a.endpoint for a in reply.attempts] == ["down", "bad", *["down"] * 4]
    assert len(bad.bodies) == 1
    [paused] = told(lines, "llm.paused")
    assert paused["endpoints"].keys() == {"down", "bad"}
    assert "HTTP 401" in paused["endpoints"]["bad"]
    assert len(told(lines, "llm.resumed")) == 1


async def test_who_was_passed_over_is_not_to_blame() -> None:
    """Time runs out after a refusal at one endpoint: what the other said is why."""
    house: House | None = None

    async def bad(connection: Connection) -> None:
        assert house is not None
        assert house.actor._opened is not None
        budget = house.actor._opened[2].budget
        waits_s = [budget.spend_s(anyio.current_time()) for _ in range(1500)]  # by other calls
        assert waits_s[-1] > 20.0
        await Script(refusal(401))(connection)

    failing = Script(status(500))
    async with serving(failing) as one, serving(bad) as two:
        both = settings(endpoint(one.base_url, "failing"), endpoint(two.base_url, "bad"))
        async with House.open(both) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert [attempt.outcome for attempt in reply.attempts] == ["server_error", "auth"]
    assert (reply.kind, reply.fatal) == ("server_error", False)


async def test_a_long_retry_after_of_the_only_endpoint_is_a_pause() -> None:
    """It rests for as long as it said, which costs no attempt and stops no run."""
    script = Script(status(503, "retry-after-ms: 200"), answer("Hello"))
    async with serving(script) as server:
        wanted = settings(endpoint(server.base_url), retry_after_cap_s=0.1, attempts=1)
        with capture_logs() as lines:
            async with House.open(wanted) as house:
                begun = anyio.current_time()
                reply = await house.actor.chat(asked())
                took_s = anyio.current_time() - begun
    assert isinstance(reply, ChatAnswer)
    assert took_s >= 0.2
    assert [row.outcome for row in house.rows] == ["retry_after_too_long", "ok"]
    [paused] = told(lines, "llm.paused")
    # who says when to come back is there: no wrong address, and all patience
    assert (paused["never_answered"], paused["waits_at_most_s"]) == (False, 30.0)
    assert "Retry-After" in paused["line"]


async def test_a_long_retry_after_rests_an_endpoint_and_not_its_role() -> None:
    """The other one is asked at once, and no role is paused."""
    busy, free = Script(status(429, "Retry-After: 20")), Script(answer("Hello"))
    async with serving(busy) as one, serving(free) as two:
        both = settings(endpoint(one.base_url, "busy"), endpoint(two.base_url, "free"))
        with capture_logs() as lines:
            async with House.open(both) as house:
                replies = [await house.actor.chat(asked(text)) for text in ("one", "two")]
                [seen, _] = house.pool.seen()
    assert [type(reply) for reply in replies] == [ChatAnswer] * 2
    assert len(busy.bodies) == 1
    assert seen.breaker == "open"
    assert 15 < seen.opens_in_s <= 20
    assert not told(lines, "llm.paused")
    assert not told(lines, "llm.endpoint_out")
