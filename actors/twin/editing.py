"""What the simulated editor answers with edits: a skill, the system prompt, a tool prompt.

Pure. What each proposal will be is drawn per *slot* (place in the reply) and never told. A reply
that cannot be read as a whole is drawn in slot 0 only; in later slots a malformed edit aims at a
line that is not there, or at one of a section that no edit may touch.
"""

from __future__ import annotations

import msgspec

from actors.twin.briefs import CaseLine, DocumentBrief, EditorBrief, document_of
from actors.twin.catalog import Catalog
from actors.twin.chance import fraction, number, pick, shuffled
from actors.twin.document import (
    DraftEdit,
    Shape,
    bullets,
    frozen_headings,
    place,
    remove,
    shape_of,
)
from actors.twin.ideas import Kind, Past, propose, trap_lines
from actors.twin.layout import body_of
from actors.twin.shares import Shares, mended_kind, slot_kind, spoil
from actors.twin.world import SKILL, Subject, fold

__all__ = ["DocumentOut", "EditOut", "ReplyOut", "edits_reply"]

_MAX_NOTES = 3
_REASONS = {
    "helpful": "The strategy has no rule for this, and the cases failed for want of one.",
    "useless": "It makes the procedure clearer.",
    "harmful": "It saves steps.",
    "malformed": "The rule should be said more sharply.",
}


class EditOut(msgspec.Struct, frozen=True):
    """An edit as it is sent; field names are those of the prompt."""

    op: str
    target: str
    content: str
    support: tuple[str, ...]
    reason: str


class DocumentOut(msgspec.Struct, frozen=True):
    """The reply about a prompt; field names are those of the request."""

    suggestions: tuple[str, ...]
    edits: tuple[EditOut, ...]


class ReplyOut(msgspec.Struct, frozen=True):
    """The reply about a skill; field names are those of the request."""

    suggestions: tuple[str, ...]
    edits: tuple[EditOut, ...]
    notes: tuple[str, ...]


class _Desk(msgspec.Struct, frozen=True):
    """What the editor works with, the same for every slot of a reply. defects: question ids."""

    catalog: Catalog
    subject: Subject
    text: str
    budget: int
    rejected: str
    cases: tuple[CaseLine, ...]
    defects: tuple[str, ...]
    shape: Shape
    key: tuple[object, ...]


def edits_reply(
    catalog: Catalog,
    brief: EditorBrief | DocumentBrief,
    shares: Shares,
    key: tuple[object, ...],
    *,
    mend: bool,
) -> str:
    """The reply to a document and its cases. mend: a malformed reply was complained about."""
    desk = _desk(catalog, brief, key)
    edits = _edits(desk, shares, mend=mend)
    spoilt = bool(desk.defects) and slot_kind(shares, 0, *key) == "malformed"
    if not spoilt or mend:
        return _written(desk, edits)
    wrong = tuple(msgspec.structs.replace(edit, op="rewrite") for edit in edits)
    wrong = wrong or (EditOut("rewrite", "", "", (), _REASONS["malformed"]),)
    return spoil(_written(desk, edits), _written(desk, wrong), *key)


def _desk(catalog: Catalog, brief: EditorBrief | DocumentBrief, key: tuple[object, ...]) -> _Desk:
    text = document_of(brief)
    if isinstance(brief, EditorBrief):
        subject, shape = Subject.skill(brief.task_type), shape_of(text)
    else:
        subject, shape = Subject.prompt(brief.name), shape_of(text, frozen_headings(brief.name))
    return _Desk(
        catalog=catalog,
        subject=subject,
        text=text,
        budget=brief.budget,
        rejected=brief.rejected,
        cases=brief.cases,
        defects=tuple(case.question_id for case in brief.cases if case.defect),
        shape=shape,
        key=key,
    )


def _written(desk: _Desk, edits: tuple[EditOut, ...]) -> str:
    said = _suggestions(desk)
    reply: ReplyOut | DocumentOut = DocumentOut(said, edits)
    if desk.subject.document == SKILL:
        reply = ReplyOut(said, edits, _notes(desk))
    return msgspec.json.encode(reply).decode()


