"""Places in a skill where an edit can be anchored, and the edits that use them.

Pure. A target is a whole line of the body, outside the regions at the tail, that occurs in
the body exactly once: an edit made here applies wherever the text has not changed since.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.twin.chance import pick
from actors.twin.layout import body_of

__all__ = ["DraftEdit", "Shape", "bullets", "place", "remove", "shape_of"]

Op = Literal["append", "insert_after", "replace", "delete"]
_REGIONS = re.compile(r"^<!-- (?:APPENDIX|MOMENTUM)_START -->", re.MULTILINE)
_OPS: tuple[Op, ...] = ("append", "append", "insert_after", "insert_after", "replace")


class DraftEdit(msgspec.Struct, frozen=True):
    """An edit without its support. The target is empty for append."""

    op: Op
    target: str
    content: str


class Shape(msgspec.Struct, frozen=True):
    """The lines of a body that can be a target."""

    bullets: tuple[str, ...]
    headings: tuple[str, ...]


def shape_of(skill_text: str) -> Shape:
    """The usable targets of a skill (whole file)."""
    body = body_of(skill_text)
    region = _REGIONS.search(body)
    rules = body if region is None else body[: region.start()]
    lines = [line for line in rules.split("\n") if line.strip() and body.count(line) == 1]
    return Shape(
        bullets=tuple(line for line in lines if line.startswith("- ")),
        headings=tuple(line for line in lines if line.startswith("## ")),
    )


def bullets(skill_text: str) -> list[str]:
    """The rules of a skill, without their dashes."""
    return [line[2:].strip() for line in shape_of(skill_text).bullets]


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
