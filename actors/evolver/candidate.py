"""From what the analysts brought to a candidate: merged, ranked, patched, noted, checked.

An edit passes one screen wherever it is looked at; a note passes one too. Conversations on
the way (ranking, compaction) are counted with those of the analysts, and an outage in one of
them ends the proposal like an outage in theirs: it must not decide what is tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from actors.evolver.asking import why_silent
from actors.evolver.consolidate import consolidate
from actors.evolver.document import validate
from actors.evolver.leak import Exposed, find_leak
from actors.evolver.merge import merge_edits
from actors.evolver.patch import Limits, Refusal, apply_edits
from actors.evolver.prompt import Evidence
from actors.evolver.rank import choose
from actors.evolver.regions import Noted, RefusedNote, notes_of, write_notes
from actors.evolver.rejected import Memory
from actors.evolver.screen import edit_screen, narrowed
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable
from prompts.templates import Template
from prompts.trajectory import submission_of
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport, NoProposal, Proposal, Propose, Reason
from protocol.rows import RejectedRow
from protocol.settings import EvolverSettings

__all__ = ["Desk", "Harvest", "Material", "Result", "build", "nothing"]

T = TypeVar("T")


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


class Harvest(msgspec.Struct, frozen=True):
    """What the editor brought so far.

    unbacked: edits of calls that saw no defect; idle_notes: notes of calls that saw no lapse;
    lapses: for each of the notes, the question ids of the lapses that its call saw;
    failed: why, for each conversation that brought nothing; made: chats, re-asks included.
    """

    edits: tuple[Edit, ...]
    unbacked: tuple[Edit, ...]
    notes: tuple[str, ...]
    idle_notes: tuple[str, ...]
    made: int
    parse_failures: int
    failed: tuple[str, ...]
    lapses: tuple[tuple[str, ...], ...] = ()


class Desk(msgspec.Struct, frozen=True):
    """What a candidate is made with, the same on the whole way.

    templates: ``evolve_rank`` and ``consolidate_appendix``. exposed: what the editor saw.
    """

    chat: ChatCall
    templates: Mapping[str, Template]
    material: Material
    exposed: tuple[Exposed, ...]
    memory: Memory

    @staticmethod
    def of(chat: ChatCall, templates: Mapping[str, Template], material: Material) -> Desk:
        """Set out. Raises msgspec.DecodeError if a row of the rejected ledger is damaged."""
        return Desk(
            chat=chat,
            templates=templates,
            material=material,
            exposed=narrowed([_exposed(item) for item in material.evidence]),
            memory=Memory.of(material.rejected, material.settings.similarity),
        )

    def screen(self, edit: Edit) -> Refusal | None:
        """Why an edit is refused for what it says; None: it is not."""
        return edit_screen(self.memory, self.exposed, self.material.request.skill.text)(edit)

    def leak(self, text: str) -> str | None:
        """What a text gives away of the evidence; None: nothing."""
        return find_leak(text, self.exposed, self.material.request.skill.text)

    def screen_note(self, note: str) -> str | None:
        """Why a new note is refused; None: it is not."""
        return self.memory.note_refusal(note) or self.leak(note)


async def build(desk: Desk, harvest: Harvest) -> Result:
    """The candidate, or why there is none."""
    material = desk.material
    skill, scope = material.request.skill, material.request.scope
    names = {item.case.question.question_id for item in material.evidence}
    similarity = material.settings.similarity
    merged = merge_edits(harvest.edits, names, similarity)
    template = desk.templates["evolve_rank"]
    choice = await choose(desk.chat, template, skill, merged, material.limits, desk.screen, scope)
    harvest, silent = _counted(harvest, "ranking", choice.asked)
    if silent is not None:
        return nothing(*silent, harvest)
    patched = apply_edits(skill.text, choice.edits, material.limits, screen=desk.screen)
    reports = (
        *patched.reports,
        *choice.left_out,
        *(
            EditReport(edit=edit, status="over_budget", detail="no defect stands behind it")
            for edit in merge_edits(harvest.unbacked, names, similarity)
        ),
    )
    appendix = await _appendix(desk, patched.text, harvest)
    harvest, noted = appendix.harvest, appendix.noted
    if appendix.silent is not None:
        return nothing(*appendix.silent, harvest)
    refused_notes = (
        *noted.refused,
        *(RefusedNote(note, "no lapse stands behind it") for note in harvest.idle_notes),
    )
    candidate = Skill(task_type=skill.task_type, text=noted.text)
    why = _objection(material, harvest, candidate, reports)
    if why is not None:
        result = nothing(*why, harvest, reports)
        return msgspec.structs.replace(result, refused_notes=refused_notes)
    proposal = Proposal(
        candidate=candidate,
        reports=reports,
        notes=noted.added,
        editor_calls=harvest.made,
        parse_failures=harvest.parse_failures,
        consolidated=appendix.consolidated,
    )
    return Result(proposal, refused_notes, harvest.failed)


def nothing(
    reason: Reason,
    detail: str,
    harvest: Harvest | None = None,
    reports: Sequence[EditReport] = (),
) -> Result:
    """No candidate, and why."""
    reply = NoProposal(
        reason=reason,
        detail=detail,
        reports=tuple(reports),
        editor_calls=harvest.made if harvest else 0,
        parse_failures=harvest.parse_failures if harvest else 0,
    )
    return Result(reply, failed_calls=harvest.failed if harvest else ())


class _Appendix(msgspec.Struct, frozen=True):
    """The text with its notes. silent: the outage that ended the proposal."""

    noted: Noted
    harvest: Harvest
    consolidated: bool = False
    silent: tuple[Reason, str] | None = None


async def _appendix(desk: Desk, text: str, harvest: Harvest) -> _Appendix:
    """Write the new notes, and have all of them compacted where they have become too many.

    While a compaction is asked for, there is room for all that came; if it fails, the notes
    that were there stay, and new ones are added as far as the appendix holds them.
    """
    settings = desk.material.settings

    def write(max_notes: int) -> Noted:
        return write_notes(
            text, harvest.notes, max_notes, desk.screen_note, similarity=settings.similarity
        )

    noted = write(settings.max_notes)
    wide = write(len(notes_of(text)) + settings.consolidate_above + settings.max_notes)
    if not wide.added or len(notes_of(wide.text)) <= settings.consolidate_above:
        return _Appendix(noted, harvest)
    compacted = await consolidate(
        desk.chat,
        desk.templates["consolidate_appendix"],
        wide.text,
        min(settings.consolidate_above, settings.max_notes),
        desk.leak,
        desk.material.request.scope,
    )
    harvest, silent = _counted(harvest, "compaction", compacted.asked, compacted.failure)
    if silent is not None or compacted.failure:
        return _Appendix(noted, harvest, silent=silent)
    whole = Noted(compacted.text, wide.added, wide.refused)
    return _Appendix(whole, harvest, consolidated=True)


def _counted(
    harvest: Harvest,
    what: str,
    asked: Understood[T] | NotUnderstood | Unreachable | None,
    failure: str = "",
) -> tuple[Harvest, tuple[Reason, str] | None]:
    """With one more conversation counted, and the outage that it ended in, if it did."""
    silent = None if asked is None or isinstance(asked, Understood) else why_silent(asked)
    detail = silent[1] if silent else failure
    counted = msgspec.structs.replace(
        harvest,
        made=harvest.made + (asked.calls if asked else 0),
        parse_failures=harvest.parse_failures + (asked.parse_failures if asked else 0),
        failed=(*harvest.failed, f"{what}: {detail}") if detail else harvest.failed,
    )
    outage = silent if silent and silent[0] != "editor_failed" else None
    return counted, outage


def _exposed(item: Evidence) -> Exposed:
    submission = submission_of(item.steps)
    read = tuple(step.observation for step in item.steps)
    return Exposed(item.case.question, (*read, submission.evidence) if submission else read)


def _objection(
    material: Material, harvest: Harvest, candidate: Skill, reports: Sequence[EditReport]
) -> tuple[Reason, str] | None:
    """Why the candidate must not be tested; None if it may."""
    current = material.request.skill
    if candidate.text == current.text:
        if not reports and not harvest.notes and not harvest.idle_notes:
            return "no_edits", "the editor proposed nothing"
        before = ("already_rejected", "like_rejected")
        if reports and all(report.status in before for report in reports):
            return "already_rejected", "every edit was rejected before"
        return "none_applied", "no edit and no note changed the skill"
    if candidate.hash in {row.candidate_hash for row in material.rejected}:
        return "already_rejected", "the candidate as a whole was rejected before"
    problems = validate(candidate.text)
    if problems:
        return "none_applied", f"the finished skill is damaged: {'; '.join(problems)}"
    return None
