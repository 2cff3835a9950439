"""The appendix: short notes that bring an existing rule back to mind.

The only writer of that region. Notes are bullets, deduplicated, bounded in number and
length. New ones go behind what is there, which is not touched; only a compaction puts others
in the place of all. Body, front matter and momentum region stay byte for byte, and every
finished text is parsed and compared before it is handed out (row P1-6, third layer).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.document import (
    APPENDIX,
    MARKERS,
    MOMENTUM,
    Region,
    SkillDocument,
    holds_marker,
    parse,
)
from actors.evolver.likeness import alike, gist
from actors.evolver.patch import Refusal
from actors.evolver.screen import holds_unseen

__all__ = [
    "MAX_NOTE_CHARS",
    "Noted",
    "RefusedNote",
    "note_of",
    "notes_of",
    "objection_to",
    "put_behind",
    "refusal_of",
    "replace_notes",
    "with_notes",
    "write_notes",
]

MAX_NOTE_CHARS = 300
HEADING = "## Reminders"
_BULLET = re.compile(r"^\s*[-*+]\s+(.*\S)\s*$", re.MULTILINE)
_ONE_LINER = re.compile(r"[ \t]*[-*+][ \t]+\S.*")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}(?:[ \t].*)?")
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


def note_of(raw: str) -> str:
    """A note as it is written: one line, without a bullet."""
    return _LEAD.sub("", " ".join(raw.split()))


def objection_to(note: str, screen: Callable[[str], str | None]) -> str | None:
    """Why a note may not stand in any appendix; None: it may."""
    refusal = refusal_of(note, screen)
    return None if refusal is None else refusal.detail


def refusal_of(note: str, screen: Callable[[str], str | None]) -> Refusal | None:
    """The same with a status. screen: says what the note gives away, or None."""
    if not note:
        return Refusal("empty", "it is empty")
    if holds_marker(note):
        return Refusal("marker", "it holds a region marker")
    if holds_unseen(note):
        return Refusal("marker", "it holds control or invisible characters")
    if len(note) > MAX_NOTE_CHARS:
        return Refusal("too_long", f"it is longer than {MAX_NOTE_CHARS} characters")
    why = screen(note)
    return None if why is None else Refusal("leak", why)


def write_notes(
    text: str,
    notes: Sequence[str],
    max_notes: int,
    screen: Callable[[str], str | None],
    similarity: float = 1.0,
) -> Noted:
    """Add the notes that are new; the region is made where it is lacking.

    screen: says why a note must not be written (a leak), or None.
    similarity: from this share of common words on, a note is there already.
    """
    document = parse(text)
    if document.problems:
        damage = "; ".join(document.problems)
        return Noted(text, (), tuple(RefusedNote(note, damage) for note in notes))
    there = notes_of(text)
    known = [gist(note) for note in there]
    added: list[str] = []
    refused: list[RefusedNote] = []
    for raw in notes:
        note = note_of(raw)
        why = objection_to(note, screen)
        mine = gist(note)
        if why is None and any(alike(mine, other, similarity) for other in known):
            why = "it is there already"
        if why is None and len(known) >= max_notes:
            why = f"the appendix is full: {max_notes} notes"
        if why is None:
            known.append(mine)
            added.append(note)
        else:
            refused.append(RefusedNote(raw, why))
    if not added:
        return Noted(text, (), tuple(refused))
    written = _written(document, added)
    wrong = _damage(document, written, (*there, *added))
    if wrong is not None:
        return Noted(text, (), tuple(RefusedNote(note, wrong) for note in notes))
    return Noted(written, tuple(added), tuple(refused))


def with_notes(text: str, notes: Sequence[str], newline: str | None = None) -> str:
    """The text with these notes behind those that are there; they were screened before.

    newline: the line end of what is added; None: as the text has it. Raises ValueError if they
    cannot stand there.
    """
    if not notes:
        return text
    document = parse(text, newline=newline)
    written = _written(document, notes)
    wrong = "; ".join(document.problems) or _damage(document, written, (*notes_of(text), *notes))
    if wrong:
        raise ValueError(wrong)
    return written


def put_behind(document: SkillDocument, region: Region, lines: Sequence[str]) -> str:
    """The text with these lines as bullets behind what stands in the region."""
    text, newline = document.text, document.newline
    bullets = newline.join(f"- {line}" for line in lines)
    inner = text[region.inner.start : region.inner.end]
    kept = inner.rstrip()
    position = region.inner.start + len(kept)
    after = "" if inner[len(kept) :].startswith(("\n", "\r\n")) else newline
    return text[:position] + newline + bullets + after + text[position:]


def replace_notes(text: str, notes: Sequence[str]) -> str | None:
    """The text with these notes in the place of all that stand in its appendix.

    None if the appendix holds anything that is neither heading nor a note of one line (it would
    be torn from its note), or if more than the appendix would change: nothing may be lost.
    """
    document = parse(text)
    region = document.region(APPENDIX)
    if document.problems or region is None or not notes:
        return None
    kept: list[str] = []
    for line in text[region.inner.start : region.inner.end].replace("\r\n", "\n").split("\n"):
        if _HEADING_LINE.fullmatch(line):
            kept.append(line)
        elif line.strip() and not _ONE_LINER.fullmatch(line):
            return None
    newline = document.newline
    heading = "".join(f"{line}{newline}{newline}" for line in kept)
    bullets = newline.join(f"- {note}" for note in notes)
    inner = f"{newline}{heading}{bullets}{newline}"
    written = text[: region.inner.start] + inner + text[region.inner.end :]
    return None if _damage(document, written, notes) else written


def _damage(before: SkillDocument, written: str, notes: Sequence[str]) -> str | None:
    """What is wrong with a text whose appendix was written; None: nothing."""
    after = parse(written)
    if after.problems:
        return "; ".join(after.problems)
    region, old = after.region(APPENDIX), before.region(APPENDIX)
    if region is None or notes_of(written) != tuple(notes):
        return "the notes could not be read back"
    head, tail = written[: region.span.start], written[region.span.end :]
    momentum = before.region(MOMENTUM)
    place = old.span if old else momentum.span if momentum else None
    start = place.start if place else len(before.text)
    end = old.span.end if old else start
    if old is None:
        # Where the region is new, blank lines may set it off; the rest stands as it was.
        sound = head.startswith(before.text[:start]) and tail.endswith(before.text[end:])
        added = head[start:] + tail[: len(tail) - len(before.text[end:])]
        sound = sound and not added.strip()
    else:
        sound = head == before.text[:start] and tail == before.text[end:]
    return None if sound else "more than the appendix would change"


def _written(document: SkillDocument, added: Sequence[str]) -> str:
    text, newline = document.text, document.newline
    region = document.region(APPENDIX)
    if region is not None:
        return put_behind(document, region, added)
    bullets = newline.join(f"- {note}" for note in added)
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
