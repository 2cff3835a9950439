"""What the ledger keeps of a document's edits: one row each, refused ones too. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from protocol.evolver import EditReport
from protocol.rows import EditRow

__all__ = ["edit_row", "report_rows"]


def edit_row(
    report: EditReport,
    run_key: str,
    position: int,
    *,
    task_type: str = "",
    op: str | None = None,
    document: str = "skill",
) -> EditRow:
    """One row. op: what it is called in the ledger; None: as the edit says."""
    edit = report.edit
    return EditRow(
        run_key=run_key,
        position=position,
        task_type=task_type,
        op=op or edit.op,
        target=edit.target,
        content=edit.content,
        support=msgspec.json.encode(edit.support).decode("utf-8"),
        reason=edit.reason,
        status=report.status,
        detail=report.detail,
        document=document,
    )


def report_rows(
    reports: Iterable[EditReport],
    run_key: str,
    *,
    task_type: str = "",
    op: str | None = None,
    document: str = "skill",
) -> tuple[EditRow, ...]:
    """A row per report, in their order."""
    return tuple(
        edit_row(report, run_key, position, task_type=task_type, op=op, document=document)
        for position, report in enumerate(reports)
    )
