"""Searching by meaning: the video actor with an embedder, over real trees and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, cast

import anyio
import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs

from actors.runtime.errors import ActorCrashed, ActorDead
from actors.video.actor import Semantic, VideoActor
from protocol.base import Request
from protocol.embedder import Embed, EmbedFailed, Vectors
from protocol.video import SearchTree, ToolRefused, TreeText, TreeUnavailable
from tests.embedder.server import settings as embedding
from tests.support.fakes import FakeAddress
from tests.video.test_actor import FRAMES, settings
from tests.video.trees import VIDEO, JsonObject, sample, sample_bytes

pytestmark = pytest.mark.anyio

MEANINGS = (("dough", "flour", "pastry"), ("oven", "stove", "heat"), ("garden", "lawn", "outdoors"))
DOWN = EmbedFailed(kind="server_error", fatal=False, detail="status 503")


class Meanings:
    """An embedder that knows three things, each by three words."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failure: EmbedFailed | Exception | None = None
        self.dimensions = 4
        self.address = FakeAddress("embedder", self.answer)

    async def answer(self, request: Request[object]) -> object:
        assert isinstance(request, Embed)
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is not None:
            return self.failure
        self.texts += request.texts
        return Vectors(vectors=tuple(self._vector(text.lower()) for text in request.texts))

    def _vector(self, text: str) -> bytes:
        known = [float(sum(text.count(word) for word in words)) for words in MEANINGS]
        row = np.array([*known, 0.1] + [0.0] * (self.dimensions - 4), dtype="<f4")
        unit: bytes = (row / np.linalg.norm(row)).astype("<f4").tobytes()
        return unit


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    (tmp_path / f"{VIDEO}.json").write_bytes(sample_bytes())
    return tmp_path


def actor(
    trees: Path, meanings: Meanings, how: Literal["embedding", "hybrid"] = "embedding"
) -> VideoActor:
    semantic = Semantic(embedding("http://unused"), trees / "index", meanings.address)
    data = msgspec.structs.replace(settings(), search=how)
    return VideoActor(data, FRAMES, trees, semantic)


async def hits(video: VideoActor, query: str, k: int = 1) -> tuple[str, ...]:
    found = await video.search(SearchTree(video_id=VIDEO, query=query, k=k))
    assert isinstance(found, TreeText)
    return found.node_ids


async def test_words_that_stand_nowhere_are_found_by_meaning(trees: Path) -> None:
    video = actor(trees, Meanings())
    assert await hits(video, "stove") == (f"{VIDEO}_L2_001",)
    assert await hits(video, "lawn") == (f"{VIDEO}_L1_001",)


async def test_bug_11_parent_and_child_are_not_both_returned(trees: Path) -> None:
    """Defect 11: by vectors every node is ranked, and still none is above another."""
    for how in ("embedding", "hybrid"):
        found = await hits(actor(trees, Meanings(), how), "pastry dough", 20)
        assert found
        assert not {f"{VIDEO}_L1_000", f"{VIDEO}_L2_000"} <= set(found)
        assert not {f"{VIDEO}_L2_000", f"{VIDEO}_L3_000"} <= set(found)


async def test_hybrid_finds_what_either_finds(trees: Path) -> None:
    video = actor(trees, Meanings(), "hybrid")
    assert f"{VIDEO}_L1_001" in await hits(video, "tasty", 3)  # by its words alone
    assert (await hits(video, "stove", 3))[0] == f"{VIDEO}_L2_001"  # by its meaning alone


async def test_the_index_is_made_once_kept_and_made_anew_when_it_is_damaged(trees: Path) -> None:
    meanings = Meanings()
    video = actor(trees, meanings)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(hits, video, "stove")
    assert len(meanings.texts) == 5 + 10  # five nodes once, ten queries
    (file,) = (trees / "index").rglob("*.vectors")
    again = Meanings()
    assert await hits(actor(trees, again), "stove") == (f"{VIDEO}_L2_001",)
    assert again.texts == ["stove"]
    file.write_bytes(file.read_bytes()[:-1])
    assert await hits(actor(trees, again), "stove") == (f"{VIDEO}_L2_001",)
    assert len(again.texts) == 1 + 5 + 1
    data = sample()
    cast("dict[str, JsonObject]", data["nodes"])[f"{VIDEO}_L2_001"]["card"] = {"x": "a lawn"}
    (trees / f"{VIDEO}.json").write_text(json.dumps(data))
    changed = Meanings()
    assert f"{VIDEO}_L2_001" in await hits(actor(trees, changed), "lawn", 2)
    assert len(changed.texts) == 5 + 1


async def test_an_index_that_cannot_be_written_costs_nothing_but_calls(trees: Path) -> None:
    (trees / "index").write_text("a file where the folder should be")
    with capture_logs() as logs:
        assert await hits(actor(trees, Meanings()), "stove") == (f"{VIDEO}_L2_001",)
    assert [line["event"] for line in logs] == ["video.index_unwritten"]


@pytest.mark.parametrize("how", ["embedding", "hybrid"])
async def test_a_failing_embedder_is_infrastructure_and_never_an_empty_result(
    trees: Path, how: Literal["embedding", "hybrid"]
) -> None:
    """While the tree is embedded, and later at the query."""
    meanings = Meanings()
    video = actor(trees, meanings, how)
    request = SearchTree(video_id=VIDEO, query="dough", k=3)
    for _ in range(2):  # nothing of a failure is kept
        meanings.failure = DOWN
        failed = await video.search(request)
        assert failed == TreeUnavailable(kind="server_error", detail="embedder: status 503")
        meanings.failure = ActorCrashed("embedder", "it raised")
        crashed = await video.search(request)
        assert isinstance(crashed, TreeUnavailable)
        assert crashed.kind == "crash"
        meanings.failure = None
        assert isinstance(await video.search(request), TreeText)
    meanings.failure = ActorDead("embedder", "stopped")
    with pytest.raises(ActorDead):  # the house is going down: not this question's failure
        await video.search(request)


async def test_another_model_under_the_same_name_is_told_with_a_remedy(trees: Path) -> None:
    meanings = Meanings()
    assert await hits(actor(trees, meanings), "stove")
    meanings.dimensions = 6
    failed = await actor(trees, meanings).search(SearchTree(video_id=VIDEO, query="stove", k=1))
    assert isinstance(failed, TreeUnavailable)
    assert failed.kind == "body"
    assert str(trees / "index") in failed.detail


async def test_a_tree_without_words_is_no_error(trees: Path) -> None:
    data = sample()
    for node in cast("dict[str, JsonObject]", data["nodes"]).values():
        node |= {"card": {}, "subtitle": ""}
    (trees / f"{VIDEO}.json").write_text(json.dumps(data))
    assert await hits(actor(trees, Meanings()), "stove") == ()


async def test_the_agents_mistakes_ask_nobody(trees: Path) -> None:
    meanings = Meanings()
    video = actor(trees, meanings)
    assert isinstance(await video.search(SearchTree(video_id=VIDEO, query=" ", k=1)), ToolRefused)
    assert isinstance(
        await video.search(SearchTree(video_id="gone", query="x", k=1)), TreeUnavailable
    )
    assert meanings.texts == []
