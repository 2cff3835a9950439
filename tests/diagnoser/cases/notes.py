"""The demo's trees and questions, as a scenario needs them.

Reads the trees by itself: what a case shows must not change when the video room words its
observations in another way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from protocol.dataset import Question
from protocol.rollout import Step
from tests.twin.conversations import DEMO

__all__ = ["Node", "Notes", "Script", "letter_saying", "notes_of", "other_letter"]

_SUMMARIES = ("scene_summary", "event_description", "frame_summary")


class RawNode(msgspec.Struct, frozen=True):
    """A node as it stands in the file."""

    level: int
    time_range: tuple[float, float]
    card: dict[str, str | list[str]]
    subtitle: str
    children_ids: tuple[str, ...]


class RawTree(msgspec.Struct, frozen=True):
    """A tree as it stands in the file."""

    nodes: dict[str, RawNode]


class Node(msgspec.Struct, frozen=True):
    """A node with its id."""

    node_id: str
    raw: RawNode

    def values(self, field: str) -> tuple[str, ...]:
        """A field of the card; empty if it has none of that name."""
        value = self.raw.card.get(field, ())
        return (value,) if isinstance(value, str) else tuple(value)

    @property
    def summary(self) -> str:
        """What it is about."""
        return "".join(value for name in _SUMMARIES for value in self.values(name))

    @property
    def line(self) -> str:
        """The node among hits or children."""
        start, end = self.raw.time_range
        return f"- {self.node_id} | L{self.raw.level} | {start:g}-{end:g} s | {self.summary}"


class Notes:
    """One video's tree."""

    def __init__(self, tree: RawTree) -> None:
        self._nodes = {name: Node(name, raw) for name, raw in tree.nodes.items()}

    def all(self, level: int, words: str) -> list[Node]:
        """Nodes of a level whose card or subtitle holds the words, in the order of the file."""
        return [
            node
            for node in self._nodes.values()
            if node.raw.level == level and words in _said(node)
        ]

    def first(self, level: int, words: str) -> Node | None:
        """The first of them."""
        return next(iter(self.all(level, words)), None)

    def parent(self, node: Node) -> Node:
        """The node above."""
        return next(n for n in self._nodes.values() if node.node_id in n.raw.children_ids)

    def children(self, node: Node) -> list[Node]:
        """The nodes below, in time order."""
        return [self._nodes[child] for child in node.raw.children_ids]

    def opened(self, node: Node) -> str:
        """What the agent reads when it opens a node."""
        start, end = node.raw.time_range
        lines = [f"Node {node.node_id} | L{node.raw.level} | {start:g}-{end:g} s"]
        lines += [f"{name}: {'; '.join(node.values(name))}" for name in node.raw.card]
        if node.raw.subtitle:
            lines.append(f"subtitle: {node.raw.subtitle}")
        children = self.children(node)
        lines.append(f"Children ({len(children)}):" if children else "Children: none")
        return "\n".join([*lines, *(child.line for child in children)])


@cache
def notes_of(video_id: str) -> Notes:
    """The notes of a demo video."""
    raw = (DEMO / "trees" / f"{video_id}.json").read_bytes()
    return Notes(msgspec.json.decode(raw, type=RawTree))


class Script:
    """A trajectory under way. Thoughts stand before the call, as the agent writes them."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._steps: list[Step] = []

    def view(self, node: Node, thought: str) -> Script:
        """Open a node."""
        shown = (node.node_id, *node.raw.children_ids)
        arguments = {"node_id": node.node_id}
        return self._add(thought, "view_node", arguments, self._notes.opened(node), shown)

    def search(self, query: str, nodes: Sequence[Node], thought: str) -> Script:
        """Search, and find these nodes."""
        text = f"No node matches {query!r}. Try other words."
        if nodes:
            head = f"{len(nodes)} nodes for {query!r}, best first:"
            text = "\n".join([head, *(node.line for node in nodes)])
        ids = tuple(node.node_id for node in nodes)
        return self._add(thought, "search_similar", {"query": query}, text, ids)

    def subtitles(self, query: str, node: Node, thought: str) -> Script:
        """Search what is said, and find this node's subtitle."""
        start, end = node.raw.time_range
        head = f"1 subtitle lines for {query!r}:"
        text = f"{head}\n- {node.node_id} | {start:g}-{end:g} s | {node.raw.subtitle}"
        return self._add(thought, "search_subtitles", {"query": query}, text, (node.node_id,))

    def submit(
        self, letter: str, confidence: float, evidence: str, thought: str
    ) -> tuple[Step, ...]:
        """The end of it."""
        sent: dict[str, object] = {
            "answer": letter,
            "confidence": confidence,
            "evidence": evidence,
            "reasoning": thought,
        }
        self._add(thought, "submit_answer", sent, f"Answer taken: {letter} (as submitted).", ())
        return tuple(self._steps)

    def _add(
        self,
        thought: str,
        tool: str,
        arguments: Mapping[str, object],
        observation: str,
        node_ids: tuple[str, ...],
    ) -> Script:
        call = {"thought": thought, "action": {"tool": tool, "args": arguments}}
        self._steps.append(
            Step(
                index=len(self._steps) + 1,
                thought=thought,
                tool=tool,
                arguments=msgspec.json.encode(arguments).decode(),
                observation=observation,
                raw=msgspec.json.encode(call).decode(),
                node_ids=node_ids,
                prompt_tokens=400,
                completion_tokens=40,
                seconds=1.0,
            )
        )
        return self


def letter_saying(question: Question, text: str) -> str | None:
    """The letter of a wrong option with this text; None if there is none."""
    wanted = _fold(text)
    for place, option in enumerate(question.options):
        letter = chr(ord("A") + place)
        if _fold(option) == wanted and letter != question.answer:
            return letter
    return None


def other_letter(question: Question) -> str:
    """The first wrong option."""
    return "A" if question.answer != "A" else "B"


def _said(node: Node) -> str:
    return "\n".join([*(v for name in node.raw.card for v in node.values(name)), node.raw.subtitle])


def _fold(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
