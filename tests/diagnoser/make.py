"""Builders for the room's tests."""

from __future__ import annotations

import msgspec

from protocol.dataset import Question
from protocol.diagnoser import Diagnose
from protocol.documents import Skill
from protocol.llm import ChatAnswer, ChatFailed, Finish, Usage
from protocol.rows import DiagnosisRow, OutcomeRow, TraceRow
from protocol.settings import DiagnoserSettings

__all__ = [
    "QUESTION",
    "REQUEST",
    "RULE",
    "SETTINGS",
    "answer",
    "call",
    "diagnosed",
    "failed",
    "outcome",
    "question",
    "submit",
    "verdict",
]

RULE = "Look twice."
SETTINGS = DiagnoserSettings(
    concurrency=2, max_degraded_share=0.5, max_trace_chars=2000, max_case_chars=600
)

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
    skill=Skill(task_type="Order", text=f"---\nname: order\n---\n- {RULE}\n"),
    letter="C",
)


def question(question_id: str = "q-7-1", task_type: str = "Order") -> Question:
    """The same question under another id, in another class."""
    return msgspec.structs.replace(QUESTION, question_id=question_id, task_type=task_type)


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


def outcome(**changes: object) -> OutcomeRow:
    """A stored outcome: wrong, with the letter C."""
    row = OutcomeRow(
        run_key="e1/order/s1",
        question_id="q-7-1",
        video_id="v1",
        task_type="Order",
        outcome="wrong",
        letter="C",
        submitted="C",
        confidence=0.9,
        stop="submitted",
        missing_kind=None,
        detail="",
        n_steps=2,
        prompt_tokens=20,
        completion_tokens=10,
        seconds=0.2,
        skill_hash="s",
        prompts_version="v1",
        salt="e1",
    )
    return msgspec.structs.replace(row, **changes)


def diagnosed(**changes: object) -> DiagnosisRow:
    """A stored diagnosis: a defect of reasoning."""
    row = DiagnosisRow(
        run_key="e1/order/s1",
        question_id="q-7-1",
        error_type="reasoning_failure",
        subtype="logic_error",
        cause="defect",
        degraded=False,
        finding="The first match was taken for the first event.",
        rule="",
        missed_nodes="[]",
        grades="[]",
    )
    return msgspec.structs.replace(row, **changes)


def verdict(**changes: object) -> str:
    """The judge's reply as text: step 1 read well, no rule for it, a defect."""
    said: dict[str, object] = {
        "calls": [{"step": 1, "kept": "all", "invented": "nothing"}],
        "missed_nodes": [],
        "evidence_sufficient": True,
        "reasoning_failure": "logic_error",
        "finding": "The first match was taken for the first event.",
        "rule": "none",
        "followed": "none",
        "cause": "defect",
    }
    return msgspec.json.encode(said | changes).decode()


def answer(text: str, finish: Finish = "stop") -> ChatAnswer:
    """A complete answer of the judge."""
    return ChatAnswer(text=text, finish=finish, usage=Usage(), endpoint="j", cached=False)


def failed() -> ChatFailed:
    """A chat that failed."""
    return ChatFailed(kind="breaker_open", fatal=False, detail="")
