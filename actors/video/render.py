"""The texts that the agent reads. Pure; says only what the tree says."""

from __future__ import annotations

from collections.abc import Sequence

from actors.video.search import Line
from actors.video.text import clean
from actors.video.tree import SUMMARY_FIELDS, Node, Tree
from protocol.video import TreeText

__all__ = [
    "frames_text",
    "hits_text",
    "lines_text",
    "node_text",
    "overview_text",
    "unknown_node_text",
]

_SUMMARY_CHARS = 300
_SUBTITLE_CHARS = 3000
_FRAME_SUBTITLE_CHARS = 1000


def overview_text(tree: Tree) -> TreeText:
    """The video's length and one line per scene."""
    roots = [tree.nodes[node_id] for node_id in tree.roots]
    head = f"{len(roots)} scenes, {_seconds(tree.duration_s)} s in all."
    return TreeText(text="\n".join([head, *map(_node_line, roots)]), node_ids=tree.roots)


def node_text(tree: Tree, node: Node) -> TreeText:
    """A node's card, its subtitle, and one line per child."""
    parts = [f"Node {node.node_id} | L{node.level} | {_range(node.start_s, node.end_s)}"]
    summary = SUMMARY_FIELDS[node.level]
    ordered = sorted(node.card, key=lambda field: field.name != summary)  # the summary first
    parts += [f"{field.name}: {'; '.join(field.values)}" for field in ordered if any(field.values)]
    subtitle = clean(node.subtitle)
    if subtitle:
        parts.append(f"subtitle: {_cut(subtitle, _SUBTITLE_CHARS)}")
    children = [tree.nodes[child] for child in node.children]
    if children:
        parts.append(f"Children ({len(children)}):")
        parts += map(_node_line, children)
    else:
        parts.append("Children: none")
    return TreeText(text="\n".join(parts), node_ids=(node.node_id, *node.children))


def unknown_node_text(tree: Tree, node_id: str) -> str:
    """What to tell an agent that asked for a node that does not exist."""
    return (
        f"There is no node {node_id!r} in this video. Use an id that was shown to you; "
        f"the top level is: {', '.join(tree.roots)}."
    )


def hits_text(query: str, nodes: Sequence[Node]) -> TreeText:
    """Search hits, best first: id, level, time range, summary."""
    if not nodes:
        return TreeText(text=f"No node matches {query!r}. Try other words.", node_ids=())
    lines = [f"{len(nodes)} nodes for {query!r}, best first:", *map(_node_line, nodes)]
    return TreeText(text="\n".join(lines), node_ids=tuple(node.node_id for node in nodes))


def lines_text(query: str, lines: Sequence[Line]) -> TreeText:
    """Subtitle lines: node id, time range of the node, text."""
    if not lines:
        return TreeText(text="No subtitle line matches. Try other words or times.", node_ids=())
    head = f"{len(lines)} subtitle lines" + (f" for {query!r}:" if query.strip() else ":")
    shown = [
        f"- {line.node_id} | {_range(line.start_s, line.end_s)} | {line.text}" for line in lines
    ]
    ids = tuple(dict.fromkeys(line.node_id for line in lines))
    return TreeText(text="\n".join([head, *shown]), node_ids=ids)


def frames_text(tree: Tree, nodes: Sequence[Node]) -> str:
    """Which key frames are shown, in the order of their pictures, and what is said around them."""
    head = "1 key frame:" if len(nodes) == 1 else f"{len(nodes)} key frames, in time order:"
    parts = [head, *map(_node_line, nodes)]
    heard = dict.fromkeys(_speaking(tree, node).node_id for node in nodes)
    for node in map(tree.nodes.__getitem__, heard):
        subtitle = clean(node.subtitle)
        if subtitle:
            where = f"subtitle, {_range(node.start_s, node.end_s)}"
            parts.append(f"{where}: {_cut(subtitle, _FRAME_SUBTITLE_CHARS)}")
    return "\n".join(parts)


def _speaking(tree: Tree, node: Node) -> Node:
    """The node itself if anything is said in it, else the event around it."""
    return (
        node if clean(node.subtitle) else tree.nodes[tree.parents.get(node.node_id, node.node_id)]
    )


def _node_line(node: Node) -> str:
    summary = " ".join(node.summary.split()) or "(no summary)"
    where = f"- {node.node_id} | L{node.level} | {_range(node.start_s, node.end_s)}"
    return f"{where} | {_cut(summary, _SUMMARY_CHARS)}"


def _range(start_s: float, end_s: float) -> str:
    return f"{_seconds(start_s)}-{_seconds(end_s)} s"


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _cut(text: str, limit: int) -> str:
    """At most ``limit`` characters, and how many more there are."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"
