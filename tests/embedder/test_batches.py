"""Texts that wait together travel together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from actors.embedder.batches import Batches
from protocol.embedder import EmbedFailed, EmbedUse, Vectors

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

REFUSED = EmbedFailed(kind="bad_request", fatal=True, detail="too long")


class Sender:
    """Answers with the texts themselves; waits at a gate where one is closed."""

    def __init__(self) -> None:
        self.sent: list[tuple[EmbedUse, tuple[str, ...]]] = []
        self.gate: anyio.Event | None = None
        self.failure: Callable[[tuple[str, ...]], EmbedFailed | None] = lambda _: None

    async def __call__(
        self, texts: tuple[str, ...], use: EmbedUse
    ) -> tuple[bytes, ...] | EmbedFailed:
        self.sent.append((use, texts))
        if self.gate is not None:
            await self.gate.wait()
        await checkpoint()
        return self.failure(texts) or tuple(text.encode() for text in texts)

    @property
    def batches(self) -> list[tuple[str, ...]]:
        return [texts for _, texts in self.sent]


@asynccontextmanager
async def running(send: Sender, most: int, senders: int = 1) -> AsyncIterator[Batches]:
    batches = Batches(send, most)
    async with anyio.create_task_group() as tasks:
        for _ in range(senders):
            tasks.start_soon(batches.serve)
        await wait_all_tasks_blocked()
        yield batches
        tasks.cancel_scope.cancel()


async def test_a_lone_text_is_sent_at_once() -> None:
    send = Sender()
    async with running(send, 64) as batches:
        assert await batches.embed(["a"], "query") == Vectors(vectors=(b"a",))
    assert send.batches == [("a",)]


async def test_what_waits_is_one_batch_and_queries_go_first() -> None:
    send = Sender()
    send.gate = anyio.Event()
    results: dict[str, object] = {}

    async def ask(use: EmbedUse, *texts: str) -> None:
        results[texts[0]] = await batches.embed(texts, use)

    async with running(send, 3) as batches, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "document", "first")
        await wait_all_tasks_blocked()
        tasks.start_soon(ask, "document", "d1", "d2")
        tasks.start_soon(ask, "document", "d3", "d4")
        tasks.start_soon(ask, "query", "q1")
        tasks.start_soon(ask, "query", "q2")
        await wait_all_tasks_blocked()
        send.gate.set()
    # two askers of documents shared a batch, as far as it reached
    queries, *documents = send.sent[1:]
    assert (queries[0], set(queries[1])) == ("query", {"q1", "q2"})
    assert [len(texts) for _, texts in documents] == [3, 1]
    assert results["d1"] == Vectors(vectors=(b"d1", b"d2"))
    assert results["d3"] == Vectors(vectors=(b"d3", b"d4"))


async def test_all_senders_work_at_the_same_time() -> None:
    """A sender that waits is not forgotten when another one begins to wait."""
    send = Sender()
    async with running(send, 1, senders=3) as batches, anyio.create_task_group() as tasks:
        for text in "ab":  # once around: all wait again
            await batches.embed([text], "query")
        await wait_all_tasks_blocked()
        send.gate = anyio.Event()
        for text in "xyz":
            tasks.start_soon(batches.embed, [text], "query")
        await wait_all_tasks_blocked()
        assert {texts for texts in send.batches[2:]} == {("x",), ("y",), ("z",)}
        send.gate.set()


async def test_only_the_asker_of_a_refused_text_fails() -> None:
    send = Sender()
    send.failure = lambda texts: REFUSED if "bad" in texts else None
    send.gate = anyio.Event()
    results: dict[str, object] = {}

    async def ask(*texts: str) -> None:
        results[texts[0]] = await batches.embed(texts, "document")

    async with running(send, 8) as batches, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "first")
        await wait_all_tasks_blocked()
        tasks.start_soon(ask, "a", "bad", "b")
        tasks.start_soon(ask, "c", "d")
        await wait_all_tasks_blocked()
        send.gate.set()
    assert results["a"] == REFUSED
    assert results["c"] == Vectors(vectors=(b"c", b"d"))


async def test_a_server_that_refuses_all_is_asked_a_few_times_not_once_per_text() -> None:
    send = Sender()
    send.failure = lambda _: REFUSED
    async with running(send, 64) as batches:
        assert await batches.embed([str(n) for n in range(64)], "document") == REFUSED
        await wait_all_tasks_blocked()
    assert len(send.sent) <= 8


@pytest.mark.parametrize("kind", ["auth", "timeout"])
async def test_other_failures_fail_the_batch_at_once(kind: str) -> None:
    failed = EmbedFailed(kind=kind, fatal=False, detail="")  # type: ignore[arg-type]  # two of them
    send = Sender()
    send.failure = lambda _: failed
    async with running(send, 8) as batches:
        assert await batches.embed(["a", "b"], "query") == failed
    assert len(send.sent) == 1


async def test_texts_of_an_asker_that_is_gone_are_not_sent() -> None:
    send = Sender()
    send.gate = anyio.Event()
    async with running(send, 8) as batches, anyio.create_task_group() as tasks:
        tasks.start_soon(batches.embed, ["first"], "query")
        await wait_all_tasks_blocked()
        with anyio.CancelScope() as scope:
            tasks.start_soon(batches.embed, ["stays"], "query")
            async with anyio.create_task_group() as hasty:
                hasty.start_soon(batches.embed, ["goes"], "query")
                await wait_all_tasks_blocked()
                scope.cancel()
        send.gate.set()
    assert send.batches == [("first",), ("stays",)]


async def test_nothing_to_embed_needs_no_sender() -> None:
    assert await Batches(Sender(), 8).embed([], "document") == Vectors(vectors=())
