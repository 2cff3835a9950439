"""Places in a document where an edit can be anchored, and the edits that use them.

Pure. A target is a whole line of the body, outside the regions at the tail, that occurs in
the body exactly once: an edit made here applies wherever the text has not changed since.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.twin.chance import pick
from actors.twin.layout import body_of
from actors.twin.world import fold

__all__ = [
    "DraftEdit",
    "Shape",
    "bullets",
    "frozen_headings",
    "momentum_lines",
    "place",
    "remove",
    "shape_of",
    "without_momentum",
]

Op = Literal["append", "insert_after", "replace", "delete"]
_REGIONS = re.compile(r"^<!-- (?:APPENDIX|MOMENTUM)_START -->", re.MULTILINE)
_MOMENTUM = re.compile(
    r"^<!-- MOMENTUM_START -->[ \t]*\n(.*?)^<!-- MOMENTUM_END -->[ \t]*\n?",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"(#{1,6}) (.*)")
_FROZEN_SYSTEM = frozenset({"capability", "output format", "video tree"})
_FROZEN_TOOL = frozenset({"input", "output"})
_OPS: tuple[Op, ...] = ("append", "append", "insert_after", "insert_after", "replace")


class DraftEdit(msgspec.Struct, frozen=True):
    """An edit without its support. The target is empty for append."""

    op: Op
    target: str
    content: str


class Shape(msgspec.Struct, frozen=True):
    """The lines of a body that can be a target. frozen: lines that look so and cannot."""

    bullets: tuple[str, ...]
    headings: tuple[str, ...]
    frozen: tuple[str, ...] = ()


def frozen_headings(name: str) -> frozenset[str]:
    """The sections of a prompt that no edit may touch, folded. name: ``system`` or a tool's."""
    return _FROZEN_SYSTEM if name == "system" else _FROZEN_TOOL


def shape_of(text: str, frozen: frozenset[str] = frozenset()) -> Shape:
    """The usable targets of a document (whole file). frozen: titles of sections, folded."""
    body = body_of(text)
    region = _REGIONS.search(body)
    rules = body if region is None else body[: region.start()]
    open_lines: list[str] = []
    frozen_lines: list[str] = []
    level = 0  # of the frozen section's heading; 0: not inside one
    for line in rules.split("\n"):
        heading = _HEADING.match(line)
        if heading and (level == 0 or len(heading[1]) <= level):
            level = len(heading[1]) if fold(heading[2]) in frozen else 0
        if line.strip() and body.count(line) == 1:
            (frozen_lines if level else open_lines).append(line)
    return Shape(
        bullets=tuple(line for line in open_lines if line.startswith("- ")),
        headings=tuple(line for line in open_lines if line.startswith("## ")),
        frozen=tuple(frozen_lines),
    )


def bullets(skill_text: str) -> list[str]:
    """The rules of a skill, without their dashes."""
    return [line[2:].strip() for line in shape_of(skill_text).bullets]


def without_momentum(text: str) -> str:
    """A skill without its momentum region, markers included."""
    return _MOMENTUM.sub("", text)


def momentum_lines(text: str) -> list[str]:
    """What stands in a skill's momentum region, a rule a line, without dashes."""
    found = _MOMENTUM.search(text)
    lines = found[1].split("\n") if found else []
    return [line[2:].strip() for line in lines if line.startswith("- ") and line[2:].strip()]


def place(line: str, shape: Shape, taken: set[str], *key: object) -> DraftEdit:
    """A new bullet somewhere in the document. ``taken``: targets not to be used again."""
    free = [bullet for bullet in shape.bullets if bullet not in taken]
    heads = [heading for heading in shape.headings if heading not in taken]
    op = pick(_OPS, "op", *key)
    if op == "insert_after" and heads and (not free or pick((True, False, False), "at", *key)):
        return DraftEdit("insert_after", pick(heads, "target", *key), f"\n\n{line}")
    if op == "append" or not free:
        return DraftEdit("append", "", line)
    target = pick(free, "target", *key)
    if op == "insert_after":
        return DraftEdit("insert_after", target, f"\n{line}")
    return DraftEdit("replace", target, f"{target}\n{line}")


def remove(line: str) -> DraftEdit:
    """Take a line out."""
    return DraftEdit("delete", line, "")
