"""The appendix compacted: many notes become few that say the same.

A compaction is kept only if it passes every check; whatever else the editor sends, the notes
stay as they were. The compacted text is no decision: it is part of the candidate, and the
gate tests it as one text with the edits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.likeness import folded
from actors.evolver.regions import note_of, notes_of, objection_to, replace_notes
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.templates import Template
from prompts.trajectory import neutral
from protocol.base import Scope

__all__ = ["CompactReply", "Compacted", "consolidate", "consolidate_prompt"]


class CompactReply(msgspec.Struct, frozen=True):
    """The reply that ``prompts/consolidate_appendix.md`` asks for."""

    notes: tuple[str, ...]


class Compacted(msgspec.Struct, frozen=True):
    """text: with the compacted notes, or as it was. asked: None if it could not be asked for."""

    text: str
    asked: Understood[CompactReply] | NotUnderstood | Unreachable | None
    failure: str = ""


async def consolidate(
    chat: ChatCall,
    template: Template,
    text: str,
    most: int,
    screen: Callable[[str], str | None],
    scope: Scope,
) -> Compacted:
    """Have the notes of a document's appendix compacted to at most ``most``.

    screen: says why a note must not be written (a leak), or None.
    """
    notes = notes_of(text)
    if replace_notes(text, notes) is None:
        return Compacted(text, None, "the appendix holds more than notes of one line")
    asked = await ask_for(
        chat,
        "evolve",
        consolidate_prompt(template, text, most),
        CompactReply,
        scope,
        illustration=template.illustration,
        check=lambda reply: _objection(reply.notes, notes, most, screen),
    )
    match asked:
        case Understood(value=reply):
            written = replace_notes(text, [note_of(note) for note in reply.notes])
            if written is None:
                return Compacted(text, asked, "the compacted notes could not be written")
            return Compacted(written, asked)
        case NotUnderstood(problem=problem):
            return Compacted(text, asked, f"unreadable: {problem}")
        case Unreachable(failure=failure):
            return Compacted(text, asked, f"{failure.kind}: {failure.detail}")


def consolidate_prompt(template: Template, text: str, most: int) -> str:
    """The filled template: the whole document, and its notes, numbered."""
    shown = (" ".join(neutral(note).split()) for note in notes_of(text))
    notes = (f"{number}. {note}" for number, note in enumerate(shown, 1))
    return template.fill(skill=text, most_notes=str(most), notes="\n".join(notes))


def _objection(
    replied: Sequence[str],
    before: Sequence[str],
    most: int,
    screen: Callable[[str], str | None],
) -> str | None:
    """What is wrong with compacted notes, in a sentence to the model."""
    notes = [note_of(note) for note in replied]
    if not notes:
        return "`notes` is empty"
    if len(notes) > most:
        return f"there are {len(notes)} notes; at most {most} are allowed"
    if len({folded(note) for note in notes}) < len(notes):
        return "two notes are the same"
    for number, note in enumerate(notes, 1):
        why = objection_to(note, screen)
        if why is not None:
            return f"note {number} cannot be kept: {why}"
    size, allowed = sum(map(len, notes)), sum(map(len, before))
    if size > allowed:
        return f"the notes have {size} characters together, more than the {allowed} of the old ones"
    return None
