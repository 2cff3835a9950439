"""An epoch's edits of the system prompt and the tool prompts, under the factorial gate.

Proposed once all classes have their own, and before the first pair of the epoch: from the case
packs of the editor's draws of all classes, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from actors.trainer.epoch import Drained
from actors.trainer.factorial_rows import as_skill, new_prompt_rows, step_row
from actors.trainer.peers import Peers
from actors.trainer.score import score
from actors.trainer.step import editor_away
from protocol.base import Refused, Scope
from protocol.dataset import Question, Unit
from protocol.diagnoser import CasePacks, GetCasePacks
from protocol.documents import PackageTexts
from protocol.evolver import Edit, NoProposal
from protocol.factorial import ClassFold
from protocol.factorial_prompts import PromptEdit, ProposePromptEdits
from protocol.factorial_rows import PROMPTS, FactorialEditRow
from protocol.keys import step_key
from protocol.ledger import DeleteRun, Record, Select, Where, rows_of
from protocol.rows import DocumentRow, StepRow
from protocol.settings import Config

__all__ = ["propose_prompts"]

log = structlog.get_logger("trainer")


async def propose_prompts(
    peers: Peers,
    config: Config,
    epoch: int,
    texts: PackageTexts,
    folds: Sequence[ClassFold],
    units: Mapping[str, Sequence[Unit]],
) -> Drained | Refused | None:
    """The step's row and its edits are written together; nothing is done where they are there.

    A run that was begun before prompts were tested has no sentinel of theirs, and no edits.
    """
    key, scope = step_key(epoch, PROMPTS, 1), Scope(epoch=epoch)
    steps = await peers.ledger.ask(
        Select(table=StepRow.TABLE, where=(Where(column="run_key", value=key),))
    )
    known = await _known(peers)
    if rows_of(StepRow, steps) or not known:
        return None
    if peers.draining():
        return Drained()
    await peers.ledger.ask(DeleteRun(scope=scope, run_key=key))
    questions = _shown(folds, units)
    packs = await _packs(peers, scope, epoch, texts, folds, questions)
    if isinstance(packs, Refused):
        return packs
    earlier = [row for row in known if not row.sentinel]
    proposal = await peers.evolver.ask(
        ProposePromptEdits(
            scope=scope,
            run_key=f"{key}/proposal",
            prompts=texts.prompts,
            earlier=tuple(_prompt_edit(row) for row in earlier),
            packs=packs,
            questions=questions,
            n_edits=config.gate.candidates,
        )
    )
    if isinstance(proposal, NoProposal) and (refused := editor_away(key, proposal)):
        return refused
    base, nobody = as_skill(texts.prompts), score([])
    row = step_row(epoch, config.gate.candidates, base, nobody, (), proposal)
    new = () if isinstance(proposal, NoProposal) else proposal.new
    edits = () if isinstance(proposal, NoProposal) else new_prompt_rows(earlier, proposal, row)
    document = DocumentRow(hash=base.hash, task_type="", text=base.text)
    await peers.ledger.ask(Record(scope=scope, rows=(row, document, *edits)))
    log.info(
        "factorial.prompts",
        epoch=epoch,
        result=row.result,
        edits=len(new),
        documents=sorted({one.document for one in new}),
        editor_calls=row.editor_calls,
        unreadable=row.parse_failures,
    )
    return None


async def _known(peers: Peers) -> list[FactorialEditRow]:
    """The edits of the prompts and their sentinel, in canonical order."""
    where = (Where(column="task_type", value=PROMPTS),)
    found = await peers.ledger.ask(Select(table=FactorialEditRow.TABLE, where=where))
    return sorted(rows_of(FactorialEditRow, found), key=lambda row: row.position)


def _prompt_edit(row: FactorialEditRow) -> PromptEdit:
    return PromptEdit(document=row.document, edit=msgspec.json.decode(row.edit, type=Edit))


def _shown(folds: Sequence[ClassFold], units: Mapping[str, Sequence[Unit]]) -> tuple[Question, ...]:
    """The questions of the design folds of all classes."""
    return tuple(
        question
        for fold in folds
        for unit in units[fold.task_type]
        if unit.unit_id in fold.design
        for question in unit.questions
    )


async def _packs(
    peers: Peers,
    scope: Scope,
    epoch: int,
    texts: PackageTexts,
    folds: Sequence[ClassFold],
    questions: tuple[Question, ...],
) -> CasePacks | Refused:
    """The cases of the epoch's editor draws."""
    return await peers.diagnoser.ask(
        GetCasePacks(
            scope=scope,
            run_keys=tuple(f"{step_key(epoch, fold.task_type, 1)}/rollout" for fold in folds),
            questions=questions,
            tools=tuple(tool.name for tool in texts.prompts.tools),
        )
    )
