"""What a training under the factorial gate writes: its steps, its edits, what it adopts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.trainer.score import Score
from protocol.dataset import Question
from protocol.diagnoser import Diagnosis, route
from protocol.documents import Document, Prompts, Skill, text_hash
from protocol.evolver import Edit, NoProposal
from protocol.factorial import ProposedEdits
from protocol.factorial_prompts import (
    ProposedPromptEdits,
    documents_in,
    prompts_text,
    with_documents,
)
from protocol.factorial_rows import PROMPTS, FactorialEditRow
from protocol.keys import slug, step_key
from protocol.rollout import Answered, Missed
from protocol.rows import AnyRow, DocumentRow, EditRow, OutcomeRow, StepRow
from protocol.slow import Compared, change_of

__all__ = [
    "adoption_rows",
    "as_skill",
    "compared_draws",
    "draw_key",
    "new_prompt_rows",
    "new_rows",
    "prompt_adoption_rows",
    "step_row",
]


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
    proposal: ProposedEdits | ProposedPromptEdits | NoProposal,
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
    step = _adopting(epoch, edit_budget, base, skill)
    edits = [
        _adopted(row, f"{step.run_key}/adopted", position) for position, row in enumerate(adopted)
    ]
    texts = [
        DocumentRow(hash=text.hash, task_type=text.task_type, text=text.text)
        for text in (base, skill)
    ]
    return (step, *edits, *texts)


def as_skill(prompts: Prompts) -> Skill:
    """All prompts as one text, for the steps in which they take the place of a class's skill."""
    return Skill(task_type=PROMPTS, text=prompts_text(prompts))


def new_prompt_rows(
    earlier: Sequence[FactorialEditRow], proposal: ProposedPromptEdits, step: StepRow
) -> tuple[FactorialEditRow, ...]:
    """As ``new_rows``, of the prompts' edits."""
    alone = ProposedEdits(
        new=tuple(one.edit for one in proposal.new),
        groups=proposal.groups,
        reports=(),
        editor_calls=proposal.editor_calls,
        parse_failures=proposal.parse_failures,
    )
    names = [row.document for row in earlier] + [one.document for one in proposal.new]
    return tuple(
        msgspec.structs.replace(row, document=names[row.position - 1])
        for row in new_rows(earlier, alone, step.epoch, step)
    )


def prompt_adoption_rows(
    epoch: int,
    edit_budget: int,
    base: Prompts,
    changed: Sequence[Document],
    adopted: Sequence[FactorialEditRow],
) -> tuple[AnyRow, ...]:
    """The step in which the prompts adopt their edits, the edits by document, and all texts."""
    step = _adopting(epoch, edit_budget, as_skill(base), as_skill(with_documents(base, changed)))
    edits = [
        _adopted(row, f"{step.run_key}/adopted/{document.name}", position)
        for document in documents_in(base)
        for position, row in enumerate(row for row in adopted if row.document == document.name)
    ]
    texts = [*(one.text for one in documents_in(base)), *(one.text for one in changed)]
    return (step, *edits, *(_document_row(text) for text in dict.fromkeys(texts)))


def _document_row(text: str) -> DocumentRow:
    return DocumentRow(hash=text_hash(text), task_type="", text=text)


def _adopting(epoch: int, edit_budget: int, base: Skill, skill: Skill) -> StepRow:
    return StepRow(
        run_key=step_key(epoch, base.task_type, 2),
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


def _adopted(row: FactorialEditRow, run_key: str, position: int) -> EditRow:
    edit = msgspec.json.decode(row.edit, type=Edit)
    return EditRow(
        run_key=run_key,
        position=position,
        task_type="" if row.task_type == PROMPTS else row.task_type,
        op=edit.op,
        target=edit.target,
        content=edit.content,
        support=msgspec.json.encode(edit.support).decode(),
        reason=edit.reason,
        status="applied",
        detail=f"adopted: {row.edit_id}, proposed in {row.proposed_by}",
        document=row.document,
    )
