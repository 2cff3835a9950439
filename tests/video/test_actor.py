"""The video actor, its handlers called directly over real files."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from actors.video import actor as video_actor
from actors.video.actor import VideoActor
from actors.video.search import SearchableTree
from actors.video.store import read_tree
from protocol.settings import DataSettings
from protocol.video import (
    GetOverview,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)
from tests.video.trees import VIDEO, sample_bytes

pytestmark = pytest.mark.anyio


def settings(tree_cache: int = 2) -> DataSettings:
    return DataSettings(
        seed="seeds/x",
        questions="q.jsonl",
        exclude=None,
        trees="trees",
        batch_size=10,
        design_share=0.5,
        eval_min_per_class=2,
        trainable_min_units=8,
        tree_cache=tree_cache,
    )


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    (tmp_path / f"{VIDEO}.json").write_bytes(sample_bytes())
    (tmp_path / "broken.json").write_bytes(b"{}")
    return tmp_path


async def test_looking_and_searching(trees: Path) -> None:
    actor = VideoActor(settings(), trees)
    overview = await actor.overview(GetOverview(video_id=VIDEO))
    assert isinstance(overview, TreeText)
    node = await actor.view(ViewNode(video_id=VIDEO, node_id=overview.node_ids[0]))
    assert isinstance(node, TreeText)
    hits = await actor.search(SearchTree(video_id=VIDEO, query="oven", k=1))
    assert isinstance(hits, TreeText)
    assert hits.node_ids == (f"{VIDEO}_L2_001",)
    lines = await actor.subtitles(SearchSubtitles(video_id=VIDEO, query="salt"))
    assert isinstance(lines, TreeText)
    assert lines.node_ids == (f"{VIDEO}_L2_001",)


async def test_the_agents_mistakes_are_refusals(trees: Path) -> None:
    actor = VideoActor(settings(), trees)
    refused = [
        await actor.view(ViewNode(video_id=VIDEO, node_id="\ud800 nobody")),
        await actor.search(SearchTree(video_id=VIDEO, query=" ", k=5)),
        await actor.search(SearchTree(video_id=VIDEO, query="x", k=0)),
        await actor.search(SearchTree(video_id=VIDEO, query="x", k=10**9)),
        await actor.subtitles(SearchSubtitles(video_id=VIDEO, query="")),
        await actor.subtitles(SearchSubtitles(video_id=VIDEO, query="", start_s=9, end_s=1)),
    ]
    assert all(isinstance(reply, ToolRefused) for reply in refused)
    for reply in refused:
        assert isinstance(reply, ToolRefused)
        reply.text.encode()  # can be sent and stored


async def test_missing_and_damaged_trees_are_unavailable(trees: Path) -> None:
    actor = VideoActor(settings(), trees)
    for video_id in ("nowhere", "broken", "../x"):
        for reply in (
            await actor.overview(GetOverview(video_id=video_id)),
            await actor.view(ViewNode(video_id=video_id, node_id="n")),
            await actor.search(SearchTree(video_id=video_id, query="x", k=1)),
            await actor.subtitles(SearchSubtitles(video_id=video_id, query="x")),
        ):
            assert isinstance(reply, TreeUnavailable)
    (trees / "nowhere.json").write_bytes(sample_bytes())
    assert isinstance(await actor.overview(GetOverview(video_id="nowhere")), TreeText)


async def test_a_tree_that_many_ask_for_is_read_once(
    trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def counted(folder: Path, video_id: str) -> SearchableTree:
        reads.append(video_id)
        return read_tree(folder, video_id)

    monkeypatch.setattr(video_actor, "read_tree", counted)
    actor = VideoActor(settings(), trees)

    async def search() -> None:
        await actor.search(SearchTree(video_id=VIDEO, query="bread", k=3))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(search)
    assert reads == [VIDEO]
