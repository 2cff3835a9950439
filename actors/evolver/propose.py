"""From diagnosed failures to a candidate: analyst calls side by side, merged, patched.

Knows the editor only as a ``chat`` callable and the ledger not at all. Every way to end
without a candidate has its own reason; a reply that could not be read is never taken for
an empty list of edits.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import anyio
import msgspec

from actors.evolver.document import parse, validate
from actors.evolver.leak import Exposed, find_leak
from actors.evolver.merge import merge_edits
from actors.evolver.patch import Limits, Refusal, apply_edits, growth_left
from actors.evolver.prompt import EditorReply, Evidence, editor_prompt
from actors.evolver.regions import RefusedNote, write_notes
from actors.evolver.rejected import fingerprint, fingerprints, folded, rejected_notes
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.templates import Template
from prompts.trajectory import submission_of
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport, NoProposal, Proposal, Propose, Reason
from protocol.ledger import RejectedRow
from protocol.settings import EvolverSettings

__all__ = ["Material", "Result", "deal", "propose"]

Asked = Understood[EditorReply] | NotUnderstood | Unreachable


class Material(msgspec.Struct, frozen=True):
    """What a proposal is made from.

    evidence: the request's defects, then its lapses, with their steps.
    rejected: the class's part of the rejected ledger.
    """

    request: Propose
    evidence: tuple[Evidence, ...]
    rejected: tuple[RejectedRow, ...]
    settings: EvolverSettings

    @property
    def limits(self) -> Limits:
        """The budgets of this step."""
        return Limits(
            edits=self.request.edit_budget,
            max_chars=self.settings.max_skill_chars,
            max_growth=self.settings.max_growth,
        )


class Result(msgspec.Struct, frozen=True):
    """The reply; notes that were not written and calls that failed have no report of their own."""

    reply: Proposal | NoProposal
    refused_notes: tuple[RefusedNote, ...] = ()
    failed_calls: tuple[str, ...] = ()


class _Harvest(msgspec.Struct, frozen=True):
    """What the analysts brought.

    unbacked: edits of calls that saw no defect; idle_notes: notes of calls that saw no lapse;
    failed: why, for each minibatch that brought nothing; made: chats, re-asks included.
    """

    edits: tuple[Edit, ...]
    unbacked: tuple[Edit, ...]
    notes: tuple[str, ...]
    idle_notes: tuple[str, ...]
    made: int
    parse_failures: int
    failed: tuple[str, ...]


def deal(evidence: Sequence[Evidence], size: int) -> tuple[tuple[Evidence, ...], ...]:
    """Minibatches of at most ``size`` trajectories, defects and lapses spread evenly."""
    count = -(-len(evidence) // size)
    return tuple(tuple(evidence[index::count]) for index in range(count))


async def propose(chat: ChatCall, template: Template, material: Material) -> Result:
    """Ask the editor about the evidence and build the candidate."""
    request = material.request
    if not material.evidence:
        return _nothing("no_cases", "no wrong answer to learn from")
    problems = validate(request.skill.text)
    if problems:
        return _nothing("none_applied", f"the skill is damaged: {'; '.join(problems)}")
    batches = deal(material.evidence, material.settings.minibatch)
    asked = await _ask_all(chat, template, material, batches)
    harvest = _collect(batches, asked)
    away = [outcome.failure for outcome in asked if isinstance(outcome, Unreachable)]
    outages = [failure for failure in away if failure.kind != "crash"]  # a crash is this chat's own
    if outages:
        refused = any(failure.fatal for failure in outages)
        reason: Reason = "editor_refused" if refused else "editor_unreachable"
        return _nothing(reason, "; ".join(harvest.failed), harvest)
    if len(harvest.failed) == len(batches):
        return _nothing("editor_failed", "; ".join(harvest.failed), harvest)
    return _build(material, harvest)


async def _ask_all(
    chat: ChatCall,
    template: Template,
    material: Material,
    batches: Sequence[Sequence[Evidence]],
) -> list[Asked]:
    """One conversation per minibatch, side by side; outcomes in the order of the minibatches."""
    skill, limits = material.request.skill, material.limits
    growth = growth_left(parse(skill.text), limits)
    outcomes: dict[int, Asked] = {}

    async def one(index: int, batch: Sequence[Evidence]) -> None:
        prompt = editor_prompt(
            template,
            skill,
            batch,
            material.rejected,
            edit_budget=limits.edits if _has_defect(batch) else 0,
            growth_chars=growth,
            max_trace_chars=material.settings.max_trace_chars,
        )
        outcomes[index] = await ask_for(
            chat,
            "evolve",
            prompt,
            EditorReply,
            material.request.scope,
            illustration=template.illustration,
        )

    async with anyio.create_task_group() as group:
        for index, batch in enumerate(batches):
            group.start_soon(one, index, batch)
    return [outcomes[index] for index in range(len(batches))]


def _has_defect(batch: Iterable[Evidence]) -> bool:
    return any(item.kind == "defect" for item in batch)


def _has_lapse(batch: Iterable[Evidence]) -> bool:
    return any(item.kind == "lapse" for item in batch)


def _collect(batches: Sequence[Sequence[Evidence]], asked: Sequence[Asked]) -> _Harvest:
    edits: list[Edit] = []
    unbacked: list[Edit] = []
    notes: list[str] = []
    idle: list[str] = []
    failed: list[str] = []
    for batch, outcome in zip(batches, asked, strict=True):
        match outcome:
            case Understood(value=reply):
                (edits if _has_defect(batch) else unbacked).extend(
                    proposed.edit for proposed in reply.edits
                )
                # a note brings an existing rule back to mind; without a lapse none was overlooked
                (notes if _has_lapse(batch) else idle).extend(reply.notes)
            case NotUnderstood(problem=problem):
                failed.append(f"unreadable: {problem}")
            case Unreachable(failure=failure):
                failed.append(f"{failure.kind}: {failure.detail}")
    return _Harvest(
        edits=tuple(edits),
        unbacked=tuple(unbacked),
        notes=tuple(notes),
        idle_notes=tuple(idle),
        made=sum(outcome.calls for outcome in asked),
        parse_failures=sum(outcome.parse_failures for outcome in asked),
        failed=tuple(failed),
    )


def _build(material: Material, harvest: _Harvest) -> Result:
    """Merge, screen, patch, write notes, and hold the finished text against everything."""
    skill = material.request.skill
    exposed = tuple(_exposed(item) for item in material.evidence)
    before = fingerprints(material.rejected)

    def screen(edit: Edit) -> Refusal | None:
        if fingerprint(edit) in before:
            return Refusal("already_rejected", "the gate rejected it before")
        if any(unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\r\t" for c in edit.content):
            return Refusal("marker", "it holds control or invisible characters")
        # What a delete takes away cannot give anything away.
        leak = find_leak(edit.content, exposed, skill.text) if edit.op != "delete" else None
        return Refusal("leak", leak) if leak else None

    names = {item.case.question.question_id for item in material.evidence}
    merged = merge_edits(harvest.edits, names)
    patched = apply_edits(skill.text, merged, material.limits, screen=screen)
    reports = (
        *patched.reports,
        *(
            EditReport(edit=edit, status="over_budget", detail="no defect stands behind it")
            for edit in merge_edits(harvest.unbacked, names)
        ),
    )
    refused_before = rejected_notes(material.rejected)
    noted = write_notes(
        patched.text,
        [note for note in harvest.notes if folded(note) not in refused_before],
        material.settings.max_notes,
        lambda note: find_leak(note, exposed, skill.text),
    )
    refused_notes = (
        *noted.refused,
        *(RefusedNote(note, "no lapse stands behind it") for note in harvest.idle_notes),
    )
    candidate = Skill(task_type=skill.task_type, text=noted.text)
    why = _objection(material, harvest, candidate, reports)
    if why is not None:
        result = _nothing(*why, harvest, reports)
        return msgspec.structs.replace(result, refused_notes=refused_notes)
    proposal = Proposal(
        candidate=candidate,
        reports=reports,
        notes=noted.added,
        editor_calls=harvest.made,
        parse_failures=harvest.parse_failures,
    )
    return Result(proposal, refused_notes, harvest.failed)


def _exposed(item: Evidence) -> Exposed:
    submission = submission_of(item.steps)
    read = tuple(step.observation for step in item.steps)
    return Exposed(item.case.question, (*read, submission.evidence) if submission else read)


def _objection(
    material: Material, harvest: _Harvest, candidate: Skill, reports: Sequence[EditReport]
) -> tuple[Reason, str] | None:
    """Why the candidate must not be tested; None if it may."""
    current = material.request.skill
    if candidate.text == current.text:
        if not reports and not harvest.notes and not harvest.idle_notes:
            return "no_edits", "the editor proposed nothing"
        if reports and all(report.status == "already_rejected" for report in reports):
            return "already_rejected", "every edit was rejected before"
        return "none_applied", "no edit and no note changed the skill"
    if candidate.hash in {row.candidate_hash for row in material.rejected}:
        return "already_rejected", "the candidate as a whole was rejected before"
    problems = validate(candidate.text)
    if problems:
        return "none_applied", f"the finished skill is damaged: {'; '.join(problems)}"
    return None


def _nothing(
    reason: Reason,
    detail: str,
    harvest: _Harvest | None = None,
    reports: Sequence[EditReport] = (),
) -> Result:
    reply = NoProposal(
        reason=reason,
        detail=detail,
        reports=tuple(reports),
        editor_calls=harvest.made if harvest else 0,
        parse_failures=harvest.parse_failures if harvest else 0,
    )
    return Result(reply, failed_calls=harvest.failed if harvest else ())
