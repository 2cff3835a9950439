"""The diagnoser on the wire: stored steps in, a recorded diagnosis out.

The only file of the room that knows the runtime. Holds no state.
"""

from __future__ import annotations

from actors.diagnoser.judge import judge
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address, ask_or
from prompts.templates import load_templates
from prompts.trajectory import EmptyTrajectory, read_steps
from protocol.base import Refused
from protocol.diagnoser import Diagnose, Diagnosis
from protocol.ledger import DiagnosisRow, Record, Select, TraceRow, Where, rows_of
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.settings import DiagnoserSettings

__all__ = ["TEMPLATES", "DiagnoserActor"]

TEMPLATES = ("diagnose_answer",)


class DiagnoserActor(Actor):
    """Diagnoses wrong answers; asks llm and ledger.

    Raises FileNotFoundError when it is built and an engine prompt is missing (row P0-1).
    """

    def __init__(self, settings: DiagnoserSettings, llm: Address, ledger: Address) -> None:
        self._settings = settings
        self._llm = llm
        self._ledger = ledger
        self._template = load_templates(TEMPLATES)["diagnose_answer"]

    @handles(Diagnose)
    async def on_diagnose(self, request: Diagnose) -> Diagnosis | Refused:
        """Judge the stored steps of a wrong answer; refused if there are none (row P0-2)."""
        question_id = request.question.question_id
        selected = await self._ledger.ask(
            Select(
                scope=request.scope,
                table=TraceRow.TABLE,
                where=(
                    Where(column="run_key", value=request.run_key),
                    Where(column="question_id", value=question_id),
                ),
            )
        )
        try:
            steps = read_steps(rows_of(TraceRow, selected))
        except EmptyTrajectory:
            return Refused(
                what=f"question {question_id} was answered in {request.run_key!r}, "
                "but none of its steps is stored",
                remedy="the rollout must be repeated: there is nothing to diagnose",
            )
        diagnosis = await judge(
            self._chat, self._template, request, steps, self._settings.max_trace_chars
        )
        row = DiagnosisRow(
            run_key=request.run_key,
            question_id=question_id,
            error_type=diagnosis.error_type,
            subtype=diagnosis.subtype,
            cause=diagnosis.cause,
            degraded=diagnosis.degraded,
            finding=diagnosis.finding,
        )
        await self._ledger.ask(Record(scope=request.scope, rows=(row,)))
        return diagnosis

    async def _chat(self, chat: Chat) -> ChatAnswer | ChatFailed:
        return await ask_or(self._llm, chat, lambda failure: chat.crashed(str(failure)))
