"""Cache, single flight and accounting around the ladder (rows P1-1, P1-2)."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from actors.runtime.errors import ActorCrashed
from protocol.cache import CachePut
from protocol.llm import Chat, ChatAnswer, ChatFailed, Usage
from tests.llm.server import Connection, answer, serving
from tests.llm.support import House, asked, endpoint, settings

pytestmark = pytest.mark.anyio


class Upstream:
    """Answers every request with its number; the bodies are kept."""

    def __init__(self, finish: str = "stop", text: str = "answer") -> None:
        self.bodies: list[bytes] = []
        self.finish = finish
        self.text = text

    async def __call__(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            self.bodies.append(request[1])
            text = self.text and f"{self.text} {len(self.bodies)}"
            await connection.send(answer(text, self.finish))


async def test_P1_1_a_salt_resamples_and_replays() -> None:
    """P1-1: hit on the same salt, a new call on another, one for ever without."""
    upstream = Upstream()
    async with serving(upstream) as server, House.open(settings(endpoint(server.base_url))) as h:
        texts = []
        for salt in ("e1", "e1", "e2", "e1", None, None):
            reply = await h.actor.chat(asked(salt=salt))
            assert isinstance(reply, ChatAnswer)
            texts.append((reply.text, reply.cached))
    assert texts == [
        ("answer 1", False),
        ("answer 1", True),
        ("answer 2", False),
        ("answer 1", True),
        ("answer 3", False),
        ("answer 3", True),
    ]
    seeds = [msgspec.json.decode(body)["seed"] for body in upstream.bodies]
    assert len(set(seeds)) == 3


async def test_a_hit_is_in_the_accounts() -> None:
    """Endpoint ``cache``, outcome ``cached``, attempt 0, nothing spent; every row is its own."""
    async with serving(Upstream()) as server, House.open(settings(endpoint(server.base_url))) as h:
        for _ in range(4):
            await h.actor.chat(asked())
    paid, *hits = h.rows
    assert (paid.endpoint, paid.outcome, paid.attempt) == ("one", "ok", 1)
    assert (paid.prompt_tokens, paid.completion_tokens) == (3, 2)
    assert paid.call == next(iter(h.entries))
    assert [(r.endpoint, r.outcome, r.attempt, r.seconds) for r in hits] == [
        ("cache", "cached", 0, 0.0)
    ] * 3
    assert sum(r.prompt_tokens + r.completion_tokens for r in hits) == 0
    assert len({(r.call, r.attempt, r.started) for r in h.rows}) == 4


@pytest.mark.parametrize("finish", ["content_filter", "mystery"])
async def test_P1_2_an_answer_that_is_not_whole_is_not_kept(finish: str) -> None:
    """P1-2, S15: a refusal or an unknown end is asked again."""
    upstream = Upstream(finish)
    async with serving(upstream) as server, House.open(settings(endpoint(server.base_url))) as h:
        for _ in range(2):
            reply = await h.actor.chat(asked())
            assert isinstance(reply, ChatAnswer)
            assert not reply.cached
    assert not h.entries
    assert len(upstream.bodies) == 2


async def test_an_empty_answer_is_a_failure() -> None:
    """Retried, then reported; never stored."""
    async with (
        serving(Upstream(text="")) as server,
        House.open(settings(endpoint(server.base_url))) as house,
    ):
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatFailed)
    assert reply.kind == "empty"
    assert not house.entries


async def test_identical_calls_in_progress_are_one() -> None:
    """S14: fifty asks, one request; with the leader cancelled, two at most."""
    upstream = Upstream()
    arrived = anyio.Event()
    go = anyio.Event()

    async def held(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            upstream.bodies.append(request[1])
            arrived.set()
            await go.wait()
            await connection.send(answer("Hello"))

    async with serving(held) as server, House.open(settings(endpoint(server.base_url))) as house:
        replies: list[ChatAnswer | ChatFailed] = []
        leader = anyio.CancelScope()

        async def lead() -> None:
            with leader:
                await house.actor.chat(asked())

        async def follow() -> None:
            replies.append(await house.actor.chat(asked()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lead)
            await arrived.wait()
            for _ in range(49):
                tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            leader.cancel()
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert len(replies) == 49
    assert {reply.text for reply in replies if isinstance(reply, ChatAnswer)} == {"Hello"}
    assert len(upstream.bodies) == 2
    assert [row.outcome for row in house.rows].count("ok") == 1


async def test_a_failing_cache_is_a_miss() -> None:
    """The call goes on, get and put alike."""
    async with serving(Upstream()) as server, House.open(settings(endpoint(server.base_url))) as h:
        h.cache_error = ActorCrashed("cache", "down")
        reply = await h.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert reply.text == "answer 1"
    assert any(isinstance(request, CachePut) for request in h.cache.requests)


async def test_a_stored_answer_needs_no_endpoint() -> None:
    """Replay: the endpoint is down and the answer still comes, marked as cached."""
    async with House.open(settings(endpoint("http://127.0.0.1:9/v1"), attempts=1)) as house:
        missed = await house.actor.chat(asked())
        assert isinstance(missed, ChatFailed)
        house.entries[house.rows[0].call] = ChatAnswer(
            text="kept", finish="stop", usage=Usage(), endpoint="one", cached=False
        )
        reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    assert (reply.text, reply.cached, reply.endpoint) == ("kept", True, "one")


async def test_what_cannot_be_sent_is_declared() -> None:
    """A text that is no Unicode, and a role without an endpoint."""
    async with House.open(settings(endpoint("http://127.0.0.1:9/v1"))) as house:
        reply = await house.actor.chat(asked("\ud83d"))
        assert isinstance(reply, ChatFailed)
        assert (reply.kind, reply.fatal) == ("body", True)
    judge_only = msgspec.structs.replace(endpoint("http://127.0.0.1:9/v1"), roles=("judge",))
    async with House.open(settings(judge_only)) as house:
        chat: Chat = asked()
        reply = await house.actor.chat(chat)
        assert isinstance(reply, ChatFailed)
        assert reply.kind == "bad_request"
