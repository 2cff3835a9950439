"""Edits that are one line of their own in a region at the tail: appendix notes, momentum rules.

Each can be there or not whatever else is: it touches no line of the base, and no other edit can
aim at it. Pure; what they may say is judged where they are proposed, here only their form.
"""

from __future__ import annotations

from collections.abc import Sequence

from actors.evolver.document import parse
from actors.evolver.momentum import momentum_of, objection_to_rule, with_rules
from actors.evolver.patch import Refusal
from actors.evolver.regions import note_of, notes_of, refusal_of, with_notes
from protocol.evolver import Edit, Writing

__all__ = ["is_writing", "line_refusal", "lines_in", "with_lines"]


def is_writing(edit: Edit) -> bool:
    """Whether an edit is a line of a region, and none of the body."""
    return edit.op in ("note", "momentum")


def lines_in(edits: Sequence[Edit], op: Writing) -> tuple[str, ...]:
    """The lines that these edits write into a region, in their order."""
    return tuple(edit.content for edit in edits if edit.op == op)


def line_refusal(base: str, edit: Edit, before: Sequence[Edit]) -> Refusal | None:
    """Why a line cannot be switched on and off on this text; None: it can.

    before: the edits before it in canonical order; the line must not be theirs.
    """
    problems = parse(base).problems
    if problems:
        return Refusal("protected", "; ".join(problems))
    line = edit.content
    if edit.op == "note":
        refusal = refusal_of(line, lambda _: None)
        if refusal is None and note_of(line) != line:
            refusal = Refusal("marker", "it is not one plain line")
        there = notes_of(base)
    else:
        refusal = objection_to_rule(line)
        there = tuple(each.removeprefix("- ") for each in momentum_of(base).splitlines())
    if refusal is None and line in (*there, *(one.content for one in before if is_writing(one))):
        refusal = Refusal("noop", "it is there already")
    if refusal is None:
        try:
            with_lines(base, [edit])
        except ValueError as error:
            refusal = Refusal("protected", str(error))
    return refusal


def with_lines(text: str, edits: Sequence[Edit], newline: str | None = None) -> str:
    """The text with these edits' lines in its regions; edits of the body are not looked at.

    newline: the line end of what is added; None: as the text has it. Raises ValueError if a line
    cannot stand there.
    """
    noted = with_notes(text, lines_in(edits, "note"), newline)
    return with_rules(noted, lines_in(edits, "momentum"), newline)
