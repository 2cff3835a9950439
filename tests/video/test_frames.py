"""Pictures: which ones are meant, where they are, what is sent, and every kind of bad file."""

from __future__ import annotations

import base64
import io
import json
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from actors.video.frames import (
    FrameError,
    FrameFile,
    PictureCache,
    choose_frames,
    encode_frame,
    find_frames,
)
from actors.video.tree import Tree, parse_tree
from tests.video.trees import VIDEO, JsonObject, sample

EVENT = f"{VIDEO}_L2_000"


def tree_with(frames: int) -> Tree:
    """The sample with so many key frames in its first event."""
    data = sample()
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    frame = nodes.pop(f"{VIDEO}_L3_000")
    names = [f"{VIDEO}_L3_{number:03d}" for number in range(frames)]
    for number, name in enumerate(names):
        nodes[name] = {**frame, "time_range": [number, number + 1]}
    nodes[EVENT]["children_ids"] = names[::-1]
    return parse_tree(json.dumps(data).encode(), "t.json")


def numbers(tree: Tree, *node_ids: str) -> list[int]:
    chosen = choose_frames(tree, node_ids)
    assert isinstance(chosen, tuple), chosen
    return [int(node.node_id[-3:]) for node in chosen]


def picture(path: Path, size: tuple[int, int] = (64, 36), mode: str = "RGB") -> FrameFile:
    Image.new(mode, size, 0).save(path)
    return FrameFile(str(path), 0, 0)


def opened(url: str) -> Image.Image:
    head, _, data = url.partition(",")
    assert head == "data:image/jpeg;base64"
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.format == "JPEG"
    return image


def test_frames_are_shown_in_time_order_each_once() -> None:
    tree = tree_with(5)
    ids = [f"{VIDEO}_L3_{number:03d}" for number in (3, 1, 3)]
    assert numbers(tree, *ids) == [1, 3]


@pytest.mark.parametrize(
    ("frames", "shown"),
    [(1, [0]), (4, [0, 1, 2, 3]), (5, [0, 1, 3, 4]), (10, [0, 3, 6, 9]), (100, [0, 33, 66, 99])],
)
def test_of_an_event_at_most_four_are_shown_spread_over_it(frames: int, shown: list[int]) -> None:
    assert numbers(tree_with(frames), EVENT) == shown


@pytest.mark.parametrize(
    ("node_ids", "told"),
    [
        ([], "one to four key frames"),
        (["nobody"], "no node 'nobody'"),
        ([f"{VIDEO}_L1_000"], "is a scene"),
        ([EVENT, f"{VIDEO}_L3_000"], "exactly one event"),
        ([EVENT, f"{VIDEO}_L2_001"], "exactly one event"),
        ([f"{VIDEO}_L2_001"], "has no key frames"),
        ([f"{VIDEO}_L3_{number:03d}" for number in range(5)], "At most 4"),
    ],
)
def test_anything_else_is_refused(node_ids: list[str], told: str) -> None:
    refused = choose_frames(tree_with(5), node_ids)
    assert isinstance(refused, str)
    assert told in refused


def test_files_are_found_by_the_node_without_the_video(tmp_path: Path) -> None:
    tree = tree_with(4)
    nodes = [tree.nodes[f"{VIDEO}_L3_{number:03d}"] for number in range(4)]
    assert find_frames(tmp_path / "frames", tree, nodes) is None
    for number, suffix in enumerate(["jpg", "png", "webp", "jpeg"]):
        picture(tmp_path / f"L3_{number:03d}.{suffix}")
    found = find_frames(tmp_path, tree, nodes)
    assert found is not None
    assert [Path(file.path).suffix for file in found] == [".jpg", ".png", ".webp", ".jpeg"]
    (tmp_path / "L3_002.webp").unlink()
    with pytest.raises(FrameError, match=r"L3_002\.jpg: no such file"):
        find_frames(tmp_path, tree, nodes)


def test_a_folder_that_may_not_be_looked_into_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(FrameError, match="Permission denied"):
        find_frames(tmp_path, tree_with(1), [])


