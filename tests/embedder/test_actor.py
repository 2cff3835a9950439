"""The actor under the real runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from actors.config import load_config
from actors.embedder.actor import EmbedderActor, check_embedder
from actors.embedder.vectors import packed
from actors.ledger.actor import LedgerActor
from actors.ledger.reader import open_reader
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address
from actors.runtime.errors import StartFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from protocol.embedder import Embed, EmbedFailed, Vectors
from protocol.ledger import Record, Recorded
from protocol.rows import AttemptRow
from protocol.settings import EmbeddingSettings
from tests.embedder.server import embeddings, response, settings, vector_of
from tests.embedder.test_local import model

__all__ = ["model"]

pytestmark = pytest.mark.anyio


class Books(Actor):
    """A ledger that keeps the rows in memory, or fails."""

    def __init__(self) -> None:
        self.rows: list[AttemptRow] = []
        self.broken = False

    @handles(Record)
    async def record(self, request: Record) -> Recorded:
        if self.broken:
            raise OSError("disk full")
        self.rows += [row for row in request.rows if isinstance(row, AttemptRow)]
        return Recorded(rows=len(request.rows))


@asynccontextmanager
async def embedder(
    plan: EmbeddingSettings, folder: Path | None = None, books: Books | None = None
) -> AsyncIterator[Address]:
    kept = books or Books()
    specs = [
        ActorSpec(name="ledger", factory=lambda _: kept, concurrency=8),
        ActorSpec(
            name="embedder",
            factory=lambda peers: EmbedderActor(plan, folder, peers("ledger"), environ={}),
            asks=("ledger",),
            concurrency=64,
        ),
    ]
    async with Supervisor(specs, load_config(None).runtime) as system:
        yield system.address("embedder")


async def test_many_queries_are_few_requests_with_their_prefix() -> None:
    found: dict[str, object] = {}

    async def ask(text: str) -> None:
        found[text] = await peer.ask(Embed(texts=(text,), use="query"))

    async with embeddings() as server:
        plan = settings(server.base_url, batch=16, query_prefix="query: ")
        async with embedder(plan) as peer, anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(ask, f"text {number}")
    assert found["text 7"] == Vectors(vectors=packed([vector_of("query: text 7")]))
    assert len(found) == 40
    assert sum(map(len, server.batches)) == 40
    assert len(server.batches) < 20


async def test_documents_have_another_prefix_and_a_failure_is_a_reply() -> None:
    async with embeddings(response({}, "401 No")) as server:
        plan = settings(server.base_url, document_prefix="doc: ")
        async with embedder(plan) as peer:
            refused = await peer.ask(Embed(texts=("a",), use="document"))
            assert isinstance(refused, EmbedFailed)
            assert (refused.kind, refused.fatal) == ("auth", True)
            again = await peer.ask(Embed(texts=("a",), use="document"))
    assert again == Vectors(vectors=packed([vector_of("doc: a")]))


async def test_a_model_on_this_machine(model: Path) -> None:
    async with embedder(settings("local", model=str(model)), model) as peer:
        found = await peer.ask(Embed(texts=("cat", "oven"), use="query"))
    assert isinstance(found, Vectors)
    assert len(found.vectors) == 2


async def test_what_cannot_work_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="no such folder"):
        async with embedder(settings("local"), tmp_path / "gone"):
            pass
    with pytest.raises(ValueError, match="KEY"):
        check_embedder(settings("http://x/v1", api_key_env="KEY"), None, {})
    with pytest.raises(ValueError, match="no such folder"):
        check_embedder(settings("local"), tmp_path / "gone", {})


async def test_every_request_is_a_row_in_the_ledger() -> None:
    """Before its vectors go out: none is missing in the accounts."""
    books = Books()
    async with (
        embeddings(response({}, "503 Busy")) as server,
        embedder(settings(server.base_url), books=books) as peer,
    ):
        found = await peer.ask(Embed(texts=("a",), use="query"))
    assert isinstance(found, Vectors)
    assert [(row.role, row.attempt, row.outcome) for row in books.rows] == [
        ("embed", 1, "server_error"),
        ("embed", 2, "ok"),
    ]


async def test_a_request_that_cannot_be_booked_brings_nothing() -> None:
    books = Books()
    books.broken = True
    async with embeddings() as server, embedder(settings(server.base_url), books=books) as peer:
        found = await peer.ask(Embed(texts=("a",), use="query"))
    assert isinstance(found, EmbedFailed)
    assert (found.kind, found.fatal) == ("crash", False)


async def test_a_model_on_this_machine_asks_nobody(model: Path) -> None:
    books = Books()
    async with embedder(settings("local", model=str(model)), model, books) as peer:
        await peer.ask(Embed(texts=("cat",), use="query"))
    assert books.rows == []


async def test_its_rows_are_kept_but_no_part_of_what_the_limits_are_for(tmp_path: Path) -> None:
    """A resumed run adds up the same as the one that was never stopped."""
    specs = [
        ActorSpec(name="ledger", factory=lambda _: LedgerActor(tmp_path / "run.db", 8)),
        ActorSpec(
            name="embedder",
            factory=lambda peers: EmbedderActor(plan, None, peers("ledger"), environ={}),
            asks=("ledger",),
        ),
    ]
    async with embeddings() as server:
        plan = settings(server.base_url)
        async with Supervisor(specs, load_config(None).runtime) as system:
            await system.address("embedder").ask(Embed(texts=("a",), use="query"))
    with open_reader(tmp_path / "run.db") as reader:
        (row,) = reader.rows(AttemptRow)
        assert (row.role, row.outcome, row.usd) == ("embed", "ok", None)
        assert reader.spent().calls == 0
