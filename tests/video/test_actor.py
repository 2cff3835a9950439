"""The video actor, its handlers called directly over real files."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import cast

import anyio
import pytest
from PIL import Image
from structlog.testing import capture_logs

from actors.video import actor as video_actor
from actors.video.actor import VideoActor
from actors.video.frames import FrameFile, encode_frame
from actors.video.search import Bm25, SearchableTree
from actors.video.store import read_tree
from protocol.settings import DataSettings, FrameSettings
from protocol.video import (
    Frames,
    GetOverview,
    ObserveFrames,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)
from tests.video.trees import VIDEO, JsonObject, sample, sample_bytes

pytestmark = pytest.mark.anyio


FRAMES = FrameSettings(longest_px=32, jpeg_quality=85, cache_mb=1)


def settings(tree_cache: int = 2) -> DataSettings:
    return DataSettings(
        seed="seeds/x",
        questions="q.jsonl",
        duration=None,
        exclude=None,
        trees="trees",
        batch_size=10,
        design_share=0.5,
        eval_min_per_class=2,
        trainable_min_units=8,
        tree_cache=tree_cache,
        search="bm25",
    )


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    (tmp_path / f"{VIDEO}.json").write_bytes(sample_bytes())
    (tmp_path / "broken.json").write_bytes(b"{}")
    return tmp_path


async def test_looking_and_searching(trees: Path) -> None:
    actor = VideoActor(settings(), FRAMES, trees)
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
    actor = VideoActor(settings(), FRAMES, trees)
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
    actor = VideoActor(settings(), FRAMES, trees)
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
    actor = VideoActor(settings(), FRAMES, trees)

    async def search() -> None:
        await actor.search(SearchTree(video_id=VIDEO, query="bread", k=3))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(search)
    assert reads == [VIDEO]


async def test_different_videos_are_read_side_by_side(
    trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reads meet inside the reader: with one lock for all they would not."""
    meeting = threading.Barrier(2, timeout=30)

    def met(folder: Path, video_id: str) -> SearchableTree:
        meeting.wait()
        return read_tree(folder, video_id)

    monkeypatch.setattr(video_actor, "read_tree", met)
    (trees / "other.json").write_bytes(sample_bytes())
    actor = VideoActor(settings(), FRAMES, trees)

    async def overview(video_id: str) -> None:
        await actor.overview(GetOverview(video_id=video_id))

    async with anyio.create_task_group() as tasks:
        for video_id in (VIDEO, "other"):
            tasks.start_soon(overview, video_id)
    assert not meeting.broken


async def test_a_reader_that_gives_up_does_not_take_the_others_along(trees: Path) -> None:
    actor = VideoActor(settings(), FRAMES, trees)
    replies: list[object] = []

    async def overview() -> None:
        replies.append(await actor.overview(GetOverview(video_id=VIDEO)))

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as hasty:
            async with anyio.create_task_group() as first:
                first.start_soon(overview)
                tasks.start_soon(overview)
                hasty.cancel()
    assert [type(reply) for reply in replies] == [TreeText]


async def test_hundreds_of_trees_pass_through_and_only_the_latest_stay(trees: Path) -> None:
    """With their indexes: what was evicted is freed, nothing else refers to it."""
    videos = [f"video{number}" for number in range(200)]
    for video_id in videos:
        (trees / f"{video_id}.json").write_bytes(sample_bytes())
    actor = VideoActor(settings(tree_cache=5), FRAMES, trees)
    gc.collect()
    before = _living()
    for video_id in [*videos, *videos[:7]]:
        await actor.search(SearchTree(video_id=video_id, query="bread", k=3))
        await actor.subtitles(SearchSubtitles(video_id=video_id, query="salt"))
    gc.collect()
    assert _living() - before == Counter({"SearchableTree": 5, "Bm25": 10})


def _living() -> Counter[str]:
    """Trees and indexes that exist in this process."""
    kinds = (SearchableTree, Bm25)
    return Counter(type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, kinds))


# -- pictures ---------------------------------------------------------------------------


@pytest.fixture
def pictures(trees: Path) -> Path:
    """The folder of the sample's frames."""
    folder = trees / VIDEO / "frames"
    folder.mkdir(parents=True)
    Image.effect_noise((64, 36), 80).convert("RGB").save(folder / "L3_000.jpg")
    return folder


async def test_pictures_of_a_frame_and_of_its_event(trees: Path, pictures: Path) -> None:
    actor = VideoActor(settings(), FRAMES, trees)
    event, frame = f"{VIDEO}_L2_000", f"{VIDEO}_L3_000"
    by_frame = await actor.observe(ObserveFrames(video_id=VIDEO, node_ids=(frame,)))
    by_event = await actor.observe(ObserveFrames(video_id=VIDEO, node_ids=(event,)))
    assert isinstance(by_frame, Frames)
    assert isinstance(by_event, Frames)
    assert (by_frame.node_ids, by_event.node_ids) == ((frame,), (event, frame))
    assert by_frame.pictures == by_event.pictures
    (picture,) = by_frame.pictures
    assert (picture.node_id, picture.start_s) == (frame, 12.0)
    assert picture.url.startswith("data:image/jpeg;base64,")
    assert "Now knead the dough." in by_frame.text


