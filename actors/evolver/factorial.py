"""Edits for a test of all undecided ones together: each can be on or off on the base alone.

The editor sees the base text and failures of the design fold. It is told neither what was proposed
before nor what became of it: the guarantee of that test rests on a blind proposer. What repeats an
earlier edit is left out here. Appendix notes are not taken, since a note is no patch that stands
alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from actors.evolver.asking import why_silent
from actors.evolver.candidate import Desk, Harvest, Material, Result, nothing
from actors.evolver.compose import compose, render
from actors.evolver.merge import merge_edits
from actors.evolver.patch import Limits, apply_edits
from actors.evolver.propose import gather
from actors.evolver.rank import choose
from actors.evolver.rejected import edit_gist, fingerprint, same_idea
from prompts.conversation import ChatCall, Understood
from prompts.templates import Template
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport, NoProposal, Propose
from protocol.factorial import ProposedEdits, ProposeEdits, RenderEdits

__all__ = ["Offer", "as_propose", "documents_of", "propose_edits", "without_repeats"]


class Offer(msgspec.Struct, frozen=True):
    """The reply, with a report on every edit. failed_calls: why conversations brought nothing."""

    reply: ProposedEdits | NoProposal
    failed_calls: tuple[str, ...] = ()


def as_propose(request: ProposeEdits) -> Propose:
    """The same evidence, as the analysts are asked about it."""
    return Propose(
        scope=request.scope,
        run_key=request.run_key,
        skill=request.base,
        defects=request.defects,
        lapses=request.lapses,
        edit_budget=request.n_edits,
    )


async def propose_edits(
    chat: ChatCall,
    templates: Mapping[str, Template],
    material: Material,
    earlier: Sequence[Edit],
) -> Offer:
    """Ask the editor, and take what composes with the earlier edits, at most the budget.

    material: of ``as_propose``, without a rejected ledger. templates: as of ``propose``.
    """
    harvest = await gather(chat, templates["evolve_skill"], material)
    if isinstance(harvest, Result):
        return _none(harvest)
    desk = Desk.of(chat, templates, material)
    names = {item.case.question.question_id for item in material.evidence}
    merged = merge_edits(harvest.edits, names, material.settings.similarity)
    fresh, repeated = without_repeats(merged, earlier, material.settings.similarity)
    choice = await choose(
        chat,
        templates["evolve_rank"],
        material.request.skill,
        fresh,
        material.limits,
        desk.screen,
        material.request.scope,
    )
    if choice.asked is not None:
        made = harvest.made + choice.asked.calls
        unread = harvest.parse_failures + choice.asked.parse_failures
        harvest = msgspec.structs.replace(harvest, made=made, parse_failures=unread)
        if not isinstance(choice.asked, Understood):
            reason, detail = why_silent(choice.asked)
            failed = (*harvest.failed, f"ranking: {detail}")
            harvest = msgspec.structs.replace(harvest, failed=failed)
            if reason != "editor_failed":
                return _none(nothing(reason, detail, harvest))
    idle = tuple(
        EditReport(edit=edit, status="over_budget", detail="no defect stands behind it")
        for edit in merge_edits(harvest.unbacked, names, material.settings.similarity)
    )
    return _offer(desk, harvest, choice.edits, earlier, (*choice.left_out, *repeated, *idle))


def _none(result: Result) -> Offer:
    assert isinstance(result.reply, NoProposal), "nothing was built"
    return Offer(result.reply, result.failed_calls)


def _offer(
    desk: Desk,
    harvest: Harvest,
    chosen: Sequence[Edit],
    earlier: Sequence[Edit],
    left_out: tuple[EditReport, ...],
) -> Offer:
    """Each chosen edit on the base alone, then all of them beside each other and the earlier."""
    base, settings = desk.material.request.skill.text, desk.material.settings
    alone = Limits(edits=1, max_chars=settings.max_skill_chars, max_growth=settings.max_growth)
    tried = [apply_edits(base, [edit], alone, screen=desk.screen).reports[0] for edit in chosen]
    able = [report for report in tried if report.status == "applied"]
    everything = (*earlier, *(report.edit for report in able))
    first = compose(base, everything, settings.max_skill_chars)
    live = [place for place in first.live if place >= len(earlier)]
    refused = {id(report.edit): report for report in first.refused}
    new = tuple(everything[place] for place in live)[: desk.material.limits.edits]
    together = compose(base, (*earlier, *new), settings.max_skill_chars)
    reports = (
        *(refused.get(id(report.edit), report) for report in able),
        *(report for report in tried if report.status != "applied"),
        *left_out,
    )
    if not new:
        if reports:
            return _none(nothing("none_applied", "no edit stands on the base", harvest, reports))
        return _none(nothing("no_edits", "the editor proposed nothing", harvest))
    groups = tuple(group for group in together.groups if len(group) > 1)
    reply = ProposedEdits(
        new=new,
        groups=groups,
        reports=reports,
        editor_calls=harvest.made,
        parse_failures=harvest.parse_failures,
    )
    return Offer(reply, harvest.failed)


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
            detail = "it repeats an edit that was proposed before"
            repeated.append(EditReport(edit=edit, status="not_chosen", detail=detail))
        else:
            fresh.append(edit)
    return tuple(fresh), tuple(repeated)


def documents_of(request: RenderEdits, max_chars: int) -> tuple[Skill, ...]:
    """The base with each set of edits on.

    Raises ValueError if an edit does not compose on this text, or two of a set exclude each other.
    """
    composition = compose(request.base.text, request.edits, max_chars)
    wanted = set(itertools.chain.from_iterable(request.on)) - set(composition.live)
    if wanted:
        raise ValueError(f"{request.base.task_type}: edits {sorted(wanted)} do not compose")
    return tuple(
        Skill(task_type=request.base.task_type, text=render(composition, on)) for on in request.on
    )
