"""Ranking a tree's nodes and subtitle lines by BM25 (the library ``bm25s``), and choosing hits.

Deterministic: equal scores are ordered by time and id. An index is built at the first
search of a tree and lives as long as the tree does. Must never change a tree.

A *ranking* is a list of node positions (``SearchableTree.nodes``), best first. Rankings by
vectors come from ``actors.video.vectors``; ``fused`` makes one of several, and of any ranking
``distinct`` takes the hits: of a node and what is above and below it only the best one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import cached_property

import bm25s
import msgspec

from actors.video.text import clean, subtitle_lines
from actors.video.tree import Node, Tree
from actors.video.vectors import NodeVectors

__all__ = ["Bm25", "Line", "SearchableTree", "fused", "node_text", "tokens"]

# Scripts without spaces between words are indexed character by character.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
    r"|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
)
_SCORE_DIGITS = 5  # scores are float32: differences below this are rounding, that is ties
_FUSION = 60  # of reciprocal rank fusion: how little the first places differ (Cormack et al. 2009)


def tokens(text: str) -> list[str]:
    """The words that are compared: case-folded, no punctuation."""
    return _TOKEN.findall(text.casefold())


class Line(msgspec.Struct, frozen=True):
    """A line of subtitles with the node that it is heard in. Times in seconds."""

    node_id: str
    position: int
    start_s: float
    end_s: float
    text: str


class Bm25:
    """BM25 over a fixed list of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        documents = [tokens(text) for text in texts]
        words = sorted({word for document in documents for word in document})
        self._ids = {word: position for position, word in enumerate(words)}
        self._index: bm25s.BM25 | None = None
        if self._ids:
            self._index = bm25s.BM25(backend="numpy", csc_backend="numpy")
            numbered = [[self._ids[word] for word in document] for document in documents]
            self._index.index((numbered, dict(self._ids)), show_progress=False)

    def scores(self, query: str) -> list[tuple[int, float]]:
        """(text's position, score) of every text that shares a word with the query."""
        known = [self._ids[word] for word in tokens(query) if word in self._ids]
        if self._index is None or not known:
            return []
        found = enumerate(self._index.get_scores(known).tolist())
        return [(position, round(score, _SCORE_DIGITS)) for position, score in found if score > 0]


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """One ranking of several: the sum of 1 / (60 + place) decides, then the position."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, position in enumerate(ranking, start=1):
            scores[position] = scores.get(position, 0.0) + 1.0 / (_FUSION + place)
    return sorted(scores, key=lambda position: (-scores[position], position))


class SearchableTree:
    """A tree with its indexes, built when first needed; safe to search from many threads."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.vectors: NodeVectors | None = None  # made by whoever can ask for vectors
        self._lock = threading.Lock()  # worker threads: build an index once, not N times

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in time order: what positions in a ranking mean."""
        return tuple(self.tree.nodes.values())

    @cached_property
    def _node_index(self) -> Bm25:
        return Bm25([node_text(node) for node in self.nodes])

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All subtitle lines in time order, each once, at the deepest node that holds them."""
        return tuple(
            Line(node.node_id, position, node.start_s, node.end_s, text)
            for node in self.nodes
            if not any(clean(self.tree.nodes[child].subtitle) for child in node.children)
            for position, text in enumerate(subtitle_lines(node.subtitle))
        )

    @cached_property
    def _line_index(self) -> Bm25:
        return Bm25([line.text for line in self.lines])

    def search(self, query: str, k: int) -> tuple[Node, ...]:
        """The ``k`` best nodes by words."""
        return self.distinct(self.ranked(query), k)

    def ranked(self, query: str) -> list[int]:
        """Every node that shares a word with the query, the best by BM25 first."""
        with self._lock:
            index, nodes = self._node_index, self.nodes
        scores = index.scores(query)
        scores.sort(key=lambda found: (-found[1], nodes[found[0]].node_id))
        return [position for position, _ in scores]

    def distinct(self, ranking: Sequence[int], k: int) -> tuple[Node, ...]:
        """The first ``k`` nodes of a ranking of which none is above another one."""
        chosen: list[Node] = []
        taken: set[str] = set()  # chosen nodes
        above: set[str] = set()  # and everything above a chosen one
        for position in ranking:
            if len(chosen) == k:
                break
            node = self.nodes[position]
            ancestors = self._ancestors(node.node_id)
            if node.node_id in above or any(ancestor in taken for ancestor in ancestors):
                continue
            chosen.append(node)
            taken.add(node.node_id)
            above.update(ancestors)
        return tuple(chosen)

    def search_lines(
        self, query: str, start_s: float | None, end_s: float | None, limit: int
    ) -> tuple[Line, ...]:
        """Subtitle lines in the time range: best first, or in time order for a blank query."""
        with self._lock:
            lines, index = self.lines, self._line_index
        heard = [
            position
            for position, line in enumerate(lines)
            if (end_s is None or line.start_s <= end_s)
            and (start_s is None or line.end_s >= start_s)
        ]
        if not query.strip():
            return tuple(lines[position] for position in heard[:limit])
        scores = dict(index.scores(query))
        ranked = sorted(
            (position for position in heard if position in scores),
            key=lambda position: (-scores[position], position),
        )
        return tuple(lines[position] for position in ranked[:limit])

    def _ancestors(self, node_id: str) -> list[str]:
        found = []
        above = self.tree.parents.get(node_id)
        while above is not None:
            found.append(above)
            above = self.tree.parents.get(above)
        return found


def node_text(node: Node) -> str:
    """What of a node is searched: its card and its subtitle."""
    values = [value for field in node.card for value in field.values]
    return "\n".join([*values, clean(node.subtitle)])
