"""The video tree: reading the owner's ``tree.json`` into types.

Pure: bytes in, a checked ``Tree`` out. A tree is taken whole or not at all; a damaged
one is refused with *every* problem, never repaired in silence.

A *problem* is what would make an answer wrong or impossible: a missing key, a child that does
not exist, a time range that runs backward. A *warning* is what looks wrong and harms nothing:
a node outside its parent's time range, past the end of the video, without a summary, or without
a parent (it can be found, but not be walked to); a card's value that is no text. Trees are made
by models and rounded by programs, and a benchmark has hundreds: one odd second must not refuse
a video. Warnings travel with the tree, and whoever loads it says them once.

Keys that are not read are ignored, at the top, in nodes and in cards alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Literal, cast

import msgspec

__all__ = ["SUMMARY_FIELDS", "CardField", "Level", "Node", "Tree", "TreeError", "parse_tree"]

Level = Literal[1, 2, 3]
SUMMARY_FIELDS: Mapping[int, str] = {
    1: "scene_summary",
    2: "event_description",
    3: "frame_summary",
}
_SHOWN_PROBLEMS = 20
_SLACK_S = 0.5
"""Times are rounded, by up to half a second where somebody wrote whole ones."""


class TreeError(ValueError):
    """A tree that cannot be used. ``problems``: all of them, one sentence each."""

    def __init__(self, where: str, problems: tuple[str, ...]) -> None:
        shown = "; ".join(problems[:_SHOWN_PROBLEMS])
        more = len(problems) - _SHOWN_PROBLEMS
        super().__init__(f"{where}: {shown}" + (f"; and {more} more" if more > 0 else ""))
        self.problems = problems


class CardField(msgspec.Struct, frozen=True, gc=False):
    """One field of a card; a plain value is a list of one, null is a list of none."""

    name: str
    values: tuple[str, ...]


class Node(msgspec.Struct, frozen=True, gc=False):
    """A scene (level 1), an event (2) or a key frame (3). Times in seconds of the video.

    Hundreds of trees stay in memory: neither nodes nor fields can be part of a cycle, so the
    garbage collector need not look at them.
    """

    node_id: str
    level: Level
    start_s: float
    end_s: float
    card: tuple[CardField, ...]
    subtitle: str
    children: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The card's summary field of this level; empty where the card has none."""
        wanted = SUMMARY_FIELDS[self.level]
        for field in self.card:
            if field.name == wanted:
                return "; ".join(field.values)
        return ""


class Tree(msgspec.Struct, frozen=True):
    """A whole tree. nodes: in time order, by id; parents: the id above each non-root node.

    warnings: what looks wrong and harms nothing, one sentence each.
    """

    video_id: str
    duration_s: float
    nodes: Mapping[str, Node]
    roots: tuple[str, ...]
    parents: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def parse_tree(raw: bytes, where: str) -> Tree:
    """Read the owner's format (a flat map of nodes) and check it.

    where: names the file in errors. Raises TreeError with all problems.
    """
    try:
        data: object = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, nested absurdly
        raise TreeError(where, (f"not JSON: {error}",)) from error
    if not isinstance(data, dict):
        raise TreeError(where, ("not a JSON object",))
    problems: list[str] = []
    video_id = data.get("videoID")
    if not isinstance(video_id, str) or not video_id:
        problems.append("'videoID' is not a text")
    problems += [
        f"'{key}' is not a text"
        for key in ("duration_category", "domain")
        if not isinstance(data.get(key), str)
    ]
    duration = _number(data.get("duration_seconds"))
    if duration is None or duration <= 0:
        problems.append("'duration_seconds' is not a positive number")
    raw_nodes = data.get("nodes")
    if not isinstance(raw_nodes, dict) or not raw_nodes:
        problems.append("'nodes' is not an object with at least one node")
        raise TreeError(where, tuple(problems))
    warnings: list[str] = []
    found = [_node(str(key), value, problems, warnings) for key, value in raw_nodes.items()]
    nodes = {node.node_id: node for node in sorted(found, key=_time_order)}
    parents = _parents(nodes, problems)
    roots = tuple(node.node_id for node in nodes.values() if node.level == 1)
    if not roots:
        problems.append("no node of level 1")
    if problems:
        raise TreeError(where, tuple(problems))
    length = float(duration or 0.0)
    warnings += _oddities(nodes, parents, length)
    return Tree(str(video_id), length, nodes, roots, parents, tuple(warnings))


