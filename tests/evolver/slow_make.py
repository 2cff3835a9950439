"""Builders for the tests of the slow update: compared questions, packs, a ledger in memory."""

from __future__ import annotations

import json

import msgspec

from prompts.trajectory import read_steps
from protocol.base import Request
from protocol.dataset import Question
from protocol.diagnoser import CaseGroup, Habit, PackCase, SystemPack, ToolPack, ToolSpan
from protocol.documents import Document
from protocol.evolver import Edit
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Chat, ChatAnswer
from protocol.rollout import Step
from protocol.rows import EditRow, RejectedRow, TraceRow
from protocol.slow import SYSTEM, Change, Compared, EvolvePrompt
from tests.evolver.make import answer, edit, question, trace
from tests.support.fakes import FakeAddress

__all__ = [
    "AFTER",
    "BEFORE",
    "CHECK",
    "IDS",
    "SYSTEM_DOCUMENT",
    "SYSTEM_TEXT",
    "TOOL_DOCUMENT",
    "TOOL_TEXT",
    "Ledger",
    "compared",
    "edits_reply",
    "llm",
    "momentum_reply",
    "pack_case",
    "prompt_request",
    "questions_of",
    "rejected_row",
    "span",
    "steps",
    "system_pack",
    "tool_pack",
    "traces",
]

BEFORE, AFTER = "e1/slow/before", "e1/slow/after"
SYSTEM_TEXT = (
    "# Answering\n\n## Capability\n\nYou answer questions.\n\n## Output format\n\n"
    "One JSON object.\n\n### Fields\n\n- `thought`\n\n## Video tree\n\n- Level 1 nodes are scenes."
    "\n\n## How to work\n\n- Name the fact that you look for.\n- Stop when one option is proved.\n"
)
TOOL_TEXT = (
    "# Tool: view_node\n\n## Input\n\n- `node_id`: an id.\n\n## Output\n\nThe whole card.\n\n"
    "## Advice\n\n- Go down where the fact must be.\n- Copy ids.\n"
)

SYSTEM_DOCUMENT = Document(name=SYSTEM, text=SYSTEM_TEXT)
TOOL_DOCUMENT = Document(name="view_node", text=TOOL_TEXT)
IDS = ("q-7-1", "q-8-1", "q-9-1")
"""The questions of a pack."""
CHECK = edit("append", "", "- Hold the answer against every option.", "q-7-1")
"""A sound edit of either document."""


def compared(question_id: str = "q-7-1", change: Change = "regressed") -> Compared:
    """A question that was answered under both packages."""
    return Compared(
        question=question(question_id), change=change, before_key=BEFORE, after_key=AFTER
    )


def traces(
    question_id: str = "q-7-1", observation: str = "A lamp is lit at dusk."
) -> list[TraceRow]:
    """Both attempts as the ledger has them: a look, and an answer."""
    look = {"tool": "view_node", "arguments": '{"node_id": "v_L1_1"}', "observation": observation}
    return [
        row
        for key in (BEFORE, AFTER)
        for row in (
            trace(question_id, 1, run_key=key, thought="I open the first scene.", **look),
            trace(question_id, 2, run_key=key),
        )
    ]


def steps(*rows: TraceRow) -> tuple[Step, ...]:
    """Rows as steps; without rows, those of one attempt."""
    return read_steps(rows or [row for row in traces() if row.run_key == BEFORE])


def momentum_reply(*lines: str) -> str:
    """The editor's reply as text."""
    return json.dumps({"reasoning": "The section was followed.", "momentum": lines})


def edits_reply(*edits: Edit) -> str:
    """The reply of a prompt's editor as text."""
    names = ("op", "target", "content", "support", "reason")
    plain = [{name: getattr(edit, name) for name in names} for edit in edits]
    return json.dumps({"suggestions": [], "edits": plain})


