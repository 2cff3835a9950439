"""Cache, single flight and accounting around the ladder (rows P1-1, P1-2)."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from actors.runtime.errors import ActorCrashed, ActorDead
from protocol.cache import CachePut
from protocol.ledger import Spent
from protocol.llm import Chat, ChatAnswer, ChatFailed, Usage
from protocol.settings import LimitSettings, RoleSettings
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, Script, asked, endpoint, settings, status

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


async def test_the_accounts_know_what_a_try_cost() -> None:
    """Tokens by kind and money by the endpoint's prices; a failed try has its row too."""
    counted = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 500_000,
        "prompt_tokens_details": {"cached_tokens": 7},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    last = b"data: " + msgspec.json.encode({"choices": [], "usage": counted}) + b"\n\n"
    whole = SSE_HEAD + chunked(sse("Hello"), sse(None, "stop"), last, b"data: [DONE]\n\n")
    async with serving(Script(status(500), whole)) as server:
        priced = msgspec.structs.replace(
            endpoint(server.base_url), usd_per_m_prompt=2.0, usd_per_m_completion=8.0
        )
        async with House.open(settings(priced)) as house:
            reply = await house.actor.chat(asked())
    assert isinstance(reply, ChatAnswer)
    failed, paid = house.rows
    assert (failed.outcome, failed.prompt_tokens, failed.usd) == ("server_error", 0, 0.0)
    assert (paid.cached_tokens, paid.reasoning_tokens, paid.usd) == (7, 5, 6.0)
    assert reply.seconds == paid.seconds


async def test_a_cancelled_try_is_in_the_accounts() -> None:
    """S12: the endpoint worked on it, and it counts as a call."""
    arrived = anyio.Event()

    async def silent(connection: Connection) -> None:
        await connection.request()
        arrived.set()
        await connection.until_gone()

    async with serving(silent) as server, House.open(settings(endpoint(server.base_url))) as house:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.ask, asked())
            await arrived.wait()
            tasks.cancel_scope.cancel()
        (row,) = house.rows
        assert (row.attempt, row.endpoint, row.outcome) == (1, "one", "cancelled")
        assert house.pool.in_flight("one") == 0


async def test_a_cancellation_is_not_lost_in_accounts_that_fail() -> None:
    """Whoever stops everything at once may have stopped the ledger first."""
    arrived = anyio.Event()

    async def silent(connection: Connection) -> None:
        await connection.request()
        arrived.set()
        await connection.until_gone()

    async with serving(silent) as server, House.open(settings(endpoint(server.base_url))) as house:
        house.ledger_error = ActorDead("ledger", "stopped")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.ask, asked())
            await arrived.wait()
            tasks.cancel_scope.cancel()
        assert tasks.cancel_scope.cancelled_caught
        assert house.pool.in_flight("one") == 0


async def test_S18_what_former_processes_spent_counts() -> None:
    """S18: a run that is started again may spend the rest only; what is in the cache is free."""
    upstream = Upstream()
    limits = LimitSettings(max_calls=10, max_tokens=None, max_usd=None)
    spent = Spent(calls=9, prompt_tokens=1, completion_tokens=1, usd=0.0)
    async with serving(upstream) as server:
        wanted = settings(endpoint(server.base_url))
        async with House.open(wanted, limits=limits, spent=spent) as house:
            assert isinstance(await house.actor.chat(asked("one")), ChatAnswer)
            over = await house.actor.chat(asked("two"))
            again = await house.actor.chat(asked("one"))
    assert isinstance(over, ChatFailed)
    assert (over.kind, over.fatal, over.attempts) == ("budget", False, ())
    assert isinstance(again, ChatAnswer)
    assert again.cached
    assert len(upstream.bodies) == 1


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


async def test_an_answer_that_was_too_long_is_kept() -> None:
    """Its bound is in the key: asked again with the same one it would be cut again."""
    upstream = Upstream("length")
    async with serving(upstream) as server, House.open(settings(endpoint(server.base_url))) as h:
        for max_tokens in (64, 64, 65):
            assert isinstance(await h.actor.chat(asked(max_tokens=max_tokens)), ChatAnswer)
    assert len(upstream.bodies) == 2


async def test_an_answer_that_the_servers_own_bound_cut_is_not_kept() -> None:
    """Without max_tokens in the key, nothing says that it would be cut again (clients.md A4)."""
    unbounded = RoleSettings(temperature=0.7, top_p=None, max_tokens=None)
    upstream = Upstream("length")
    async with (
        serving(upstream) as server,
        House.open(settings(endpoint(server.base_url), search=unbounded)) as house,
    ):
        for _ in range(2):
            assert isinstance(await house.actor.chat(asked()), ChatAnswer)
    assert len(upstream.bodies) == 2


async def test_a_replayed_answer_takes_as_long_as_the_first_one() -> None:
    """The agent's time budget is a part of its behaviour: a resume must not give it more steps."""
    async with serving(Upstream()) as server, House.open(settings(endpoint(server.base_url))) as h:
        first = await h.actor.chat(asked())
        again = await h.actor.chat(asked())
    assert isinstance(first, ChatAnswer)
    assert isinstance(again, ChatAnswer)
    assert first.seconds == again.seconds > 0
    assert (len(first.attempts), again.attempts) == (1, ())


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
