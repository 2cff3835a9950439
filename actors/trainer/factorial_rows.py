"""What a training under the factorial gate writes: its steps, its edits, what it adopts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.trainer.score import Score
from protocol.dataset import Question
from protocol.diagnoser import Diagnosis, route
from protocol.documents import Skill
from protocol.evolver import Edit, NoProposal
from protocol.factorial import ProposedEdits
from protocol.factorial_rows import FactorialEditRow
from protocol.keys import slug, step_key
from protocol.rollout import Answered, Missed
from protocol.rows import AnyRow, DocumentRow, EditRow, OutcomeRow, StepRow
from protocol.slow import Compared, change_of

__all__ = ["adoption_rows", "compared_draws", "draw_key", "new_rows", "step_row"]


def draw_key(epoch: int, task_type: str) -> str:
    """The pass of a class's editor draws in an epoch."""
    return f"{step_key(epoch, task_type, 1)}/rollout"


def compared_draws(
    epoch: int,
    before: Sequence[OutcomeRow],
    questions: Sequence[Question],
    results: Sequence[Answered | Missed],
) -> tuple[Compared, ...]:
    """The questions that were answered in the epoch before and in this one, in their order.

    before: of the editor draws of the epoch before; results: of this one's, one per question.
    """
    right = {row.question_id: row.outcome == "right" for row in before if row.outcome != "missing"}
    return tuple(
        Compared(
            question=question,
            change=change_of(before=right[question.question_id], after=result.right),
            before_key=draw_key(epoch - 1, question.task_type),
            after_key=draw_key(epoch, question.task_type),
        )
        for question, result in zip(questions, results, strict=True)
        if isinstance(result, Answered) and question.question_id in right
    )


def step_row(
    epoch: int,
    edit_budget: int,
    base: Skill,
    counted: Score,
    diagnoses: Sequence[Diagnosis],
    proposal: ProposedEdits | NoProposal,
) -> StepRow:
    """A class's epoch; its document stays what it was."""
    defects, lapses = route(diagnoses)
    return StepRow(
        run_key=step_key(epoch, base.task_type, 1),
        epoch=epoch,
        step=1,
        task_type=base.task_type,
        skill_before=base.hash,
        skill_after=base.hash,
        planned=counted.planned,
        right=counted.right,
        missing=counted.missing,
        defects=len(defects),
        lapses=len(lapses),
        degraded=sum(diagnosis.degraded for diagnosis in diagnoses),
        result=proposal.reason if isinstance(proposal, NoProposal) else "proposed",
        edit_budget=edit_budget,
        editor_calls=proposal.editor_calls,
        parse_failures=proposal.parse_failures,
    )


def new_rows(
    earlier: Sequence[FactorialEditRow], proposal: ProposedEdits, epoch: int, step: StepRow
) -> tuple[FactorialEditRow, ...]:
    """The new edits, and the earlier ones whose group has changed.

    A group is called after its first edit in canonical order: edits that a new one joins are one
    group from now on, dropped ones with them.
    """
    born = [
        FactorialEditRow(
            edit_id=f"e{epoch}/{slug(step.task_type)}/{nth}",
            task_type=step.task_type,
            born=epoch,
            position=len(earlier) + nth,
            edit=msgspec.json.encode(edit).decode(),
            group_id=None,
            sentinel=False,
            proposed_by=step.run_key,
        )
        for nth, edit in enumerate(proposal.new, start=1)
    ]
    rows = (*earlier, *born)
    label = {place: rows[min(group)].edit_id for group in proposal.groups for place in group}
    grouped = [
        msgspec.structs.replace(row, group_id=label.get(place)) for place, row in enumerate(rows)
    ]
    known = set(earlier)
    return tuple(row for row in grouped if row not in known)


def adoption_rows(
    epoch: int, edit_budget: int, base: Skill, skill: Skill, adopted: Sequence[FactorialEditRow]
) -> tuple[AnyRow, ...]:
    """The step in which a class adopts its edits, the edits themselves, and both texts."""
    key = step_key(epoch, base.task_type, 2)
    step = StepRow(
        run_key=key,
        epoch=epoch,
        step=2,
        task_type=base.task_type,
        skill_before=base.hash,
        skill_after=skill.hash,
        planned=0,
        right=0,
        missing=0,
        defects=0,
        lapses=0,
        degraded=0,
        result="accept",
        edit_budget=edit_budget,
        editor_calls=0,
        parse_failures=0,
    )
    edits = []
    for position, row in enumerate(adopted):
        edit = msgspec.json.decode(row.edit, type=Edit)
        edits.append(
            EditRow(
                run_key=f"{key}/adopted",
                position=position,
                task_type=base.task_type,
                op=edit.op,
                target=edit.target,
                content=edit.content,
                support=msgspec.json.encode(edit.support).decode(),
                reason=edit.reason,
                status="applied",
                detail=f"adopted: {row.edit_id}, proposed in {row.proposed_by}",
            )
        )
    texts = [
        DocumentRow(hash=text.hash, task_type=text.task_type, text=text.text)
        for text in (base, skill)
    ]
    return (step, *edits, *texts)
