"""Builders for the room's tests."""

from __future__ import annotations

import msgspec

from protocol.dataset import Question
from protocol.diagnoser import Diagnose
from protocol.documents import Skill
from protocol.ledger import TraceRow
from protocol.llm import ChatAnswer, ChatFailed, Finish, Usage

__all__ = ["QUESTION", "REQUEST", "answer", "call", "failed", "submit", "verdict"]

QUESTION = Question(
    question_id="q-7-1",
    video_id="v1",
    task_type="Order",
    question="What happens first?\nIn the harbour.",
    options=("The lamp is lit.", "A boat arrives.", "Rain."),
    answer="B",
)
REQUEST = Diagnose(
    run_key="e1/order/s1",
    question=QUESTION,
    skill=Skill(task_type="Order", text="---\nname: order\n---\n- Look twice.\n"),
    letter="C",
)


def call(
    step: int, tool: str | None, arguments: str = "{}", node_ids: str = "[]", **changes: str
) -> TraceRow:
    """A stored step."""
    row = TraceRow(
        run_key="e1/order/s1",
        question_id="q-7-1",
        step=step,
        thought="",
        tool=tool,
        arguments=arguments,
        observation="",
        raw="",
        node_ids=node_ids,
        prompt_tokens=10,
        completion_tokens=5,
        seconds=0.1,
    )
    return msgspec.structs.replace(row, **changes)


def submit(step: int, confidence: float = 0.9) -> TraceRow:
    """The last step."""
    return call(step, "submit_answer", f'{{"answer": "C", "confidence": {confidence}}}')


def verdict(**changes: object) -> str:
    """The judge's reply as text."""
    said: dict[str, object] = {
        "completeness": 0.9,
        "hallucination": 0.0,
        "missed_nodes": [],
        "evidence_sufficient": True,
        "reasoning_failure": "logic_error",
        "cause": "defect",
        "finding": "The first match was taken for the first event.",
    }
    return msgspec.json.encode(said | changes).decode()


def answer(text: str, finish: Finish = "stop") -> ChatAnswer:
    """A complete answer of the judge."""
    return ChatAnswer(text=text, finish=finish, usage=Usage(), endpoint="j", cached=False)


def failed() -> ChatFailed:
    """A chat that failed."""
    return ChatFailed(kind="breaker_open", fatal=False, detail="")