def _edits(desk: _Desk, shares: Shares, *, mend: bool) -> tuple[EditOut, ...]:
    """One edit per slot; none without a defect. mend: the first reply was malformed in slot 0."""
    if not desk.defects or desk.budget < 1:
        return ()
    past = Past(said=fold(body_of(desk.text)), rejected=fold(desk.rejected))
    taken: set[str] = set()
    made: list[EditOut] = []
    for slot in range(number(1, desk.budget, "slots", *desk.key)):
        kind = slot_kind(shares, slot, *desk.key)
        if kind == "malformed" and slot == 0:
            # The first reply is spoilt as a whole, with an idle edit in its ruins.
            kind = mended_kind(shares, *desk.key) if mend else "useless"
        edit = (
            _misaimed(desk, slot) if kind == "malformed" else _edit(desk, kind, slot, past, taken)
        )
        if edit is None:
            continue
        made.append(edit)
        taken.add(edit.target)
        if edit.content:
            past = past.also(edit.content.split("\n")[-1])
    return tuple(made)


def _edit(desk: _Desk, kind: Kind, slot: int, past: Past, taken: set[str]) -> EditOut | None:
    """A proposal of this kind; a filler if the kind has nothing new; None if all is said."""
    key = (slot, *desk.key)
    if kind == "helpful":
        traps = [
            line
            for line in trap_lines(desk.catalog, desk.subject, desk.shape.bullets)
            if line not in taken and past.allows_removal(line)
        ]
        if traps and fraction("remove", *key) < 0.5:
            line = pick(traps, "removed", *key)
            return _out(
                remove(line), desk.defects[:2], "This rule led the agent away from the evidence."
            )
    proposed = propose(kind, desk.catalog, desk.subject, desk.defects, past, *key)
    if proposed is None:
        return None
    came_to, idea = proposed
    return _out(place(idea.line, desk.shape, taken, *key), idea.support, _REASONS[came_to])


def _misaimed(desk: _Desk, slot: int) -> EditOut:
    """An edit whose target is not in the document, or in a section that is frozen."""
    key = (slot, *desk.key)
    support, reason = (desk.defects[0],), _REASONS["malformed"]
    if desk.shape.frozen and fraction("frozen", *key) < 0.5:
        line = pick(desk.shape.frozen, "frozen-line", *key)
        return _out(DraftEdit("replace", line, f"{line} Be exact."), support, reason)
    lines = desk.shape.bullets
    near = f"{pick(lines, 'near', *key)[:-1]}, as was said before;" if lines else "- No such line;"
    draft = DraftEdit("replace", near, near.replace(", as was said before;", "."))
    return _out(draft, support, reason)


def _out(draft: DraftEdit, support: tuple[str, ...], reason: str) -> EditOut:
    return EditOut(draft.op, draft.target, draft.content, support, reason)


def _suggestions(desk: _Desk) -> tuple[str, ...]:
    if not desk.defects:
        return ("The rules are there; they were not followed.",)
    return (f"{len(desk.defects)} of {len(desk.cases)} cases ask for a change of the rules.",)


def _notes(desk: _Desk) -> tuple[str, ...]:
    """For lapses: an existing rule said again, never one that misleads."""
    lapses = [case for case in desk.cases if not case.defect]
    rules = bullets(desk.text)
    misleading = trap_lines(desk.catalog, desk.subject, rules)
    said, rejected = fold(body_of(desk.text)), fold(desk.rejected)
    notes: list[str] = []
    for case in lapses[:_MAX_NOTES]:
        for rule in shuffled(rules, "note", case.question_id, *desk.key):
            note = f"Do not skip this: {rule}"
            known = fold(note) in said or fold(note) in rejected or note in notes
            if rule not in misleading and not known:
                notes.append(note)
                break
    return tuple(notes)
