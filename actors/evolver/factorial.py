"""Edits for a test of all undecided ones together: each can be on or off on the base alone.

The editor sees the base text and failures of the design fold. It is told neither what was proposed
before nor what became of it: the guarantee of that test rests on a blind proposer. What repeats an
earlier edit is left out here. An appendix note or a momentum rule is an edit of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from actors.evolver.asking import why_silent
from actors.evolver.candidate import Desk, Harvest, Material, Result, nothing
from actors.evolver.compare_prompt import Pair
from actors.evolver.compose import compose, render
from actors.evolver.factorial_lines import Lines, new_notes, rules_of, without_repeats
from actors.evolver.merge import merge_edits
from actors.evolver.patch import Limits, apply_edits
from actors.evolver.propose import gather
from actors.evolver.rank import choose
from prompts.conversation import ChatCall, Understood
from prompts.templates import Template
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport, NoProposal, Propose, Reason
from protocol.factorial import ProposedEdits, ProposeEdits, RenderEdits

__all__ = ["Offer", "as_propose", "documents_of", "propose_edits"]


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
    pairs: Sequence[Pair] = (),
) -> Offer:
    """Ask the editor, and take what composes with the earlier edits, at most the budget.

    Edits of the body first, then notes, then momentum rules where there is a place left.
    material: of ``as_propose``, without a rejected ledger. templates: as of ``propose``, and
    ``slow_momentum``. pairs: the questions of the design fold in the epoch before and this one.
    """
    harvest = await gather(chat, templates["evolve_skill"], material)
    why: tuple[Reason, str] = ("no_edits", "the editor proposed nothing")
    desk = Desk.of(chat, templates, material)
    draft = _Draft((), ())
    if isinstance(harvest, Result):
        if not pairs or _ends(harvest):
            return _none(harvest)
        assert isinstance(harvest.reply, NoProposal), "nothing was built"
        why = (harvest.reply.reason, harvest.reply.detail)
        harvest = _barren(harvest)
    else:
        draft, harvest, outage = await _edits(desk, harvest, earlier)
        if outage is not None:
            return _none(nothing(*outage, harvest))
    budget = material.limits.edits
    rules = await rules_of(
        desk,
        templates["slow_momentum"],
        pairs,
        harvest,
        (*earlier, *draft.new),
        budget - len(draft.new),
    )
    if rules.outage is not None:
        return _none(nothing(*rules.outage, rules.harvest))
    return _offer(desk, rules.harvest, _with_lines(desk, draft, rules, earlier), earlier, why)


def _ends(result: Result) -> bool:
    """Whether no rule may be asked for either: the editor is away, or the base is damaged."""
    reply = result.reply
    return isinstance(reply, NoProposal) and (reply.away or reply.reason == "none_applied")


def _barren(result: Result) -> Harvest:
    """What the editor brought, which is nothing."""
    return Harvest(
        edits=(),
        unbacked=(),
        notes=(),
        idle_notes=(),
        made=result.reply.editor_calls,
        parse_failures=result.reply.parse_failures,
        failed=result.failed_calls,
    )


def _none(result: Result) -> Offer:
    assert isinstance(result.reply, NoProposal), "nothing was built"
    return Offer(result.reply, result.failed_calls)


class _Draft(msgspec.Struct, frozen=True):
    """New edits in canonical order, and a report on each that was looked at."""

    new: tuple[Edit, ...]
    reports: tuple[EditReport, ...]


async def _edits(
    desk: Desk, harvest: Harvest, earlier: Sequence[Edit]
) -> tuple[_Draft, Harvest, tuple[Reason, str] | None]:
    """The editor's edits and its notes; last: the outage that ended the ranking."""
    material = desk.material
    names = {item.case.question.question_id for item in material.evidence}
    merged = merge_edits(harvest.edits, names, material.settings.similarity)
    fresh, repeated = without_repeats(merged, earlier, material.settings.similarity)
    choice = await choose(
        desk.chat,
        desk.templates["evolve_rank"],
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
                return _Draft((), ()), harvest, (reason, detail)
    idle = tuple(
        EditReport(edit=edit, status="over_budget", detail="no defect stands behind it")
        for edit in merge_edits(harvest.unbacked, names, material.settings.similarity)
    )
    draft = _stood(desk, choice.edits, earlier, (*choice.left_out, *repeated, *idle))
    room = material.limits.edits - len(draft.new)
    notes = new_notes(desk, harvest, (*earlier, *draft.new), room)
    return _with_lines(desk, draft, notes, earlier), harvest, None


def _stood(
    desk: Desk, chosen: Sequence[Edit], earlier: Sequence[Edit], left_out: tuple[EditReport, ...]
) -> _Draft:
    """Each chosen edit on the base alone, then all of them beside each other and the earlier."""
    base, settings = desk.material.request.skill.text, desk.material.settings
    alone = Limits(edits=1, max_chars=settings.max_skill_chars, max_growth=settings.max_growth)
    tried = [apply_edits(base, [edit], alone, screen=desk.screen).reports[0] for edit in chosen]
    able = [report for report in tried if report.status == "applied"]
    new, reports = _composed(desk, able, earlier)
    others = (report for report in tried if report.status != "applied")
    return _Draft(new[: desk.material.limits.edits], (*reports, *others, *left_out))


def _with_lines(desk: Desk, draft: _Draft, lines: Lines, earlier: Sequence[Edit]) -> _Draft:
    """With notes or rules behind the edits, as far as they compose."""
    able = [EditReport(edit=edit, status="applied", detail="") for edit in lines.edits]
    new, reports = _composed(desk, able, (*earlier, *draft.new))
    return _Draft((*draft.new, *new), (*draft.reports, *reports, *lines.refused))


def _composed(
    desk: Desk, able: Sequence[EditReport], before: Sequence[Edit]
) -> tuple[tuple[Edit, ...], tuple[EditReport, ...]]:
    """Of these edits those that compose behind those before, and what became of each."""
    base, most = desk.material.request.skill.text, desk.material.settings.max_skill_chars
    everything = (*before, *(report.edit for report in able))
    first = compose(base, everything, most)
    refused = {id(report.edit): report for report in first.refused}
    new = tuple(everything[place] for place in first.live if place >= len(before))
    return new, tuple(refused.get(id(report.edit), report) for report in able)


def _offer(
    desk: Desk, harvest: Harvest, draft: _Draft, earlier: Sequence[Edit], why: tuple[Reason, str]
) -> Offer:
    """The reply. why: nothing was proposed, where there is no report either."""
    if not draft.new:
        if draft.reports:
            why = ("none_applied", "no edit stands on the base")
        return _none(nothing(*why, harvest, draft.reports))
    base, most = desk.material.request.skill.text, desk.material.settings.max_skill_chars
    together = compose(base, (*earlier, *draft.new), most)
    reply = ProposedEdits(
        new=draft.new,
        groups=tuple(group for group in together.groups if len(group) > 1),
        reports=draft.reports,
        editor_calls=harvest.made,
        parse_failures=harvest.parse_failures,
    )
    return Offer(reply, harvest.failed)


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
