"""The simulated editor: proposes good, idle and bad edits in the stated shares.

Pure. What each proposal will be is drawn per *slot* (place in the reply) and never told: a
gate has to find out. A reply that cannot be read as a whole is drawn in slot 0 only; in later
slots a malformed edit aims at a line that is not there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.twin.catalog import Catalog
from actors.twin.chance import fraction, number, pick, shuffled
from actors.twin.document import DraftEdit, Shape, bullets, place, remove, shape_of
from actors.twin.ideas import Idea, Kind, Past, harmful, helpful, trap_lines, useless
from actors.twin.layout import CaseLine, EditorBrief, LayoutError, body_of, editor_brief
from actors.twin.wire import Turn
from actors.twin.world import fold

__all__ = ["EditOut", "ReplyOut", "Shares", "editor_reply", "slot_kind"]

_UNREAD = "Your reply could not be read:"
_MAX_NOTES = 3
_REASONS = {
    "helpful": "The strategy has no rule for this, and the cases failed for want of one.",
    "useless": "It makes the procedure clearer.",
    "harmful": "It saves steps.",
    "malformed": "The rule should be said more sharply.",
}


class Shares(msgspec.Struct, frozen=True):
    """The shares of the editor's proposals, in [0, 1] and 1 together."""

    helpful: float
    useless: float
    harmful: float
    malformed: float


class EditOut(msgspec.Struct, frozen=True):
    """An edit as it is sent; field names are those of the prompt."""

    op: str
    target: str
    content: str
    support: tuple[str, ...]
    reason: str


class ReplyOut(msgspec.Struct, frozen=True):
    """The editor's reply; field names are those of the prompt."""

    suggestions: tuple[str, ...]
    edits: tuple[EditOut, ...]
    notes: tuple[str, ...]


class _Desk(msgspec.Struct, frozen=True):
    """What the editor works with, the same for every slot of a reply."""

    catalog: Catalog
    brief: EditorBrief
    defects: tuple[CaseLine, ...]
    shape: Shape
    key: tuple[object, ...]


def editor_reply(
    catalog: Catalog, world_seed: int, shares: Shares, turns: tuple[Turn, ...], seed: int | None
) -> str:
    """The editor's reply.

    Raises LayoutError or NotPlanted for a request that is not an editor's.
    """
    asked = next((turn.text for turn in turns if turn.role == "user"), None)
    if asked is None:
        raise LayoutError("an editor's request has a user message")
    brief = editor_brief(asked)
    again = turns[-1].role == "user" and turns[-1].text.startswith(_UNREAD)
    key = ("editor", world_seed, asked, seed)
    desk = _Desk(
        catalog=catalog,
        brief=brief,
        defects=tuple(case for case in brief.cases if case.defect),
        shape=shape_of(brief.skill),
        key=key,
    )
    spoilt = bool(desk.defects) and slot_kind(shares, 0, *key) == "malformed"
    reply = ReplyOut(
        suggestions=_suggestions(desk),
        edits=_edits(desk, shares, mend=again),
        notes=_notes(desk),
    )
    text = msgspec.json.encode(reply).decode()
    return _spoil(text, reply, key) if spoilt and not again else text


def slot_kind(shares: Shares, slot: int, *key: object) -> Kind | Literal["malformed"]:
    """What a slot's proposal is going to be."""
    drawn = fraction("kind", slot, *key)
    if drawn < shares.helpful:
        return "helpful"
    if drawn < shares.helpful + shares.useless:
        return "useless"
    if drawn < shares.helpful + shares.useless + shares.harmful:
        return "harmful"
    return "malformed"


def _edits(desk: _Desk, shares: Shares, *, mend: bool) -> tuple[EditOut, ...]:
    """One edit per slot; none without a defect. mend: the first reply was malformed in slot 0."""
    if not desk.defects or desk.brief.budget < 1:
        return ()
    past = Past(skill=fold(body_of(desk.brief.skill)), rejected=fold(desk.brief.rejected))
    taken: set[str] = set()
    made: list[EditOut] = []
    for slot in range(number(1, desk.brief.budget, "slots", *desk.key)):
        kind = slot_kind(shares, slot, *desk.key)
        if kind == "malformed" and slot == 0:
            # The first reply is spoilt as a whole, with an idle edit in its ruins.
            kind = _mended(shares, desk.key) if mend else "useless"
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


