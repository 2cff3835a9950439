"""What the agent reads of a tree."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from actors.video.render import frames_text, hits_text, lines_text, node_text, overview_text
from actors.video.search import SearchableTree
from actors.video.text import clean, subtitle_lines
from actors.video.tree import parse_tree
from tests.video.trees import VIDEO, sample_bytes

TREE = parse_tree(sample_bytes(), "t.json")


def test_the_overview_is_one_line_per_scene() -> None:
    shown = overview_text(TREE)
    assert shown.text.splitlines() == [
        "2 scenes, 90.5 s in all.",
        f"- {VIDEO}_L1_000 | L1 | 0-60 s | A cook prepares dough in a kitchen.",
        f"- {VIDEO}_L1_001 | L1 | 60-90.5 s | Guests eat bread in a garden.",
    ]
    assert shown.node_ids == TREE.roots


def test_a_node_shows_card_clean_subtitle_and_children() -> None:
    shown = node_text(TREE, TREE.nodes[f"{VIDEO}_L1_000"])
    lines = shown.text.splitlines()
    assert lines[1] == "scene_summary: A cook prepares dough in a kitchen."
    assert "subtitle: Now knead the dough.\nAdd & mix salt." in shown.text
    assert f"- {VIDEO}_L2_001 | L2 | 30-60 s | The oven is opened." in lines
    assert shown.node_ids == (f"{VIDEO}_L1_000", f"{VIDEO}_L2_000", f"{VIDEO}_L2_001")
    assert "font" not in shown.text


def test_hits_and_lines_say_when_there_are_none() -> None:
    tree = SearchableTree(TREE)
    assert hits_text("oven", tree.search("oven", 3)).node_ids == (f"{VIDEO}_L2_001",)
    assert hits_text("zebra", ()).node_ids == ()
    assert "No subtitle line" in lines_text("x", ()).text
    found = lines_text("salt", tree.search_lines("salt", None, None, 5))
    assert found.text.endswith(f"- {VIDEO}_L2_001 | 30-60 s | Add & mix salt.")


def test_frames_are_named_in_order_with_what_is_said_around_them() -> None:
    """A frame without a subtitle of its own has that of its event, once."""
    shown = frames_text(TREE, [TREE.nodes[f"{VIDEO}_L3_000"]])
    assert shown.splitlines() == [
        "1 key frame:",
        f"- {VIDEO}_L3_000 | L3 | 12-12 s | A blue bowl on a table.",
        "subtitle, 0-30 s: Now knead the dough.",
    ]
    assert "font" not in shown


def test_other_angle_brackets_stay() -> None:
    assert clean("a < b and <3 you <i>really</i> {\\an8}x") == "a < b and <3 you really x"


@given(st.text())
def test_lines_are_short_and_never_blank(text: str) -> None:
    for line in subtitle_lines(text):
        assert line.strip()
        assert len(line) <= 300
        assert not re.search(r"[\n\r]", line)
