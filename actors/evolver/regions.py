"""The appendix: short notes that bring an existing rule back to mind.

The only writer of that region. Notes are bullets, deduplicated, bounded in number and
length; what is there is never touched, new ones go behind it. Body, front matter and
momentum region stay byte for byte.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.document import (
    APPENDIX,
    MARKERS,
    MOMENTUM,
    SkillDocument,
    holds_marker,
    parse,
)

__all__ = ["MAX_NOTE_CHARS", "Noted", "RefusedNote", "notes_of", "write_notes"]

MAX_NOTE_CHARS = 300
HEADING = "## Reminders"
_BULLET = re.compile(r"^\s*[-*+]\s+(.*\S)\s*$", re.MULTILINE)
_LEAD = re.compile(r"^(?:[-*+]\s+)+")


class RefusedNote(msgspec.Struct, frozen=True):
    """A note that was not written, and why."""

    note: str
    why: str


class Noted(msgspec.Struct, frozen=True):
    """The text with its notes, those that were added, and those that were not."""

    text: str
    added: tuple[str, ...]
    refused: tuple[RefusedNote, ...]


def notes_of(text: str) -> tuple[str, ...]:
    """The notes of a document's appendix, in order."""
    document = parse(text)
    region = document.region(APPENDIX)
    if region is None:
        return ()
    return tuple(_BULLET.findall(text[region.inner.start : region.inner.end]))


def write_notes(
    text: str, notes: Sequence[str], max_notes: int, screen: Callable[[str], str | None]
) -> Noted:
    """Add the notes that are new; the region is made where it is lacking.

    screen: says why a note must not be written (a leak), or None.
    """
    document = parse(text)
    if document.problems:
        damage = "; ".join(document.problems)
        return Noted(text, (), tuple(RefusedNote(note, damage) for note in notes))
    there = notes_of(text)
    known = {_folded(note) for note in there}
    added: list[str] = []
    refused: list[RefusedNote] = []
    for raw in notes:
        note = _LEAD.sub("", " ".join(raw.split()))
        why = _objection(note, known, screen)
        if why is None and len(there) + len(added) >= max_notes:
            why = f"the appendix is full: {max_notes} notes"
        if why is None:
            known.add(_folded(note))
            added.append(note)
        else:
            refused.append(RefusedNote(raw, why))
    if not added:
        return Noted(text, (), tuple(refused))
    return Noted(_written(document, added), tuple(added), tuple(refused))


def _objection(note: str, known: set[str], screen: Callable[[str], str | None]) -> str | None:
    if not note:
        return "it is empty"
    if holds_marker(note):
        return "it holds a region marker"
    if len(note) > MAX_NOTE_CHARS:
        return f"it is longer than {MAX_NOTE_CHARS} characters"
    if _folded(note) in known:
        return "it is there already"
    return screen(note)


def _folded(note: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", note).casefold().split()).rstrip(" .!;")


def _written(document: SkillDocument, added: Sequence[str]) -> str:
    text, newline = document.text, document.newline
    bullets = newline.join(f"- {note}" for note in added)
    region = document.region(APPENDIX)
    if region is not None:
        inner = text[region.inner.start : region.inner.end]
        kept = inner.rstrip()
        position = region.inner.start + len(kept)
        after = "" if inner[len(kept) :].startswith(("\n", "\r\n")) else newline
        return text[:position] + newline + bullets + after + text[position:]
    opening, closing = MARKERS[APPENDIX]
    block = newline.join((opening, HEADING, "", bullets, closing)) + newline
    momentum = document.region(MOMENTUM)
    position = momentum.span.start if momentum else len(text)
    before = text[:position]
    if not before or before.endswith(newline * 2):
        gap = ""
    else:
        gap = newline if before.endswith("\n") else newline * 2
    return before + gap + block + (newline if momentum else "") + text[position:]
