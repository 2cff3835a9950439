"""Finding tree files: odd ids are fine, ids that leave the folder are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.video.store import TreeCache, find_tree, frames_folder, read_tree
from actors.video.tree import TreeError
from tests.video.trees import sample_bytes


@pytest.mark.parametrize("video_id", ["601", "-abc_DEF", "_x", "a.b", "--help", "видео"])
def test_both_layouts_are_found(tmp_path: Path, video_id: str) -> None:
    (tmp_path / "deep" / video_id).mkdir(parents=True)
    (tmp_path / "deep" / video_id / "tree.json").write_bytes(sample_bytes())
    (tmp_path / f"{video_id}.json").write_bytes(sample_bytes())
    assert find_tree(tmp_path, video_id) == tmp_path / f"{video_id}.json"
    assert read_tree(tmp_path / "deep", video_id).tree.roots


@pytest.mark.parametrize(
    "video_id",
    ["", ".", "..", "../secret", "a/b", "a\\b", "/etc/passwd", "a\0b", "\ud800", ".x", "x" * 300],
)
def test_an_id_never_leaves_the_folder(tmp_path: Path, video_id: str) -> None:
    trees = tmp_path / "trees"
    trees.mkdir()
    (tmp_path / "secret.json").write_bytes(sample_bytes())
    with pytest.raises(TreeError, match="not a usable video id"):
        find_tree(trees, video_id)


def test_a_missing_file_names_the_places_looked_at(tmp_path: Path) -> None:
    with pytest.raises(TreeError) as caught:
        read_tree(tmp_path, "601")
    assert str(tmp_path / "601.json") in str(caught.value)
    assert str(tmp_path / "601" / "tree.json") in str(caught.value)


def test_a_name_too_long_for_the_disk_is_a_missing_tree(tmp_path: Path) -> None:
    """200 characters are allowed, and may be 400 bytes."""
    with pytest.raises(TreeError, match="cannot be looked for"):
        find_tree(tmp_path, "я" * 200)


def test_frames_have_one_place_in_both_layouts(tmp_path: Path) -> None:
    assert frames_folder(tmp_path, "601") == tmp_path / "601" / "frames"


def test_the_least_recently_used_tree_goes(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(sample_bytes())
    tree = read_tree(tmp_path, "a")
    cache = TreeCache(2)
    cache.put("a", tree)
    cache.put("b", tree)
    assert cache.get("a") is tree
    cache.put("c", tree)
    assert (len(cache), cache.get("b")) == (2, None)
    assert cache.get("a") is tree
