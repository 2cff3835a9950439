"""The evolver on the wire: reads what a proposal needs, asks the editor, keeps every edit.

The only file of the room that knows the runtime. Holds no state: what was rejected lies
in the ledger, what is current comes with the request.
"""

from __future__ import annotations

import msgspec
import structlog

from actors.evolver.prompt import Evidence, Kind
from actors.evolver.propose import Material, propose
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address, ask_or
from prompts.templates import load_templates
from prompts.trajectory import EmptyTrajectory, read_steps
from protocol.evolver import Case, Edit, NoProposal, Proposal, Propose
from protocol.ledger import EditRow, Record, RejectedRow, Select, TraceRow, Where, rows_of
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.settings import EvolverSettings

__all__ = ["TEMPLATES", "EvolverActor"]

TEMPLATES = ("evolve_skill",)
_log = structlog.stdlib.get_logger(__name__)


class EvolverActor(Actor):
    """Proposes candidates; asks llm and ledger.

    Raises FileNotFoundError when it is built and an engine prompt is missing (row P0-1).
    """

    def __init__(self, settings: EvolverSettings, llm: Address, ledger: Address) -> None:
        self._settings = settings
        self._llm = llm
        self._ledger = ledger
        self._template = load_templates(TEMPLATES)["evolve_skill"]

    @handles(Propose)
    async def on_propose(self, request: Propose) -> Proposal | NoProposal:
        """Propose a candidate, and record every edit with what became of it."""
        evidence = [await self._evidence(request, case, "defect") for case in request.defects]
        evidence += [await self._evidence(request, case, "lapse") for case in request.lapses]
        selected = await self._ledger.ask(
            Select(
                scope=request.scope,
                table=RejectedRow.TABLE,
                where=(Where(column="task_type", value=request.skill.task_type),),
            )
        )
        material = Material(
            request=request,
            evidence=tuple(evidence),
            rejected=rows_of(RejectedRow, selected),
            settings=self._settings,
        )
        result = await propose(self._chat, self._template, material)
        for failure in result.failed_calls:
            _log.warning("evolver.call_failed", detail=failure)
        for refused in result.refused_notes:
            _log.info("evolver.note_refused", note=refused.note, why=refused.why)
        await self._record(request, result.reply)
        return result.reply

    async def _chat(self, chat: Chat) -> ChatAnswer | ChatFailed:
        return await ask_or(self._llm, chat, lambda failure: chat.crashed(str(failure)))

    async def _evidence(self, request: Propose, case: Case, kind: Kind) -> Evidence:
        """A case with its steps. Raises EmptyTrajectory: it was diagnosed, so it has some."""
        question_id = case.question.question_id
        selected = await self._ledger.ask(
            Select(
                scope=request.scope,
                table=TraceRow.TABLE,
                where=(
                    Where(column="run_key", value=case.run_key),
                    Where(column="question_id", value=question_id),
                ),
            )
        )
        try:
            return Evidence(case, kind, read_steps(rows_of(TraceRow, selected)))
        except EmptyTrajectory as error:
            raise EmptyTrajectory(f"{question_id} in {case.run_key}: {error}") from error

    async def _record(self, request: Propose, reply: Proposal | NoProposal) -> None:
        notes = reply.notes if isinstance(reply, Proposal) else ()
        edits = [
            *((r.edit, r.edit.op, r.status, r.detail) for r in reply.reports),
            *((_as_edit(note), "note", "applied", "appendix") for note in notes),
        ]
        rows = tuple(
            EditRow(
                run_key=request.run_key,
                position=position,
                task_type=request.skill.task_type,
                op=op,
                target=edit.target,
                content=edit.content,
                support=msgspec.json.encode(edit.support).decode("utf-8"),
                reason=edit.reason,
                status=status,
                detail=detail,
            )
            for position, (edit, op, status, detail) in enumerate(edits)
        )
        if rows:
            await self._ledger.ask(Record(scope=request.scope, rows=rows))


def _as_edit(note: str) -> Edit:
    """A note in the columns of an edit."""
    return Edit(op="append", target="", content=note, support=(), reason="lapse")
