"""The diagnoser on the wire: stored steps in, a recorded diagnosis or packs of cases out.

The only file of the room that knows the runtime. Holds no state.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from actors.diagnoser.cases import gather
from actors.diagnoser.judge import brief_of, judge
from actors.diagnoser.packs import case_packs
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address, ask_or
from prompts.templates import load_templates
from prompts.trajectory import EmptyTrajectory, read_steps
from protocol.base import Refused, Scope
from protocol.diagnoser import CasePacks, Diagnose, Diagnosis, GetCasePacks
from protocol.ledger import Record, Select, Where, rows_of
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rows import AnyRow, DiagnosisRow, OutcomeRow, TraceRow
from protocol.settings import DiagnoserSettings

__all__ = ["TEMPLATES", "DiagnoserActor"]

TEMPLATES = ("diagnose_answer",)
_REPEAT = "the rollout must be repeated: there is nothing to diagnose"

T = TypeVar("T", bound=AnyRow)


class DiagnoserActor(Actor):
    """Diagnoses wrong answers and chooses cases; asks llm and ledger.

    max_calls: calls that the agent may make before its answer is due; None: not known, as of
    trajectories that another program made. manual: the agent chooses its skill by itself
    (``agent.skill_routing``); the judge is shown the one that it read.

    Raises FileNotFoundError when it is built and an engine prompt is missing (row P0-1).
    """

    def __init__(
        self,
        settings: DiagnoserSettings,
        llm: Address,
        ledger: Address,
        *,
        max_calls: int | None = None,
        manual: bool = False,
    ) -> None:
        self._settings = settings
        self._llm = llm
        self._ledger = ledger
        self._max_calls = max_calls
        self._manual = manual
        self._template = load_templates(TEMPLATES)["diagnose_answer"]

    @handles(Diagnose)
    async def on_diagnose(self, request: Diagnose) -> Diagnosis | Refused:
        """Judge the stored steps of a wrong answer; refused if there are none (row P0-2)."""
        question_id = request.question.question_id
        traces = await self._rows(TraceRow, request.scope, request.run_key, question_id)
        try:
            steps = read_steps(traces)
        except EmptyTrajectory:
            return Refused(
                what=f"question {question_id} was answered in {request.run_key!r}, "
                "but none of its steps is stored",
                remedy=_REPEAT,
            )
        brief = brief_of(
            self._template,
            request,
            steps,
            max_trace_chars=self._settings.max_trace_chars,
            max_calls=self._max_calls,
            manual=self._manual,
        )
        diagnosis = await judge(self._chat, self._template, request, steps, brief)
        row = _row(request.run_key, diagnosis)
        await self._ledger.ask(Record(scope=request.scope, rows=(row,)))
        return diagnosis

    @handles(GetCasePacks)
    async def on_case_packs(self, request: GetCasePacks) -> CasePacks | Refused:
        """Choose cases among what is stored; refused if a trajectory is missing (row P0-2)."""
        outcomes: list[OutcomeRow] = []
        traces: list[TraceRow] = []
        diagnoses: list[DiagnosisRow] = []
        for run_key in dict.fromkeys(request.run_keys):
            outcomes += await self._rows(OutcomeRow, request.scope, run_key)
            traces += await self._rows(TraceRow, request.scope, run_key)
            diagnoses += await self._rows(DiagnosisRow, request.scope, run_key)
        try:
            gathered = gather(
                request.questions, outcomes, traces, diagnoses, max_calls=self._max_calls
            )
        except EmptyTrajectory as error:
            return Refused(what=f"no case packs: {error}", remedy=_REPEAT)
        return case_packs(gathered, request.tools, max_chars=self._settings.max_case_chars)

    async def _chat(self, chat: Chat) -> ChatAnswer | ChatFailed:
        return await ask_or(self._llm, chat, lambda failure: chat.crashed(str(failure)))

    async def _rows(
        self, kind: type[T], scope: Scope, run_key: str, question_id: str | None = None
    ) -> tuple[T, ...]:
        where = [Where(column="run_key", value=run_key)]
        if question_id is not None:
            where.append(Where(column="question_id", value=question_id))
        selected = await self._ledger.ask(Select(scope=scope, table=kind.TABLE, where=tuple(where)))
        return rows_of(kind, selected)


def _row(run_key: str, diagnosis: Diagnosis) -> DiagnosisRow:
    return DiagnosisRow(
        run_key=run_key,
        question_id=diagnosis.question_id,
        error_type=diagnosis.error_type,
        subtype=diagnosis.subtype,
        cause=diagnosis.cause,
        degraded=diagnosis.degraded,
        finding=diagnosis.finding,
        rule=diagnosis.rule,
        missed_nodes=msgspec.json.encode(diagnosis.missed_nodes).decode("utf-8"),
        grades=msgspec.json.encode(diagnosis.grades).decode("utf-8"),
    )
