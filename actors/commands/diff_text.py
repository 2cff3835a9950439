"""Two texts, line by line or word by word. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

__all__ = ["Line", "Piece", "compare_texts", "compared", "plain"]

Mark = Literal["file", "hunk", "same", "removed", "added", "changed", "remark"]

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_ALIKE = 0.5  # share of common words from which on two lines are one that was changed
_NO_END = "\\ No newline at end of file"
_PREFIX: dict[Mark, str] = {
    "file": "",
    "hunk": "",
    "same": " ",
    "removed": "-",
    "added": "+",
    "changed": "~",
    "remark": "",
}


class Piece(msgspec.Struct, frozen=True):
    """A run of words of a changed line: in both, only before, or only after."""

    text: str
    mark: Literal["same", "removed", "added"]


class Line(msgspec.Struct, frozen=True):
    """A line of a comparison, without its end. pieces: of a changed one."""

    mark: Mark
    text: str
    pieces: tuple[Piece, ...] = ()

    @property
    def prefix(self) -> str:
        """The character that stands before it."""
        return _PREFIX[self.mark]


def compared(
    before: Mapping[str, str],
    after: Mapping[str, str],
    folders: tuple[str, str],
    *,
    words: bool,
    context: int,
) -> list[Line]:
    """All documents of two versions; empty if nothing differs.

    before, after: file name -> text; a file that only one side has is compared with nothing.
    folders: what stands before the names of each side.
    """
    lines: list[Line] = []
    for name in sorted(before.keys() | after.keys()):
        labels = (f"{folders[0]}/{name}", f"{folders[1]}/{name}")
        lines += compare_texts(
            labels, before.get(name), after.get(name), words=words, context=context
        )
    return lines


def compare_texts(
    labels: tuple[str, str],
    before: str | None,
    after: str | None,
    *,
    words: bool,
    context: int,
) -> list[Line]:
    """One document; None: it is not there. Empty if both are the same to the byte.

    labels: of each side. context: unchanged lines around a change.
    """
    if before == after:
        return []
    old, new = _lines(before), _lines(after)
    lines = [
        Line("file", f"--- {labels[0] if before is not None else '/dev/null'}"),
        Line("file", f"+++ {labels[1] if after is not None else '/dev/null'}"),
    ]
    for group in difflib.SequenceMatcher(None, old, new, False).get_grouped_opcodes(context):
        lines.append(Line("hunk", _hunk(group)))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [part for line in old[i1:i2] for part in _line("same", line)]
            elif words and tag == "replace":
                lines += _by_words(old[i1:i2], new[j1:j2])
            else:
                lines += [part for line in old[i1:i2] for part in _line("removed", line)]
                lines += [part for line in new[j1:j2] for part in _line("added", line)]
    return lines


def plain(lines: Sequence[Line]) -> str:
    """As text; words that went stand in ``[-...-]``, new ones in ``{+...+}``."""
    return "".join(f"{line.prefix}{_spelt(line)}\n" for line in lines)


def _spelt(line: Line) -> str:
    if line.mark != "changed":
        return line.text
    marks = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
    return "".join(piece.text.join(marks[piece.mark]) for piece in line.pieces)


def _lines(text: str | None) -> list[str]:
    """Lines with their ends, cut at ``\\n`` alone."""
    return re.findall(r"[^\n]*\n|[^\n]+", text or "")


def _line(mark: Mark, line: str) -> Iterator[Line]:
    yield Line(mark, line.removesuffix("\n"))
    if not line.endswith("\n"):
        yield Line("remark", _NO_END)


def _hunk(group: Sequence[tuple[str, int, int, int, int]]) -> str:
    first, last = group[0], group[-1]
    return f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"


def _range(start: int, stop: int) -> str:
    """As diff writes it: an empty range names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _by_words(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    """A replaced block; lines that are much alike, in order, become one with its words marked."""
    j = 0
    for line in old:
        match = next((k for k in range(j, len(new)) if _alike(line, new[k])), None)
        if match is None:
            yield from _line("removed", line)
            continue
        for added in new[j:match]:
            yield from _line("added", added)
        yield from _changed(line, new[match])
        j = match + 1
    for added in new[j:]:
        yield from _line("added", added)


def _alike(before: str, after: str) -> bool:
    matcher = difflib.SequenceMatcher(None, _TOKEN.findall(before), _TOKEN.findall(after), False)
    return matcher.ratio() >= _ALIKE


def _changed(before: str, after: str) -> Iterator[Line]:
    """One line for both. A difference in line ends alone cannot be shown in words."""
    bare = [line.removesuffix("\n") for line in (before, after)]
    if bare[0] == bare[1]:
        yield from _line("removed", before)
        yield from _line("added", after)
        return
    old, new = (_TOKEN.findall(line) for line in bare)
    pieces: list[Piece] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("".join(old[i1:i2]), "same"))
            continue
        if i2 > i1:
            pieces.append(Piece("".join(old[i1:i2]), "removed"))
        if j2 > j1:
            pieces.append(Piece("".join(new[j1:j2]), "added"))
    yield Line("changed", bare[1], tuple(pieces))
    ended = after.endswith("\n")
    if before.endswith("\n") != ended:
        yield Line("remark", f"{_NO_END}, {'before' if ended else 'after'}")
