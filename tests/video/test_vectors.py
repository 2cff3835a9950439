"""The index of a tree's vectors: its parts, its file and its ranking."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from actors.video.vectors import (
    NodeVectors,
    Passages,
    index_path,
    passages_key,
    passages_of,
    read_index,
    stacked,
    write_index,
)
from tests.embedder.server import settings

MATRIX = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype="<f4")


def vector(*numbers: float) -> bytes:
    return np.array(numbers, dtype="<f4").tobytes()


@examples(deadline=None)
@given(st.lists(st.text("ab \n", max_size=60), max_size=5), st.integers(5, 30))
def test_parts_cover_every_text_and_none_is_too_long_or_blank(texts: list[str], size: int) -> None:
    passages = passages_of(texts, size)
    for part in passages.texts:
        assert part == part.strip() != ""
        assert len(part) <= size
    for owner, text in enumerate(texts):
        parts = [t for t, o in zip(passages.texts, passages.owners, strict=True) if o == owner]
        assert all(part in text for part in parts)
        for character in "ab":  # nothing is lost; what overlaps may be there twice
            assert sum(part.count(character) for part in parts) >= text.count(character)
        if len(text.strip()) <= size:
            assert parts == ([text.strip()] if text.strip() else [])


def test_a_long_text_is_cut_with_an_overlap_of_a_fifth() -> None:
    text = "".join(str(number % 10) for number in range(23))
    assert passages_of([text], 10).texts == (text[0:10], text[8:18], text[16:23])


def test_a_node_is_as_near_as_its_nearest_part_and_ties_go_by_id() -> None:
    vectors = NodeVectors(MATRIX, owners=(0, 0, 1), node_ids=("b", "a"))
    assert vectors.ranked(vector(0, 1)) == [0, 1]
    assert vectors.ranked(vector(0.6, 0.8)) == [1, 0]
    twins = NodeVectors(MATRIX[[0, 0, 0]], owners=(0, 1, 2), node_ids=("c", "a", "b"))
    assert twins.ranked(vector(1, 0)) == [1, 2, 0]


def test_another_dimension_is_an_error_and_no_text_is_not() -> None:
    with pytest.raises(ValueError, match="3 dimensions, the index 2"):
        NodeVectors(MATRIX, (0, 1, 2), ("a", "b", "c")).ranked(vector(1, 0, 0))
    assert NodeVectors(stacked([]), (), ("a",)).ranked(vector(1, 0, 0)) == []
    with pytest.raises(ValueError, match="different dimensions"):
        stacked([vector(1), vector(1, 2)])


def test_the_file_gives_back_what_was_put_in(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "v.vectors"
    write_index(path, "k", MATRIX)
    found = read_index(path, "k", 3)
    assert found is not None
    assert found.tolist() == MATRIX.tolist()
    assert [entry.name for entry in path.parent.iterdir()] == ["v.vectors"]
    empty = tmp_path / "empty.vectors"
    write_index(empty, "k", stacked([]))
    none = read_index(empty, "k", 0)
    assert none is not None
    assert none.shape == (0, 0)


def test_every_damage_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "v.vectors"
    assert read_index(path, "k", 3) is None
    write_index(path, "k", MATRIX)
    assert read_index(path, "other", 3) is None
    assert read_index(path, "k", 4) is None
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert read_index(path, "k", 3) is None
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        assert read_index(path, "k", 3) is None
    path.unlink()
    path.mkdir()
    assert read_index(path, "k", 3) is None


def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.vectors"
    write_index(path, "old", MATRIX)

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_index(path, "new", MATRIX)
    monkeypatch.undo()
    assert read_index(path, "old", 3) is not None
    assert len(list(tmp_path.iterdir())) == 1


def test_the_key_follows_what_the_vectors_follow_from(tmp_path: Path) -> None:
    passages = Passages(("a", "b"), (0, 1))
    plan = settings()
    keys = [
        passages_key(passages, plan),
        passages_key(Passages(("a", "c"), (0, 1)), plan),
        passages_key(Passages(("ab",), (0,)), plan),
        passages_key(passages, msgspec.structs.replace(plan, model="other")),
        passages_key(passages, msgspec.structs.replace(plan, document_prefix="d: ")),
    ]
    assert len(set(keys)) == len(keys)
    moved = msgspec.structs.replace(plan, base_url="http://x/v1", batch=1, query_prefix="q")
    assert passages_key(passages, moved) == keys[0]
    named = msgspec.structs.replace(plan, model="/models/BAAI/bge m3")
    path = index_path(tmp_path, named, "-x", "k" * 64)
    assert path.parent.parent == tmp_path
    assert (path.parent.name[:7], path.name) == ("bge-m3-", f"-x.{'k' * 16}.vectors")
