"""Whole runs that search by meaning: with an embedding server, and with one that goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.embedder.server import embeddings, response
from tests.system.runs import SMALL, run_to_end, settings

pytestmark = pytest.mark.system


def arguments(base_url: str, tmp_path: Path) -> list[str]:
    embedding = (
        "data.search=hybrid",
        f"embedding.base_url={base_url}",
        "embedding.model=m",
        "embedding.batch=64",
        "embedding.attempts=2",
        "embedding.backoff_s=0.01",
        f"embedding.index={tmp_path / 'index'}",
        "trainer.epochs=1",
    )
    small = tuple(each for each in SMALL if not each.startswith("trainer.epochs"))
    return [*settings((*small, *embedding)), "--workspace", str(tmp_path / "run")]


@pytest.mark.timeout(180)
def test_a_run_by_meaning_ends_and_leaves_its_index_outside_the_data(tmp_path: Path) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embeddings()) as server,
    ):
        run_to_end(*arguments(server.base_url, tmp_path))
    assert server.batches
    kept = list((tmp_path / "index").rglob("*.vectors"))
    assert kept
    texts = [text for batch in server.batches for text in batch]
    assert max(map(len, texts)) <= 4000


@pytest.mark.timeout(180)
def test_an_embedder_that_refuses_stops_the_run_with_the_reason(tmp_path: Path) -> None:
    """Its searches are missing, not empty: nothing is scored on them. No waiting mends a key: 1."""
    refused = [response({"error": "no such key"}, "401 Unauthorized")] * 100_000
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embeddings(*refused)) as server,
    ):
        done = run_to_end(*arguments(server.base_url, tmp_path), expect=1)
    told = done.stdout + done.stderr
    assert "embedder: " in told
    assert "no such key" in told
