"""A run's trees are what they were: also the pictures, where they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from actors.video.fingerprint import tree_fingerprint
from actors.video.tree import TreeError
from tests.video.trees import sample_bytes

PICTURE = bytes(range(256)) * 64


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    frames = tmp_path / "601" / "frames"
    frames.mkdir(parents=True)
    (tmp_path / "601" / "tree.json").write_bytes(sample_bytes())
    (frames / "L3_000.jpg").write_bytes(PICTURE)
    (frames / "L3_001.png").write_bytes(PICTURE)
    return tmp_path


def _taken_again(frames: Path) -> None:
    (frames / "L3_000.jpg").write_bytes(PICTURE[:-1] + b"x")


def _longer(frames: Path) -> None:
    (frames / "L3_000.jpg").write_bytes(PICTURE + b"x")


def _gone(frames: Path) -> None:
    (frames / "L3_001.png").unlink()


def _renamed(frames: Path) -> None:
    (frames / "L3_001.png").rename(frames / "L3_002.png")


def _one_more(frames: Path) -> None:
    (frames / "L3_002.webp").write_bytes(b"x")


CHANGES = (_taken_again, _longer, _gone, _renamed, _one_more)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_pictures_count_where_they_are_shown(trees: Path, change: Callable[[Path], None]) -> None:
    before = {shown: tree_fingerprint(trees, "601", pictures=shown) for shown in (False, True)}
    change(trees / "601" / "frames")
    after = {shown: tree_fingerprint(trees, "601", pictures=shown) for shown in (False, True)}
    assert before[False] == after[False]
    assert before[True] != after[True]


def test_the_same_pictures_elsewhere_are_the_same(trees: Path, tmp_path: Path) -> None:
    """Times do not count, nor does what is no picture."""
    before = tree_fingerprint(trees, "601", pictures=True)
    (trees / "601").rename(trees / "aside")
    (trees / "aside").rename(trees / "601")
    (trees / "601" / "frames" / "L3_000.jpg").write_bytes(PICTURE)
    (trees / "601" / "frames" / "note.txt").write_text("taken on Monday")
    assert tree_fingerprint(trees, "601", pictures=True) == before


def test_the_tree_itself_counts_and_a_video_without_pictures_has_one(trees: Path) -> None:
    (trees / "602.json").write_bytes(sample_bytes())
    before = tree_fingerprint(trees, "602", pictures=True)
    assert before == tree_fingerprint(trees, "602", pictures=False)
    (trees / "602.json").write_bytes(sample_bytes() + b" ")
    assert before != tree_fingerprint(trees, "602", pictures=True)


def test_what_cannot_be_read_is_named(trees: Path) -> None:
    with pytest.raises(TreeError, match="no tree file"):
        tree_fingerprint(trees, "603", pictures=True)
    (trees / "601" / "frames" / "L3_002.jpg").symlink_to(trees / "nowhere")
    with pytest.raises(TreeError, match=r"L3_002\.jpg: cannot be read"):
        tree_fingerprint(trees, "601", pictures=True)
