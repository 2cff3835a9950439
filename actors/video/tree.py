"""The video tree: reading the owner's ``tree.json`` into types.

Pure: bytes in, a checked ``Tree`` out. A tree is taken whole or not at all; a damaged
one is refused with *every* problem, never repaired in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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


class TreeError(ValueError):
    """A tree that cannot be used. ``problems``: all of them, one sentence each."""

    def __init__(self, where: str, problems: tuple[str, ...]) -> None:
        shown = "; ".join(problems[:_SHOWN_PROBLEMS])
        more = len(problems) - _SHOWN_PROBLEMS
        super().__init__(f"{where}: {shown}" + (f"; and {more} more" if more > 0 else ""))
        self.problems = problems


class CardField(msgspec.Struct, frozen=True):
    """One field of a card; a plain string is a list of one."""

    name: str
    values: tuple[str, ...]


class Node(msgspec.Struct, frozen=True):
    """A scene (level 1), an event (2) or a key frame (3). Times in seconds of the video."""

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
    """A whole tree. nodes: in time order, by id; parents: the id above each non-root node."""

    video_id: str
    duration_s: float
    nodes: Mapping[str, Node]
    roots: tuple[str, ...]
    parents: Mapping[str, str]


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
    found = [_node(str(key), value, problems) for key, value in raw_nodes.items()]
    nodes = {node.node_id: node for node in sorted(found, key=_time_order)}
    parents = _parents(nodes, problems)
    roots = tuple(node.node_id for node in nodes.values() if node.level == 1)
    if not roots:
        problems.append("no node of level 1")
    if problems:
        raise TreeError(where, tuple(problems))
    return Tree(str(video_id), float(duration or 0.0), nodes, roots, parents)


def _time_order(node: Node) -> tuple[float, int, str]:
    return (node.start_s, node.level, node.node_id)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)  # the decoder refused what a float cannot hold
    return number if math.isfinite(number) else None


def _node(node_id: str, value: object, problems: list[str]) -> Node:
    """One node; what cannot be read is noted and replaced, so that reading can go on."""
    raw: dict[str, object] = value if isinstance(value, dict) else {}
    if not isinstance(value, dict):
        problems.append(f"node {node_id}: not an object")
    level = raw.get("level")
    if isinstance(level, bool) or level not in (1, 2, 3):
        problems.append(f"node {node_id}: 'level' is not 1, 2 or 3")
        level = 3
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
        level=cast("Level", level),
        start_s=start,
        end_s=end,
        card=_card(node_id, raw.get("card"), problems),
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


def _card(node_id: str, value: object, problems: list[str]) -> tuple[CardField, ...]:
    if not isinstance(value, dict):
        problems.append(f"node {node_id}: 'card' is not an object")
        return ()
    fields = []
    for name, content in value.items():
        values = content if isinstance(content, list) else [content]
        if not all(isinstance(item, str) for item in values):
            problems.append(f"node {node_id}: card field {name!r} is no text and no list of texts")
            continue
        fields.append(CardField(str(name), tuple(values)))
    return tuple(fields)


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
