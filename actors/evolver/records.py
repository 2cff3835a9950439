"""What the ledger keeps of a skill's proposal: edits, then notes, then the compaction. Pure."""

from __future__ import annotations

from actors.evolver.regions import notes_of
from actors.evolver.rows import edit_row
from protocol.evolver import Edit, EditReport, NoProposal, Proposal, Propose
from protocol.rows import EditRow

__all__ = ["proposal_rows"]


def proposal_rows(request: Propose, reply: Proposal | NoProposal) -> tuple[EditRow, ...]:
    """A row per report in the order of application, per note, and one for a compacted appendix.

    The compaction's target holds the notes of the skill before, its content those after, one a
    line.
    """
    rows: list[tuple[EditReport, str]] = [(report, report.edit.op) for report in reply.reports]
    if isinstance(reply, Proposal):
        detail = "appendix, then compacted" if reply.consolidated else "appendix"
        rows += [
            (_applied(content=note, reason="lapse", detail=detail), "note") for note in reply.notes
        ]
        if reply.consolidated:
            rows.append((_compaction(request.skill.text, reply), "consolidate"))
    return tuple(
        edit_row(report, request.run_key, position, task_type=request.skill.task_type, op=op)
        for position, (report, op) in enumerate(rows)
    )


def _compaction(text: str, proposal: Proposal) -> EditReport:
    before, after = notes_of(text), notes_of(proposal.candidate.text)
    return _applied(
        target="\n".join(before),
        content="\n".join(after),
        reason="too many notes",
        detail=f"{len(before) + len(proposal.notes)} notes became {len(after)}",
    )


def _applied(*, content: str, reason: str, detail: str, target: str = "") -> EditReport:
    """A writing that is no edit of the body, in the columns of one."""
    edit = Edit(op="append", target=target, content=content, support=(), reason=reason)
    return EditReport(edit=edit, status="applied", detail=detail)
