"""Appendix notes and momentum rules as edits of their own, for a test of all undecided edits.

A note comes with the editor's reply, where a lapse stands behind it. A rule is written from the
questions of the design fold, answered in the epoch before and in this one: answers that proposals
may see. Either is one more line of its region; the appendix is not compacted and the region not
written anew, since that would change what other undecided edits stand on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.evolver.asking import why_silent
from actors.evolver.candidate import Desk, Harvest
from actors.evolver.compare_prompt import Pair, shown_of
from actors.evolver.likeness import alike, gist
from actors.evolver.merge import merge_edits
from actors.evolver.momentum import new_rules, without_momentum
from actors.evolver.patch import Refusal
from actors.evolver.reflect import ask_for_rules, leak_screen
from actors.evolver.regions import note_of, notes_of, refusal_of
from actors.evolver.rejected import edit_gist, fingerprint, same_idea
from actors.evolver.tail import lines_in
from prompts.conversation import Understood
from prompts.templates import Template
from protocol.evolver import Edit, EditReport, Reason

__all__ = ["MOST_RULES", "Lines", "new_notes", "rules_of", "without_repeats"]

MOST_RULES = 2
"""New momentum rules of a class and epoch."""


class Lines(msgspec.Struct, frozen=True):
    """Edits that may be tested, and a report on each that may not.

    harvest: with the conversation counted, if there was one. outage: why the editor was not there.
    """

    edits: tuple[Edit, ...]
    refused: tuple[EditReport, ...]
    harvest: Harvest
    outage: tuple[Reason, str] | None = None


def new_notes(desk: Desk, harvest: Harvest, taken: Sequence[Edit], room: int) -> Lines:
    """The harvest's notes, at most ``room``, the most supported first.

    taken: the class's edits, earlier ones and those of this proposal.
    """
    material = desk.material
    names = {item.case.question.question_id for item in material.evidence}
    offered = merge_edits(
        (
            Edit(op="note", target="", content=note_of(raw), support=seen, reason="lapse")
            for raw, seen in zip(harvest.notes, harvest.lapses, strict=True)
        ),
        names,
        material.settings.similarity,
    )
    fresh, refused = without_repeats(offered, taken, material.settings.similarity)
    kept: list[Edit] = []
    n_before = len(notes_of(material.request.skill.text)) + len(lines_in(taken, "note"))
    for edit in fresh:
        refusal = refusal_of(edit.content, desk.screen_note) or _repeats(desk, edit.content)
        if refusal is None and n_before + len(kept) >= material.settings.max_notes:
            detail = f"the appendix is full: {material.settings.max_notes} notes"
            refusal = Refusal("over_budget", detail)
        if refusal is None and len(kept) >= room:
            refusal = Refusal("over_budget", "no place is left beside the edits")
        if refusal is None:
            kept.append(edit)
        else:
            refused = (*refused, _report(edit, refusal))
    idle = Refusal("over_budget", "no lapse stands behind it")
    for raw in harvest.idle_notes:
        edit = Edit(op="note", target="", content=note_of(raw), support=(), reason="lapse")
        refused = (*refused, _report(edit, idle))
    return Lines(tuple(kept), refused, harvest)


def _repeats(desk: Desk, note: str) -> Refusal | None:
    """Only the appendix counts: a note says again what the body says."""
    mine, similarity = gist(note), desk.material.settings.similarity
    there = notes_of(desk.material.request.skill.text)
    if any(alike(mine, gist(other), similarity) for other in there):
        return Refusal("noop", "it is there already")
    return None


async def rules_of(
    desk: Desk,
    template: Template,
    pairs: Sequence[Pair],
    harvest: Harvest,
    taken: Sequence[Edit],
    room: int,
) -> Lines:
    """Ask for momentum rules, unless there is no place for one or nothing to compare.

    template: ``slow_momentum``. taken: as of ``new_notes``. The editor is shown the base: neither
    an undecided rule nor what became of an earlier one.
    """
    if not pairs or room < 1:
        return Lines((), (), harvest)
    material = desk.material
    base, settings = material.request.skill, material.settings
    asked = await ask_for_rules(desk.chat, template, base, pairs, settings, material.request.scope)
    silent = None if isinstance(asked, Understood) else why_silent(asked)
    harvest = msgspec.structs.replace(
        harvest,
        made=harvest.made + asked.calls,
        parse_failures=harvest.parse_failures + asked.parse_failures,
        failed=(*harvest.failed, f"momentum: {silent[1]}") if silent else harvest.failed,
    )
    if not isinstance(asked, Understood):
        outage = silent if silent and silent[0] != "editor_failed" else None
        return Lines((), (), harvest, outage)
    rules, refused = new_rules(
        base.text,
        lines_in(taken, "momentum"),
        asked.value.momentum,
        most=min(MOST_RULES, room),
        max_chars=settings.max_momentum_chars,
        similarity=settings.similarity,
        screen=leak_screen(pairs, without_momentum(base.text)),
    )
    support = tuple(pair.compared.question.question_id for pair in shown_of(pairs))
    edits = [
        Edit(op="momentum", target="", content=rule, support=support, reason="momentum")
        for rule in rules
    ]
    fresh, repeated = without_repeats(edits, taken, settings.similarity)
    return Lines(fresh, (*refused, *repeated), harvest)


def without_repeats(
    edits: Sequence[Edit], earlier: Sequence[Edit], similarity: float
) -> tuple[tuple[Edit, ...], tuple[EditReport, ...]]:
    """Edits that say something new, and a report on each of the others."""
    known = {fingerprint(edit) for edit in earlier}
    gists = [edit_gist(edit) for edit in earlier]
    fresh, repeated = [], []
    for edit in edits:
        mine = edit_gist(edit)
        if fingerprint(edit) in known or any(same_idea(mine, one, similarity) for one in gists):
            refusal = Refusal("not_chosen", "it repeats an edit that was proposed before")
            repeated.append(_report(edit, refusal))
        else:
            fresh.append(edit)
    return tuple(fresh), tuple(repeated)


def _report(edit: Edit, refusal: Refusal) -> EditReport:
    return EditReport(edit=edit, status=refusal.status, detail=refusal.detail)
