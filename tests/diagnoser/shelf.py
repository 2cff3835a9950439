"""Stored answers for the tests of case packs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from actors.diagnoser.cases import gather
from actors.diagnoser.packs import case_packs
from protocol.dataset import Question
from protocol.diagnoser import CallGrade, CasePacks, PackCase, ToolPack, ToolSpan
from protocol.rows import DiagnosisRow, OutcomeRow, TraceRow
from tests.diagnoser.make import call, outcome, question, submit

__all__ = ["LOOK", "TOOLS", "Shelf", "graded", "names", "tool"]

TOOLS = ("view_node", "search_similar", "submit_answer")
LOOK = '{"node_id": "v1_L1_000"}'


class Shelf:
    """Stored rows under way."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.outcomes: list[OutcomeRow] = []
        self.traces: list[TraceRow] = []
        self.diagnoses: list[DiagnosisRow] = []

    def add(
        self,
        name: str,
        *,
        task_type: str = "Order",
        run_key: str = "e1/order/s1",
        rows: Sequence[TraceRow] | None = None,
        judged: DiagnosisRow | None = None,
        **changes: object,
    ) -> Shelf:
        """One answer: by default wrong after one look."""
        at = {"run_key": run_key, "question_id": name}
        self.questions[name] = question(name, task_type)
        self.outcomes.append(outcome(**at, task_type=task_type, **changes))
        if rows is None:
            rows = (call(1, "view_node", LOOK, '["v1_L1_000"]'), submit(2))
        self.traces += [msgspec.structs.replace(row, **at) for row in rows]
        if judged is not None:
            self.diagnoses.append(msgspec.structs.replace(judged, **at))
        return self

    def packs(
        self,
        max_chars: int = 600,
        max_calls: int | None = 8,
        tools: Sequence[str] = TOOLS,
    ) -> CasePacks:
        """What the editors get."""
        gathered = gather(
            self.questions.values(),
            self.outcomes,
            self.traces,
            self.diagnoses,
            max_calls=max_calls,
        )
        return case_packs(gathered, tools, max_chars=max_chars)


def names(cases: Iterable[PackCase | ToolSpan]) -> list[str]:
    """Their question ids."""
    return [case.question_id for case in cases]


def tool(packs: CasePacks, name: str) -> ToolPack:
    """The pack of one tool."""
    return next(pack for pack in packs.tools if pack.tool == name)


def graded(*pairs: tuple[int, float, float]) -> str:
    """Grades as they are stored: step, completeness, hallucination."""
    grades = [
        CallGrade(step=step, completeness=completeness, hallucination=hallucination)
        for step, completeness, hallucination in pairs
    ]
    return msgspec.json.encode(grades).decode()
