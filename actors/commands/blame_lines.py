"""Which edit a line of a document comes from. Pure.

A document's history is a chain of changes. Between two texts the lines are aligned by a longest
common subsequence, so that a line that never changed keeps its origin whatever stands around it;
every other line of the later text is attributed to the edit of that change that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

__all__ = ["Author", "Change", "aligned", "blame_lines", "lines_of"]

_LINE_END = re.compile(r"\r\n|\n")
_BULLET = re.compile(r"^\s*(?:[-*+]\s+)?")
_LEAST = 3  # characters: a shorter piece says nothing about where a line comes from


class Author(msgspec.Struct, frozen=True):
    """What an edit put into the document, and what it was aimed at. key: names the edit.

    target, content: may be empty.
    """

    key: str
    target: str
    content: str


class Change(msgspec.Struct, frozen=True):
    """The document after a change, and the edits that made it, in order; at least one."""

    after: str
    authors: tuple[Author, ...]


def lines_of(text: str) -> list[str]:
    """The lines without their ends; a final line end makes no further line."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def blame_lines(seed: str, changes: Sequence[Change]) -> list[str | None]:
    """For every line of the last text the key of its edit; None: it is the seed's.

    Raises ValueError for a change without an author that alters a line.
    """
    lines = lines_of(seed)
    origins: list[str | None] = [None] * len(lines)
    for change in changes:
        following = lines_of(change.after)
        origins = _carried(lines, origins, following, change.authors)
        lines = following
    return origins


def aligned(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines, ascending on both sides, as many as there can be.

    Quadratic in the lines between the first and the last difference; documents are short.
    """
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    room = min(len(before), len(after)) - head
    while tail < room and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle = _longest(before[head : len(before) - tail], after[head : len(after) - tail])
    return [
        *((index, index) for index in range(head)),
        *((head + i, head + j) for i, j in middle),
        *((len(before) - tail + k, len(after) - tail + k) for k in range(tail)),
    ]


def _longest(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence as pairs of positions."""
    length = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        row, below = length[i], length[i + 1]
        for j in range(len(after) - 1, -1, -1):
            same = before[i] == after[j]
            row[j] = below[j + 1] + 1 if same else max(below[j], row[j + 1])
    pairs = []
    i = j = 0
    while i < len(before) and j < len(after):
        if before[i] == after[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1][j] >= length[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _carried(
    before: Sequence[str],
    origins: Sequence[str | None],
    after: Sequence[str],
    authors: Sequence[Author],
) -> list[str | None]:
    """The origins of the later text's lines."""
    carried: list[str | None] = [None] * len(after)
    i = j = 0
    for next_i, next_j in [*aligned(before, after), (len(before), len(after))]:
        if j < next_j:
            found = _attributed(after[j:next_j], "\n".join(before[i:next_i]), authors)
            carried[j:next_j] = found
        if next_j < len(after):
            carried[next_j] = origins[next_i]
        i, j = next_i + 1, next_j + 1
    return carried


def _attributed(added: Sequence[str], removed: str, authors: Sequence[Author]) -> list[str | None]:
    """An author for each line of a block that stands where ``removed`` stood.

    A line that no edit holds (a blank one, a marker, a heading that a writer made) goes with the
    next line of the block that one does, else with the one before it.
    """
    if not authors:
        raise ValueError("a change without an edit alters the text")
    found = [_author_of(line, removed, authors) for line in added]
    fallback = next((author for author in reversed(authors) if author.content), authors[0])
    behind: str | None = None
    for index in range(len(found) - 1, -1, -1):
        found[index] = behind = found[index] or behind
    ahead = fallback.key
    for index, key in enumerate(found):
        found[index] = ahead = key or ahead
    return list(found)


def _author_of(line: str, removed: str, authors: Sequence[Author]) -> str | None:
    """The edit that holds the line best; None: none holds anything of it."""
    bare = _bare(line)
    if not bare:
        return None
    ranked = [(_hold(bare, removed, author), -index) for index, author in enumerate(authors)]
    (strength, _), index = max(ranked)[0], -max(ranked)[1]
    return authors[index].key if strength else None


def _hold(bare: str, removed: str, author: Author) -> tuple[int, int]:
    """How well an edit explains a line: whole line, part of the line, line in a part, by its
    target; then by how many characters. (0, 0): not at all."""
    parts = [part for part in map(_bare, lines_of(author.content)) if part]
    if bare in parts:
        return 4, len(bare)
    inside = [len(part) for part in parts if len(part) >= _LEAST and part in bare]
    if inside:
        return 3, max(inside)
    if len(bare) >= _LEAST and any(bare in part for part in parts):
        return 2, len(bare)
    aimed = [part for part in map(_bare, lines_of(author.target)) if len(part) >= _LEAST]
    hit = [len(part) for part in aimed if part in removed]
    return (1, max(hit)) if hit else (0, 0)


def _bare(line: str) -> str:
    """A line without indentation, bullet and what trails."""
    return _BULLET.sub("", line).rstrip()
