"""Search: deterministic, no node twice on one line of descent, indexes built once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.video.search import Bm25, SearchableTree, fused, tokens
from actors.video.tree import parse_tree
from tests.video.trees import VIDEO, JsonObject, sample, sample_bytes


@pytest.fixture(scope="module")
def tree() -> SearchableTree:
    return SearchableTree(parse_tree(sample_bytes(), "t.json"))


def _ids(tree: SearchableTree, query: str, k: int = 5) -> list[str]:
    return [node.node_id for node in tree.search(query, k)]


def test_words_of_card_and_subtitle_are_found(tree: SearchableTree) -> None:
    assert _ids(tree, "blue bowl")[0] == f"{VIDEO}_L3_000"
    assert _ids(tree, "tasty") == [f"{VIDEO}_L1_001"]
    assert _ids(tree, "GARDEN, bread?") == [f"{VIDEO}_L1_001"]
    assert _ids(tree, "submarine") == []
    assert _ids(tree, "?!") == []


def test_of_a_parent_and_its_child_only_the_better_one_is_a_hit(tree: SearchableTree) -> None:
    hits = _ids(tree, "knead the dough", 20)
    line = {f"{VIDEO}_L1_000", f"{VIDEO}_L2_000", f"{VIDEO}_L3_000"}
    assert len(line & set(hits)) == 1


def test_bug_11_no_ranking_returns_a_parent_and_its_child(tree: SearchableTree) -> None:
    """Defect 11: whatever ranks the nodes, all of them ranked included."""
    everything = range(len(tree.nodes))
    for ranking in (list(everything), list(reversed(everything)), tree.ranked("bread dough oven")):
        hits = [node.node_id for node in tree.distinct(ranking, 20)]
        above = {tree.tree.parents.get(hit) for hit in hits}
        above |= {tree.tree.parents.get(name or "") for name in above}
        assert hits
        assert not above & set(hits)


def test_fusion_rewards_agreement_and_breaks_ties_by_position() -> None:
    assert fused([[1, 2, 3], [3, 2, 4]]) == [3, 2, 1, 4]
    assert fused([[5, 1], [1, 5]]) == [1, 5]
    assert fused([[7], []]) == [7]
    assert fused([[], []]) == []


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=3))
def test_fusion_keeps_every_node_once(rankings: list[list[int]]) -> None:
    assert sorted(fused(rankings)) == list(range(6))


def test_ties_are_ordered_by_node_id() -> None:
    data = sample()
    nodes = cast("dict[str, JsonObject]", data["nodes"])
    for name in ("c", "a", "b"):
        nodes[name] = {**nodes[f"{VIDEO}_L1_001"], "card": {"scene_summary": "zebra"}}
    tree = SearchableTree(parse_tree(json.dumps(data).encode(), "t.json"))
    assert _ids(tree, "zebra", 2) == ["a", "b"]


def test_many_threads_get_the_same_answer() -> None:
    tree = SearchableTree(parse_tree(sample_bytes(), "t.json"))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: tuple(_ids(tree, "bread dough oven")), range(32)))
    assert len(set(answers)) == 1


def test_subtitle_lines_are_found_by_text_and_by_time(tree: SearchableTree) -> None:
    found = tree.search_lines("salt", None, None, 5)
    assert [(line.node_id, line.text) for line in found] == [(f"{VIDEO}_L2_001", "Add & mix salt.")]
    assert tree.search_lines("salt", 0.0, 20.0, 5) == ()
    by_time = tree.search_lines(" ", 0.0, 45.0, 5)
    assert [line.text for line in by_time] == ["Now knead the dough.", "Add & mix salt."]
    assert len(tree.search_lines("", None, 1000.0, 1)) == 1


def test_scripts_without_spaces_are_indexed_by_character() -> None:
    assert tokens("红色car") == ["红", "色", "car"]
    assert Bm25(["红色的车", "蓝天"]).scores("红车")[0][0] == 0


def test_nothing_to_index_is_no_error() -> None:
    assert Bm25(["", "..."]).scores("word") == []


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.text(max_size=20))
def test_any_texts_and_any_query_give_positive_scores(texts: list[str], query: str) -> None:
    index = Bm25(texts)
    for position, score in index.scores(query):
        assert 0 <= position < len(texts)
        assert score >= 0
