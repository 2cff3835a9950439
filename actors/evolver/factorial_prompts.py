"""Edits of the system prompt and the tool prompts that can each be on or off on the base alone.

One conversation per document about which the packs hold failures; the editor is told neither what
was proposed before nor what became of it, and the rejected ledger is not read.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import anyio
import msgspec

from actors.evolver.compose import Composition, compose, render
from actors.evolver.factorial_lines import without_repeats
from actors.evolver.leak import Exposed, find_leak
from actors.evolver.merge import merge_edits
from actors.evolver.pack_prompt import PromptReply, case_ids, exposed_in
from actors.evolver.prompt_edits import (
    PromptMaterial,
    PromptResult,
    ask_editor,
    frozen_headings,
    objection_to,
    patched_prompt,
)
from actors.evolver.screen import narrowed
from prompts.conversation import ChatCall, Understood
from prompts.templates import Template
from protocol.diagnoser import CasePacks, SystemPack, ToolPack
from protocol.documents import Document, Prompts
from protocol.evolver import Edit, EditReport, EditStatus, NoProposal, Reason
from protocol.factorial_prompts import (
    PromptEdit,
    PromptReport,
    ProposedPromptEdits,
    ProposePromptEdits,
    RenderPrompts,
    documents_in,
    with_documents,
)
from protocol.settings import EvolverSettings
from protocol.slow import SYSTEM, EvolvePrompt

__all__ = ["PromptOffer", "compose_prompt", "prompts_of", "propose_prompt_edits"]


class PromptOffer(msgspec.Struct, frozen=True):
    """The reply, with a report on every edit. failed: why conversations brought nothing."""

    reply: ProposedPromptEdits | NoProposal
    reports: tuple[PromptReport, ...] = ()
    failed: tuple[str, ...] = ()


class _Found(msgspec.Struct, frozen=True):
    """What came of one document. able: edits that stand on the base and beside each other."""

    able: tuple[Edit, ...] = ()
    reports: tuple[EditReport, ...] = ()
    nothing: NoProposal | None = None
    failed: str = ""
    editor_calls: int = 0
    parse_failures: int = 0


async def propose_prompt_edits(
    chat: ChatCall,
    templates: Mapping[str, Template],
    request: ProposePromptEdits,
    settings: EvolverSettings,
) -> PromptOffer:
    """Ask about every document, side by side; at most the budget of all their edits is taken.

    Raises ValueError if a case's question is lacking.
    """
    found: dict[str, _Found] = {}

    async def one(document: Document, pack: SystemPack | ToolPack) -> None:
        material = _material(request, document, pack, settings)
        template = templates["evolve_system" if document.name == SYSTEM else "evolve_tool"]
        earlier = tuple(e.edit for e in request.earlier if e.document == document.name)
        found[document.name] = await _found(chat, template, material, earlier)

    async with anyio.create_task_group() as group:
        for document in documents_in(request.prompts):
            if (pack := _pack_of(request.packs, document.name)) is not None:
                group.start_soon(one, document, pack)
    names = [document.name for document in documents_in(request.prompts)]
    return _offer(request, settings, {name: found[name] for name in names if name in found})


def _pack_of(packs: CasePacks, name: str) -> SystemPack | ToolPack | None:
    if name == SYSTEM:
        return packs.system
    return next((pack for pack in packs.tools if pack.tool == name), None)


def _material(
    request: ProposePromptEdits,
    document: Document,
    pack: SystemPack | ToolPack,
    settings: EvolverSettings,
) -> PromptMaterial:
    asked = EvolvePrompt(
        scope=request.scope,
        run_key=f"{request.run_key}/{document.name}",
        document=document,
        pack=pack,
        questions=request.questions,
        edit_budget=min(settings.prompt_edit_budget, request.n_edits),
    )
    return PromptMaterial(request=asked, rejected=(), settings=settings)


# -- one document -----------------------------------------------------------------------


async def _found(
    chat: ChatCall, template: Template, material: PromptMaterial, earlier: Sequence[Edit]
) -> _Found:
    pack = material.request.pack
    exposed = narrowed(exposed_in(pack, material.request.questions))
    asked = await ask_editor(chat, template, material)
    if isinstance(asked, PromptResult):
        assert isinstance(asked.reply, NoProposal), "nothing was built"
        reply = asked.reply
        return _Found(
            nothing=reply,
            failed=asked.failed,
            editor_calls=reply.editor_calls,
            parse_failures=reply.parse_failures,
        )
    able, reports = _able(material, asked, earlier, exposed)
    return _Found(
        able=able,
        reports=reports,
        editor_calls=asked.calls,
        parse_failures=asked.parse_failures,
    )


def _able(
    material: PromptMaterial,
    asked: Understood[PromptReply],
    earlier: Sequence[Edit],
    exposed: Sequence[Exposed],
) -> tuple[tuple[Edit, ...], tuple[EditReport, ...]]:
    """The edits that may be tested, and a report on each of the others."""
    similarity = material.settings.similarity
    proposed = [one.edit for one in asked.value.edits]
    merged = merge_edits(proposed, case_ids(material.request.pack), similarity)
    fresh, repeated = without_repeats(merged, earlier, similarity)
    able: list[Edit] = []
    reports = list(repeated)
    for edit in fresh:
        refused = _alone(material, edit, exposed) or _beside(material, (*earlier, *able), edit)
        if refused is None and _quotes(material, (*earlier, *able, edit), exposed):
            refused = _refusal(edit, "leak", "beside other edits it gives a question away")
        if refused is None:
            able.append(edit)
        else:
            reports.append(refused)
    budget = material.request.edit_budget
    over = [
        _refusal(edit, "over_budget", f"the budget is {budget} edits") for edit in able[budget:]
    ]
    return tuple(able[:budget]), (*reports, *over)


def _alone(material: PromptMaterial, edit: Edit, exposed: Sequence[Exposed]) -> EditReport | None:
    """Why the edit does not stand on the base; None: it does."""
    patched = patched_prompt(material, [edit], exposed)
    (report,) = patched.reports
    if report.status != "applied":
        return report
    edited = Document(name=material.request.document.name, text=patched.text)
    objection = objection_to(material, edited, patched, exposed)
    return None if objection is None else _refusal(edit, "protected", objection[1])


def _beside(material: PromptMaterial, others: Sequence[Edit], edit: Edit) -> EditReport | None:
    composed = _composed(material.request.document, (*others, edit), material.settings)
    if len(others) in composed.live:
        return None
    return next(report for report in composed.refused if report.edit == edit)


def _quotes(material: PromptMaterial, edits: Sequence[Edit], exposed: Sequence[Exposed]) -> bool:
    """Whether the last edit and the others of other groups quote what none of them does alone."""
    base = material.request.document.text
    composed = _composed(material.request.document, edits, material.settings)
    last = len(edits) - 1
    on = [last if last in group else group[0] for group in composed.groups]
    known = find_leak(base, exposed, base)
    return known is None and find_leak(render(composed, on), exposed, base) is not None


def _refusal(edit: Edit, status: EditStatus, detail: str) -> EditReport:
    return EditReport(edit=edit, status=status, detail=detail)


def _composed(document: Document, edits: Sequence[Edit], settings: EvolverSettings) -> Composition:
    return compose_prompt(document, edits, settings.max_prompt_chars)


def compose_prompt(document: Document, edits: Sequence[Edit], max_chars: int) -> Composition:
    """The edits of one document; its sections that stay as they are, are out of their reach."""
    return compose(document.text, edits, max_chars, frozen_headings(document.name))


# -- all documents ----------------------------------------------------------------------


def _offer(
    request: ProposePromptEdits, settings: EvolverSettings, found: Mapping[str, _Found]
) -> PromptOffer:
    chosen, left_out = _chosen(found, request.n_edits)
    reports = (
        *(_report(one.document, _refusal(one.edit, "applied", "")) for one in chosen),
        *left_out,
        *(_report(name, report) for name, one in found.items() for report in one.reports),
    )
    failed = tuple(f"{name}: {one.failed}" for name, one in found.items() if one.failed)
    calls = sum(one.editor_calls for one in found.values())
    unread = sum(one.parse_failures for one in found.values())
    why = _why_nothing(found, any_chosen=bool(chosen))
    if why is not None:
        reply = NoProposal(
            reason=why[0], detail=why[1], reports=(), editor_calls=calls, parse_failures=unread
        )
        return PromptOffer(reply, reports, failed)
    together = (*request.earlier, *chosen)
    offered = ProposedPromptEdits(
        new=chosen,
        groups=_groups(request.prompts, together, settings.max_prompt_chars),
        reports=reports,
        editor_calls=calls,
        parse_failures=unread,
    )
    return PromptOffer(offered, reports, failed)


def _report(document: str, report: EditReport) -> PromptReport:
    return PromptReport(document=document, report=report)


def _chosen(
    found: Mapping[str, _Found], most: int
) -> tuple[tuple[PromptEdit, ...], tuple[PromptReport, ...]]:
    """The first edit of every document, then the second of each: at most so many, and the rest."""
    rounds = itertools.zip_longest(
        *([PromptEdit(document=n, edit=edit) for edit in one.able] for n, one in found.items())
    )
    ordered = [edit for taken in rounds for edit in taken if edit is not None]
    detail = f"the budget is {most} edits of all prompts"
    over = tuple(
        _report(one.document, _refusal(one.edit, "over_budget", detail)) for one in ordered[most:]
    )
    return tuple(ordered[:most]), over


def _why_nothing(found: Mapping[str, _Found], *, any_chosen: bool) -> tuple[Reason, str] | None:
    """Why there is no proposal; an outage of any conversation must not decide what is proposed."""
    silent = [(name, one.nothing) for name, one in found.items() if one.nothing is not None]
    away = [(name, reply) for name, reply in silent if reply.away]
    if any_chosen and not away:
        return None
    told = "; ".join(f"{name}: {reply.detail}" for name, reply in away or silent)
    if away:  # what no waiting mends is told first
        reasons = {reply.reason for _, reply in away}
        return ("editor_refused" if "editor_refused" in reasons else "editor_unreachable"), told
    if any(one.reports for one in found.values()):
        return "none_applied", told or "no edit stands on the base"
    if len(silent) == len(found) and silent:
        asked = (reply.reason for _, reply in silent if reply.reason != "no_cases")
        return next(asked, "no_cases"), told
    return "no_edits", told or "the editor proposed nothing"


def _groups(
    base: Prompts, edits: Sequence[PromptEdit], max_chars: int
) -> tuple[tuple[int, ...], ...]:
    """Places of edits that exclude each other: only edits of one document can."""
    groups: list[tuple[int, ...]] = []
    for document, places in _by_document(base, edits):
        composed = compose_prompt(document, [edits[place].edit for place in places], max_chars)
        groups += [tuple(places[n] for n in group) for group in composed.groups if len(group) > 1]
    return tuple(sorted(groups))


def _by_document(
    base: Prompts, edits: Sequence[PromptEdit]
) -> list[tuple[Document, tuple[int, ...]]]:
    """The documents that there are edits of, each with the places of its edits."""
    return [
        (document, places)
        for document in documents_in(base)
        if (places := tuple(n for n, one in enumerate(edits) if one.document == document.name))
    ]


def prompts_of(request: RenderPrompts, max_chars: int) -> tuple[Prompts, ...]:
    """The base with each set of edits on.

    Raises ValueError if an edit does not compose on its document, or two of a set exclude each
    other; KeyError for an edit of a document that is not there.
    """
    if lost := {one.document for one in request.edits} - {
        d.name for d in documents_in(request.base)
    }:
        raise KeyError(f"prompts {request.base.version} have no {', '.join(sorted(lost))}")
    composed = [
        (
            document,
            places,
            compose_prompt(document, [request.edits[n].edit for n in places], max_chars),
        )
        for document, places in _by_document(request.base, request.edits)
    ]
    made = []
    for on in request.on:
        changed = []
        for document, places, composition in composed:
            wanted = [own for own, place in enumerate(places) if place in on]
            text = render(composition, wanted)
            changed.append(Document(name=document.name, text=text))
        made.append(with_documents(request.base, changed))
    return tuple(made)
