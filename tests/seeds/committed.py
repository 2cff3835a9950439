"""The committed demo benchmark, read without the help of its builder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from actors.twin.world import World, load_world
from protocol.keys import slug

__all__ = [
    "DEMO",
    "Node",
    "Question",
    "Tree",
    "documents",
    "node_text",
    "prompts",
    "questions",
    "skills",
    "trees",
    "world",
]

DEMO = Path(__file__).parents[2] / "seeds" / "demo"


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of ``questions.jsonl``: these fields, all of them, and no others."""

    question_id: str
    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]
    answer: str
    domain: str
    sub_category: str
    duration: str


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node as the owner's format has it."""

    level: int
    time_range: tuple[float, float]
    card: dict[str, str | list[str]]
    subtitle: str
    children_ids: tuple[str, ...]


class Tree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tree file as the owner's format has it."""

    video_id: str = msgspec.field(name="videoID")
    duration_category: str
    duration_seconds: float
    domain: str
    nodes: dict[str, Node]


@cache
def questions() -> tuple[Question, ...]:
    """Every line of ``questions.jsonl``."""
    lines = (DEMO / "questions.jsonl").read_bytes().splitlines()
    return tuple(msgspec.json.decode(line, type=Question) for line in lines)


@cache
def trees() -> dict[str, Tree]:
    """The trees by the stem of their file."""
    return {
        path.stem: msgspec.json.decode(path.read_bytes(), type=Tree)
        for path in sorted((DEMO / "trees").glob("*.json"))
    }


@cache
def world() -> World:
    """The planted truth."""
    return load_world((DEMO / "world.json").read_bytes())


@cache
def documents() -> dict[str, str]:
    """Every Markdown file of skills and prompts v1, by path inside the seed."""
    return {
        path.relative_to(DEMO).as_posix(): path.read_text(encoding="utf-8")
        for kind in ("skills", "prompts")
        for path in sorted((DEMO / kind / "v1").rglob("*.md"))
    }


@cache
def skills() -> dict[str, str]:
    """The skill text of each class."""
    classes = sorted({question.task_type for question in questions()})
    return {name: documents()[f"skills/v1/{slug(name)}.md"] for name in classes}


def prompts() -> str:
    """System prompt and tool prompts of v1."""
    return "\n\n".join(text for path, text in documents().items() if path.startswith("prompts/"))


def node_text(node: Node) -> str:
    """Everything that a reader of the node sees, one field or list item a line."""
    lines = [node.subtitle]
    for value in node.card.values():
        lines += [value] if isinstance(value, str) else value
    return "\n".join(lines)