async def test_a_picture_that_many_ask_for_is_encoded_once(
    trees: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[FrameFile] = []

    def counted(file: FrameFile, longest_px: int, quality: int) -> str:
        encoded.append(file)
        return encode_frame(file, longest_px, quality)

    monkeypatch.setattr(video_actor, "encode_frame", counted)
    actor = VideoActor(settings(), FRAMES, trees)
    request = ObserveFrames(video_id=VIDEO, node_ids=(f"{VIDEO}_L3_000",))

    async def observe() -> None:
        await actor.observe(request)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(observe)
    assert len(encoded) == 1
    os.utime(pictures / "L3_000.jpg", ns=(1, 1))  # another picture was put in its place
    await actor.observe(request)
    assert len(encoded) == 2


async def test_no_pictures_is_a_refusal_and_a_broken_one_costs_the_question(
    trees: Path, pictures: Path
) -> None:
    actor = VideoActor(settings(), FRAMES, trees)
    request = ObserveFrames(video_id=VIDEO, node_ids=(f"{VIDEO}_L3_000",))
    (pictures / "L3_000.jpg").write_bytes(b"\xff\xd8 nothing")
    broken = await actor.observe(request)
    assert isinstance(broken, TreeUnavailable)
    assert (broken.kind, "L3_000.jpg" in broken.detail) == ("tree", True)
    (pictures / "L3_000.jpg").unlink()
    missing = await actor.observe(request)
    assert isinstance(missing, TreeUnavailable)
    assert "L3_000.jpg" in missing.detail
    await anyio.Path(pictures).rmdir()
    without = await actor.observe(request)
    assert isinstance(without, ToolRefused)
    assert "no pictures" in without.text
    assert isinstance(await actor.overview(GetOverview(video_id=VIDEO)), TreeText)


# -- subtitles --------------------------------------------------------------------------


def with_subtitles(trees: Path, name: str, *said: str) -> None:
    """The sample with other subtitles: of its two events, then of its second scene."""
    data = sample()
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    for node_id, text in zip(("L2_000", "L2_001", "L1_001"), said, strict=True):
        nodes[f"{VIDEO}_{node_id}"]["subtitle"] = text
    nodes[f"{VIDEO}_L1_000"]["subtitle"] = "\n".join(said[:2])
    (trees / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")


async def test_font_tags_are_stripped_and_not_searched(trees: Path) -> None:
    """Video-MME's files wrap every line, also over several lines and with odd attributes."""
    font = '<font color="white" size=".72c">{}</font>'
    said = font.format("Flour first,\nthen &quot;salt&quot;.") + "\n" + font.format("Stir!")
    with_subtitles(trees, "font", said, "<FONT COLOR=#fff face='A B'>Now</FONT> wait", "Enjoy")
    actor = VideoActor(settings(), FRAMES, trees)
    whole = await actor.subtitles(SearchSubtitles(video_id="font", query="", start_s=0, end_s=90))
    assert isinstance(whole, TreeText)
    assert [line.split(" | ")[-1] for line in whole.text.splitlines()[1:]] == [
        "Flour first,",
        'then "salt".',
        "Stir!",
        "Now wait",
        "Enjoy",
    ]
    found = await actor.subtitles(SearchSubtitles(video_id="font", query="font color white"))
    assert isinstance(found, TreeText)
    assert found.node_ids == ()


async def test_what_two_events_both_hold_is_found_at_both(trees: Path) -> None:
    """Cues that overlap a boundary stand at both sides of it; the scene's copy is not a third."""
    with_subtitles(trees, "twice", "Knead it.\nWait an hour.", "Wait an hour.\nBake it.", "")
    actor = VideoActor(settings(), FRAMES, trees)
    found = await actor.subtitles(SearchSubtitles(video_id="twice", query="hour"))
    assert isinstance(found, TreeText)
    assert found.node_ids == (f"{VIDEO}_L2_000", f"{VIDEO}_L2_001")
    late = await actor.subtitles(SearchSubtitles(video_id="twice", query="hour", start_s=31))
    assert isinstance(late, TreeText)
    assert late.node_ids == (f"{VIDEO}_L2_001",)


@pytest.mark.parametrize("said", ["", " \n ", '<font color="white"></font>'])
async def test_a_video_without_subtitles_says_so(trees: Path, said: str) -> None:
    with_subtitles(trees, "mute", said, said, said)
    actor = VideoActor(settings(), FRAMES, trees)
    for request in (
        SearchSubtitles(video_id="mute", query="dough"),
        SearchSubtitles(video_id="mute", query="", start_s=0.0),
    ):
        refused = await actor.subtitles(request)
        assert isinstance(refused, ToolRefused)
        assert "no subtitles" in refused.text


async def test_what_is_odd_about_a_tree_is_said_once(trees: Path) -> None:
    data = sample()
    cast("dict[str, JsonObject]", data["nodes"])[f"{VIDEO}_L3_000"]["time_range"] = [500, 600]
    (trees / "odd.json").write_text(json.dumps(data), encoding="utf-8")
    actor = VideoActor(settings(), FRAMES, trees)
    with capture_logs() as logs:
        for _ in range(3):
            await actor.overview(GetOverview(video_id="odd"))
    (line,) = logs
    assert (line["event"], line["video_id"], line["count"]) == ("video.tree_warnings", "odd", 2)
    assert "outside its parent" in line["first"][0]