def _mended(shares: Shares, key: tuple[object, ...]) -> Kind:
    """Slot 0 drawn again among the sound kinds."""
    sound = shares.helpful + shares.useless + shares.harmful
    if sound <= 0:
        return "useless"
    drawn = fraction("mended", *key) * sound
    if drawn < shares.helpful:
        return "helpful"
    return "useless" if drawn < shares.helpful + shares.useless else "harmful"


def _edit(desk: _Desk, kind: Kind, slot: int, past: Past, taken: set[str]) -> EditOut | None:
    """A proposal of this kind; a filler if the kind has nothing new; None if all is said."""
    key = (slot, *desk.key)
    task_type = desk.brief.task_type
    reason = _REASONS[kind]
    if kind == "helpful":
        traps = [
            line
            for line in trap_lines(desk.catalog, task_type, desk.shape.bullets)
            if line not in taken and past.allows_removal(line)
        ]
        if traps and fraction("remove", *key) < 0.5:
            line = pick(traps, "removed", *key)
            support = tuple(case.question_id for case in desk.defects[:2])
            return _out(remove(line), support, "This rule led the agent away from the evidence.")
    think = {"helpful": helpful, "useless": useless, "harmful": harmful}[kind]
    idea: Idea | None = think(desk.catalog, task_type, desk.defects, past, *key)
    if idea is None:
        reason = _REASONS["useless"]
        idea = useless(desk.catalog, task_type, desk.defects, past, *key)
    if idea is None:
        return None
    return _out(place(idea.line, desk.shape, taken, *key), idea.support, reason)


def _misaimed(desk: _Desk, slot: int) -> EditOut:
    """An edit whose target is not in the document."""
    key = (slot, *desk.key)
    lines = desk.shape.bullets
    near = f"{pick(lines, 'near', *key)[:-1]}, as was said before;" if lines else "- No such line;"
    draft = DraftEdit("replace", near, near.replace(", as was said before;", "."))
    return _out(draft, (desk.defects[0].question_id,), _REASONS["malformed"])


def _out(draft: DraftEdit, support: tuple[str, ...], reason: str) -> EditOut:
    return EditOut(draft.op, draft.target, draft.content, support, reason)


def _suggestions(desk: _Desk) -> tuple[str, ...]:
    if not desk.defects:
        return ("The rules are there; they were not followed.",)
    return (f"{len(desk.defects)} of {len(desk.brief.cases)} cases ask for a change of the rules.",)


def _notes(desk: _Desk) -> tuple[str, ...]:
    """For lapses: an existing rule said again, never one that misleads."""
    lapses = [case for case in desk.brief.cases if not case.defect]
    rules = bullets(desk.brief.skill)
    misleading = trap_lines(desk.catalog, desk.brief.task_type, rules)
    said, rejected = fold(body_of(desk.brief.skill)), fold(desk.brief.rejected)
    notes: list[str] = []
    for case in lapses[:_MAX_NOTES]:
        for rule in shuffled(rules, "note", case.question_id, *desk.key):
            note = f"Do not skip this: {rule}"
            known = fold(note) in said or fold(note) in rejected or note in notes
            if rule not in misleading and not known:
                notes.append(note)
                break
    return tuple(notes)


def _spoil(text: str, reply: ReplyOut, key: tuple[object, ...]) -> str:
    """A reply that cannot be read: broken off, prose, or an operation that does not exist."""
    how = number(0, 2, "spoil", *key)
    if how == 0:
        return text[: max(1, len(text) * 3 // 5)]
    if how == 1:
        return "I would rewrite the whole strategy: it is too long, and the agent ignores it."
    edits = [msgspec.structs.replace(edit, op="rewrite") for edit in reply.edits]
    if not edits:
        edits = [EditOut("rewrite", "", "", (), _REASONS["malformed"])]
    return msgspec.json.encode(msgspec.structs.replace(reply, edits=tuple(edits))).decode()
