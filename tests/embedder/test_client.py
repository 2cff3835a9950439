"""The client against real sockets: what is tried again, what is not, and how it is told."""

from __future__ import annotations

import json
import socket

import anyio
import pytest

from actors.embedder.client import EmbeddingClient, Try, resolve_key
from actors.embedder.vectors import packed
from protocol.embedder import EmbedFailed
from protocol.settings import EmbeddingSettings
from tests.embedder.server import embeddings, response, settings, vector_of
from tests.llm.server import Connection, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def embed(
    plan: EmbeddingSettings, *texts: str, key: str | None = None, tries: list[Try] | None = None
) -> tuple[bytes, ...] | EmbedFailed:
    async def note(tried: Try) -> None:
        if tries is not None:
            tries.append(tried)

    client = EmbeddingClient(plan, key, note)
    try:
        return await client.embed(texts)
    finally:
        with anyio.CancelScope(shield=True):
            await client.aclose()


async def failed(plan: EmbeddingSettings, *texts: str) -> EmbedFailed:
    found = await embed(plan, *texts)
    assert isinstance(found, EmbedFailed)
    return found


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    async with embeddings() as server:
        found = await embed(settings(server.base_url), "aa b", "xyz", key="secret")
    assert found == packed([vector_of("aa b"), vector_of("xyz")])
    (head,) = server.heads
    assert b"POST /v1/embeddings HTTP/1.1" in head
    assert b"Bearer secret" in head


@pytest.mark.parametrize(
    "reply",
    [
        response({}, "503 Busy"),
        response({}, "429 Slow down"),
        response({}, "500 Oops"),
        response(b"{", "200 OK"),
        response(b"<html>", "200 OK"),
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["503", "429", "500", "half", "html", "hang-up", "cut"],
)
async def test_what_may_pass_is_tried_again(reply: bytes) -> None:
    hang_up = reply.endswith(b"100\r\n\r\n{")

    async def cut(connection: Connection) -> None:
        if await connection.request() is not None:
            await connection.send(reply)

    if hang_up:
        async with serving(cut) as broken:
            found = await failed(settings(broken.base_url, attempts=2), "a")
        assert (found.kind, len(broken.connections)) == ("transport", 2)
        return
    async with embeddings(reply, reply) as server:
        assert await embed(settings(server.base_url), "a") == packed([vector_of("a")])
    assert len(server.batches) == 3


@pytest.mark.parametrize(
    ("reply", "kind", "tries"),
    [
        (response({"error": "no such key"}, "401 No"), "auth", 1),
        (response({"error": "no"}, "403 No"), "auth", 1),
        (response({"error": "pay"}, "402 Pay"), "quota", 1),
        (response({"error": {"code": "insufficient_quota"}}, "429 No"), "quota", 1),
        (response({"error": "input is too long"}, "400 Bad"), "bad_request", 1),
        (response({"error": "no model m"}, "404 No"), "bad_request", 1),
        (response({"error": "busy"}, "429 Slow"), "rate_limit", 3),
        (response({"error": "down"}, "502 Bad"), "server_error", 3),
        (response({"data": []}), "body", 1),
        (response({"data": [{"index": 1, "embedding": [1.0]}]}), "body", 1),
        (response({"data": [{"index": 0, "embedding": []}]}), "body", 1),
        (response({"data": [{"index": 0, "embedding": "AAAA"}]}), "body", 1),
        (response({"object": "error"}), "body", 1),
    ],
)
async def test_failures_are_typed(reply: bytes, kind: str, tries: int) -> None:
    async with embeddings(*[reply] * 5) as server:
        found = await failed(settings(server.base_url), "a")
    assert (found.kind, len(server.batches)) == (kind, tries)
    assert found.fatal == (tries == 1)
    assert server.base_url in found.detail


async def test_a_server_that_is_not_there_and_one_that_says_nothing() -> None:
    with socket.socket() as taken:  # nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        assert (await failed(settings(url), "a")).kind == "transport"

    async def silent(connection: Connection) -> None:
        await connection.until_gone()

    async with serving(silent) as server:
        found = await failed(settings(server.base_url, timeout_s=0.01, attempts=2), "a")
    assert (found.kind, found.fatal) == ("timeout", False)
    assert len(server.connections) == 2


async def test_half_a_surrogate_pair_is_a_refused_text() -> None:
    async with embeddings() as server:
        assert (await failed(settings(server.base_url), "\ud800")).kind == "bad_request"
    assert server.batches == []


async def test_a_long_retry_after_is_capped() -> None:
    """The cap of the settings, two milliseconds, ends this test in time."""
    asked = response({}, "429 Slow", "Retry-After: 3000")
    dated = response({}, "503 Slow", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT")
    async with embeddings(asked, dated) as server:
        assert await embed(settings(server.base_url), "a") == packed([vector_of("a")])


def test_a_key_is_named_and_must_be_there(anyio_backend: str) -> None:
    keyed = settings(api_key_env="A_KEY")
    assert resolve_key(settings(), {}) is None
    assert resolve_key(keyed, {"A_KEY": " k\n"}) == "k"
    for environ in ({}, {"A_KEY": " "}, {"A_KEY": "a b"}, {"A_KEY": "ä"}):
        with pytest.raises(ValueError, match="A_KEY"):
            resolve_key(keyed, environ)
    assert "k" not in json.dumps(keyed.base_url)


async def test_every_try_is_noted_with_its_outcome_and_its_tokens() -> None:
    rows = [{"index": 0, "embedding": vector_of("a")}]
    counted = response({"data": rows, "usage": {"prompt_tokens": 7}})
    tries: list[Try] = []
    async with embeddings(response({}, "503 Busy"), counted) as server:
        found = await embed(settings(server.base_url), "a", tries=tries)
    assert not isinstance(found, EmbedFailed)
    told = [(tried.number, tried.outcome, tried.tokens) for tried in tries]
    assert told == [(1, "server_error", 0), (2, "ok", 7)]
    assert len({tried.call for tried in tries}) == 1
    assert tries[0].started <= tries[1].started
    assert all(tried.seconds > 0 for tried in tries)


@pytest.mark.parametrize("usage", [None, 3, {}, {"prompt_tokens": None}, {"prompt_tokens": -1}])
async def test_usage_of_another_form_costs_nothing_but_the_count(usage: object) -> None:
    rows = [{"index": 0, "embedding": vector_of("a")}]
    tries: list[Try] = []
    async with embeddings(response({"data": rows, "usage": usage})) as server:
        found = await embed(settings(server.base_url), "a", tries=tries)
    assert not isinstance(found, EmbedFailed)
    assert [tried.tokens for tried in tries] == [0]