def test_a_changed_file_is_another_picture(tmp_path: Path) -> None:
    tree = tree_with(1)
    nodes = [tree.nodes[f"{VIDEO}_L3_000"]]
    path = tmp_path / "L3_000.png"
    picture(path)
    before = find_frames(tmp_path, tree, nodes)
    os.utime(path, ns=(1, 1))
    assert find_frames(tmp_path, tree, nodes) != before


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".hidden", "x" * 300, "\0"])
def test_no_node_id_leaves_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "frames").mkdir()
    picture(tmp_path / "secret.jpg")
    data = sample()
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    nodes[f"{VIDEO}_{name}"] = nodes[f"{VIDEO}_L3_000"]
    tree = parse_tree(json.dumps(data).encode(), "t.json")
    with pytest.raises(FrameError, match="names no file"):
        find_frames(tmp_path / "frames", tree, [tree.nodes[f"{VIDEO}_{name}"]])


@pytest.mark.parametrize(
    ("size", "sent"), [((200, 100), (50, 25)), ((100, 200), (25, 50)), ((40, 20), (40, 20))]
)
@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_large_pictures_are_scaled_small_ones_are_not(
    tmp_path: Path, suffix: str, size: tuple[int, int], sent: tuple[int, int]
) -> None:
    file = picture(tmp_path / f"L3_000.{suffix}", size)
    url = encode_frame(file, 50, 85)
    assert opened(url).size == sent
    assert url == encode_frame(file, 50, 85)  # the same bytes: a request's cache key holds them


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "1", "I;16", "CMYK"])
def test_every_kind_of_picture_becomes_an_opaque_jpeg(tmp_path: Path, mode: str) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"
    image = opened(encode_frame(picture(tmp_path / f"x.{suffix}", mode=mode), 50, 85))
    assert image.mode == "RGB"
    if mode in ("RGBA", "LA"):
        assert cast("tuple[int, ...]", image.getpixel((0, 0))) == (255, 255, 255)


def test_a_picture_taken_sideways_is_turned(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (64, 36)).save(tmp_path / "x.jpg", exif=exif)
    assert opened(encode_frame(FrameFile(str(tmp_path / "x.jpg"), 0, 0), 64, 85)).size == (36, 64)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8\xff", b"no picture", b"GIF89a" + bytes(100), bytes(4096)]
)
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "L3_000.jpg"
    path.write_bytes(data)
    with pytest.raises(FrameError, match=r"L3_000\.jpg: no readable picture"):
        encode_frame(FrameFile(str(path), 0, 0), 64, 85)


def test_a_cut_off_file_and_a_huge_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "L3_000.jpg"
    Image.effect_noise((400, 300), 80).convert("RGB").save(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FrameError, match="L3_000"):
        encode_frame(FrameFile(str(path), 0, 0), 64, 85)
    bomb = picture(tmp_path / "bomb.png", (9000, 8000), "1")
    with pytest.raises(FrameError, match="bomb"):
        encode_frame(bomb, 64, 85)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_random_damage_is_read_or_refused_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"L3_000.{suffix}"
    Image.effect_noise((60, 40), 80).convert("RGB").save(path)
    whole = path.read_bytes()
    draw = random.Random(suffix)
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.randint(1, len(damaged))])
        with suppress(FrameError):
            opened(encode_frame(FrameFile(str(path), 0, 0), 64, 85))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=30))
def test_the_cache_counts_its_bytes_and_keeps_the_latest(puts: list[tuple[int, int]]) -> None:
    cache = PictureCache(100)
    latest: dict[FrameFile, str] = {}
    for number, size in puts:
        file = FrameFile(str(number), 0, 0)
        latest[file] = "x" * size
        cache.put(file, latest[file])
        assert cache.get(file) == latest[file]
        kept = [url for key in latest if (url := cache.get(key)) is not None]
        assert cache.bytes == sum(map(len, kept)) <= 100
        assert len(cache) == len(kept)


def test_the_least_recently_used_picture_goes_and_a_giant_is_not_kept() -> None:
    one, two, three = (FrameFile(name, 0, 0) for name in "abc")
    cache = PictureCache(10)
    cache.put(one, "x" * 5)
    cache.put(two, "x" * 5)
    assert cache.get(one)
    cache.put(three, "x" * 5)
    assert (cache.get(one), cache.get(two)) == ("x" * 5, None)
    cache.put(two, "x" * 11)
    assert cache.get(two) is None
    assert cache.get(one)
