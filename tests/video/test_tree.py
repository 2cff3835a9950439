"""Reading trees: all problems at once, never a half-read tree."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.video.tree import TreeError, parse_tree
from tests.video.trees import VIDEO, JsonObject, sample, sample_bytes


def test_the_sample_is_read_whole() -> None:
    tree = parse_tree(sample_bytes(), "t.json")
    assert tree.roots == (f"{VIDEO}_L1_000", f"{VIDEO}_L1_001")
    assert tree.duration_s == 90.5
    assert tree.parents[f"{VIDEO}_L3_000"] == f"{VIDEO}_L2_000"
    assert tree.nodes[f"{VIDEO}_L2_001"].summary == "The oven is opened."
    assert [node.start_s for node in tree.nodes.values()] == [0.0, 0.0, 12.0, 30.0, 60.0]


def test_every_problem_is_named_at_once() -> None:
    data = sample()
    del data["domain"]
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    nodes[f"{VIDEO}_L1_000"]["time_range"] = [60.0, 0.0]
    nodes[f"{VIDEO}_L1_001"]["children_ids"] = ["nobody", f"{VIDEO}_L1_000", f"{VIDEO}_L2_000"]
    nodes[f"{VIDEO}_L2_000"]["level"] = True
    nodes[f"{VIDEO}_L2_001"]["card"] = ["entities"]
    nodes[f"{VIDEO}_L3_000"]["subtitle"] = 3
    with pytest.raises(TreeError) as caught:
        parse_tree(json.dumps(data).encode(), "t.json")
    text = "\n".join(caught.value.problems)
    for wanted in (
        "'domain'",
        "does not run forward",
        "child nobody does not exist",
        f"child {VIDEO}_L1_000 is not of a lower level",
        f"child of {VIDEO}_L1_000 and {VIDEO}_L1_001",
        "'level' is not 1, 2 or 3",
        "'card' is not an object",
        "'subtitle' is not a text",
    ):
        assert wanted in text
    assert str(caught.value).startswith("t.json: ")


def test_what_looks_wrong_and_harms_nothing_is_a_warning() -> None:
    """A tree is not refused for it; the sample itself has nothing of the kind."""
    assert parse_tree(sample_bytes(), "t.json").warnings == ()
    data = sample()
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    nodes[f"{VIDEO}_L2_000"]["time_range"] = [-0.0, 75]
    nodes[f"{VIDEO}_L3_000"]["time_range"] = [80.5, 200.0]
    nodes[f"{VIDEO}_L2_001"]["card"] = {
        "entities": [{"name": "oven", "n": 2}, "a"],
        "n": 3,
        "x": None,
    }
    nodes["stray"] = {**nodes[f"{VIDEO}_L1_001"], "level": 3.0}
    tree = parse_tree(json.dumps(data).encode(), "t.json")
    text = "\n".join(tree.warnings)
    for wanted in (
        f"node {VIDEO}_L2_000: -0.0-75.0 s lies outside its parent {VIDEO}_L1_000, 0.0-60.0 s",
        f"node {VIDEO}_L3_000: 80.5-200.0 s lies outside its parent {VIDEO}_L2_000",
        f"node {VIDEO}_L3_000: ends at 200.0 s, after the video (90.5 s)",
        "node stray: no node has it as a child",
        "node stray: its card has no frame_summary",
        f"node {VIDEO}_L2_001: card field 'entities' is read as JSON text",
        f"node {VIDEO}_L2_001: its card has no event_description",
    ):
        assert wanted in text
    card = {field.name: field.values for field in tree.nodes[f"{VIDEO}_L2_001"].card}
    assert card == {"entities": ('{"name": "oven", "n": 2}', "a"), "n": ("3",), "x": ()}
    assert tree.nodes["stray"].level == 3


def test_half_a_second_is_rounding() -> None:
    data = sample()
    cast("dict[str, JsonObject]", data["nodes"])[f"{VIDEO}_L2_001"]["time_range"] = [29.6, 60.5]
    assert parse_tree(json.dumps(data).encode(), "t.json").warnings == ()


def test_keys_that_are_not_read_are_ignored() -> None:
    data = sample() | {"schema": 4, "embedder": {"model": "m"}}
    for node in cast("dict[str, JsonObject]", data["nodes"]).values():
        node |= {"parent_id": None, "frames": [1], "embedding": [0.5]}
    assert parse_tree(json.dumps(data).encode(), "t.json") == parse_tree(sample_bytes(), "t.json")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"nodes": {}}'])
def test_what_is_no_tree_is_refused(raw: bytes) -> None:
    with pytest.raises(TreeError):
        parse_tree(raw, "t.json")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    key=st.sampled_from(["level", "time_range", "card", "subtitle", "children_ids"]), value=_json
)
def test_a_damaged_field_is_read_or_refused_and_nothing_else(key: str, value: object) -> None:
    data = sample()
    cast("dict[str, JsonObject]", data["nodes"])[f"{VIDEO}_L2_000"][key] = value
    with suppress(TreeError):
        tree = parse_tree(json.dumps(data).encode("utf-8"), "t.json")
        assert set(tree.parents.values()) <= set(tree.nodes)