def pack_case(question_id: str = "q-7-1", trace_text: str = "Step 1\nCall: view_node") -> PackCase:
    """A wrong answer as the diagnoser packs it."""
    return PackCase(
        run_key="e1/order/s1/rollout",
        question_id=question_id,
        task_type="Order",
        question="What happens first?",
        options=(),
        right=False,
        reason="submitted after 1 calls, wrong",
        error_type="search_failure",
        subtype=None,
        cause="defect",
        degraded=False,
        finding="It stopped at the first hit.",
        rule="",
        facts="calls: 1",
        trace=trace_text,
    )


def system_pack(*cases: PackCase, habit: Habit = "early_submit") -> SystemPack:
    """A pack with one habit; three cases unless they are given."""
    chosen = cases or tuple(pack_case(f"q-{n}-1") for n in (7, 8, 9))
    groups = (
        CaseGroup(habit=habit, total=len(chosen), cases=chosen),
        CaseGroup(habit="no_answer", total=1, cases=()),
    )
    return SystemPack(answered=20, right=12, groups=groups)


def span(question_id: str = "q-7-1", observation: str = "The card of the scene.") -> ToolSpan:
    """A call that went badly."""
    return ToolSpan(
        run_key="e1/order/s1/rollout",
        question_id=question_id,
        task_type="Order",
        step=1,
        question="What happens first?",
        reason="most of what mattered was lost",
        arguments='{"node_id": "v_L1_1"}',
        observation=observation,
        follows="Now I know.",
        completeness=0.2,
        hallucination=None,
    )


def tool_pack(*failing: ToolSpan, good: tuple[ToolSpan, ...] = ()) -> ToolPack:
    """A pack about view_node."""
    return ToolPack(
        tool="view_node",
        calls=9,
        empty=1,
        graded=4,
        completeness=0.5,
        hallucination=None,
        failing=failing,
        good=good,
    )


def rejected_row(
    document: str,
    *,
    edits: tuple[Edit, ...] = (),
    notes: tuple[str, ...] = (),
    hash_: str = "x",
    task_type: str = "",
) -> RejectedRow:
    """A part of a slow candidate that val did not take."""
    return RejectedRow(
        run_key=f"e1/slow/{document}",
        task_type=task_type,
        candidate_hash=hash_,
        edits=msgspec.json.encode(edits).decode(),
        notes=json.dumps(notes),
        verdict="dropped",
        e_value=0.25,
        wins=1,
        losses=4,
        document=document,
    )


class Ledger:
    """Keeps rows, answers selections by equality, remembers what was recorded."""

    def __init__(self, *rows: TraceRow | RejectedRow) -> None:
        self.rows = list(rows)
        self.recorded: list[EditRow] = []
        self.address = FakeAddress("ledger", self._answer)

    async def _answer(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            chosen = [
                row
                for row in self.rows
                if request.table == row.TABLE
                and all(getattr(row, where.column) == where.value for where in request.where)
            ]
            return Selected(rows=tuple(chosen))
        assert isinstance(request, Record)
        self.recorded += [row for row in request.rows if isinstance(row, EditRow)]
        return Recorded(rows=len(request.rows))


def questions_of(*ids: str) -> tuple[Question, ...]:
    """Questions by id."""
    return tuple(question(one) for one in ids)


def llm(*replies: str) -> FakeAddress:
    """A chat client that gives these answers in turn."""
    waiting = list(replies)

    async def respond(sent: Request[object]) -> ChatAnswer:
        assert isinstance(sent, Chat)
        return answer(waiting.pop(0))

    return FakeAddress("llm", respond)


def prompt_request(
    document: Document = SYSTEM_DOCUMENT,
    pack: SystemPack | ToolPack | None = None,
    questions: tuple[Question, ...] | None = None,
) -> EvolvePrompt:
    """A request about a prompt; its pack and questions unless they are given."""
    return EvolvePrompt(
        run_key=f"e1/slow/{document.name}",
        document=document,
        pack=pack or (system_pack() if document.name == SYSTEM else tool_pack(span())),
        questions=questions_of(*IDS) if questions is None else questions,
        edit_budget=2,
    )