def _time_order(node: Node) -> tuple[float, int, str]:
    return (node.start_s, node.level, node.node_id)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)  # the decoder refused what a float cannot hold
    return number if math.isfinite(number) else None


def _node(node_id: str, value: object, problems: list[str], warnings: list[str]) -> Node:
    """One node; what cannot be read is noted and replaced, so that reading can go on."""
    raw: dict[str, object] = value if isinstance(value, dict) else {}
    if not isinstance(value, dict):
        problems.append(f"node {node_id}: not an object")
    level = _number(raw.get("level"))
    if level not in (1.0, 2.0, 3.0):
        problems.append(f"node {node_id}: 'level' is not 1, 2 or 3")
        level = 3.0
    start, end = _time_range(node_id, raw.get("time_range"), problems)
    subtitle = raw.get("subtitle")
    if subtitle is not None and not isinstance(subtitle, str):
        problems.append(f"node {node_id}: 'subtitle' is not a text")
    children = raw.get("children_ids")
    if not isinstance(children, list) or not all(isinstance(child, str) for child in children):
        problems.append(f"node {node_id}: 'children_ids' is not a list of node ids")
        children = []
    return Node(
        node_id=node_id,
        level=cast("Level", int(level)),
        start_s=start,
        end_s=end,
        card=_card(node_id, raw.get("card"), problems, warnings),
        subtitle=subtitle if isinstance(subtitle, str) else "",
        children=tuple(children),
    )


def _time_range(node_id: str, value: object, problems: list[str]) -> tuple[float, float]:
    numbers = [_number(item) for item in value] if isinstance(value, list) else []
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        problems.append(f"node {node_id}: 'time_range' is not [start_s, end_s]")
        return 0.0, 0.0
    if not 0 <= numbers[0] <= numbers[1]:
        problems.append(f"node {node_id}: 'time_range' {numbers} does not run forward from 0")
    return numbers[0], numbers[1]


def _card(
    node_id: str, value: object, problems: list[str], warnings: list[str]
) -> tuple[CardField, ...]:
    if not isinstance(value, dict):
        problems.append(f"node {node_id}: 'card' is not an object")
        return ()
    fields = []
    for name, content in value.items():
        items = content if isinstance(content, list) else [content]
        if any(isinstance(item, dict | list) for item in items):
            warnings.append(f"node {node_id}: card field {name!r} is read as JSON text")
        texts = tuple(_text(item) for item in items if item is not None)
        fields.append(CardField(str(name), texts))
    return tuple(fields)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parents(nodes: Mapping[str, Node], problems: list[str]) -> Mapping[str, str]:
    """The id above each node. Levels rise strictly, so that no cycle is possible."""
    parents: dict[str, str] = {}
    for node in nodes.values():
        for child in node.children:
            if child not in nodes:
                problems.append(f"node {node.node_id}: child {child} does not exist")
            elif nodes[child].level <= node.level:
                problems.append(f"node {node.node_id}: child {child} is not of a lower level")
            elif child in parents:
                problems.append(f"node {child}: child of {parents[child]} and {node.node_id}")
            else:
                parents[child] = node.node_id
    return parents


def _oddities(
    nodes: Mapping[str, Node], parents: Mapping[str, str], duration_s: float
) -> Iterator[str]:
    """The warnings that need the whole tree."""
    for node_id, node in nodes.items():
        above = nodes.get(parents.get(node_id, ""))
        if above is None and node.level > 1:
            yield f"node {node_id}: no node has it as a child"
        if above is not None and not (
            above.start_s - _SLACK_S <= node.start_s and node.end_s <= above.end_s + _SLACK_S
        ):
            yield (
                f"node {node_id}: {node.start_s}-{node.end_s} s lies outside its parent "
                f"{above.node_id}, {above.start_s}-{above.end_s} s"
            )
        if node.end_s > duration_s + _SLACK_S:
            yield f"node {node_id}: ends at {node.end_s} s, after the video ({duration_s} s)"
        if not node.summary.strip():
            yield f"node {node_id}: its card has no {SUMMARY_FIELDS[node.level]}"
