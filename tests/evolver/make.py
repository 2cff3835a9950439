"""Builders for the room's tests: skills, questions, cases, rows, scripted editors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.patch import Limits
from protocol.dataset import Question
from protocol.diagnoser import Cause, Diagnosis
from protocol.documents import Skill
from protocol.evolver import Case, Edit, Op
from protocol.llm import Chat, ChatAnswer, ChatFailed, FailureKind, Finish, Usage
from protocol.rows import RejectedRow, TraceRow
from protocol.settings import EvolverSettings

__all__ = [
    "APPENDIX_BLOCK",
    "BODY",
    "FRONT",
    "MOMENTUM_BLOCK",
    "ROOMY",
    "SKILL",
    "Editor",
    "answer",
    "case",
    "edit",
    "failed",
    "question",
    "rejected",
    "reply",
    "settings",
    "skill",
    "trace",
]

FRONT = "---\nname: order\ndescription: Questions about order.\ntask_type: Order\n---"
BODY = (
    "\n# Order\n\n## When to use\n- Questions that ask what comes first.\n\n## Steps\n"
    "- Search for the event named in the question.\n- Open the scene that holds it.\n\n"
    "## Checks\n- Look twice.\n- Look twice at the subtitles.\n\n## Pitfalls\n- None yet.\n\n"
)
APPENDIX_BLOCK = "<!-- APPENDIX_START -->\n- Read every option.\n<!-- APPENDIX_END -->\n"
MOMENTUM_BLOCK = "\n<!-- MOMENTUM_START -->\nKeep comparing start times.\n<!-- MOMENTUM_END -->\n"
SKILL = FRONT + BODY + APPENDIX_BLOCK + MOMENTUM_BLOCK
ROOMY = Limits(edits=100, max_chars=100_000, max_growth=100.0)


def edit(op: Op, target: str = "", content: str = "", *support: str) -> Edit:
    """An edit; support defaults to none."""
    return Edit(op=op, target=target, content=content, support=support, reason="")


def settings(**changes: int | float) -> EvolverSettings:
    """Settings of a small run."""
    base = EvolverSettings(
        concurrency=2,
        minibatch=8,
        edit_budget_start=4,
        edit_budget_end=2,
        schedule="constant",
        max_skill_chars=8000,
        max_growth=2.0,
        max_notes=5,
        consolidate_above=5,
        max_momentum_chars=1500,
        max_prompt_chars=12000,
        prompt_edit_budget=2,
        similarity=0.85,
        max_trace_chars=1000,
    )
    return msgspec.structs.replace(base, **changes)


def question(question_id: str = "q-7-1") -> Question:
    """A question whose gold option has more than four words."""
    return Question(
        question_id=question_id,
        video_id="lighthouse",
        task_type="Order",
        question="What happens first?",
        options=(
            "The keeper lights the lamp.",
            "A boat enters the harbour slowly.",
            "Rain.",
            "Two gulls fight over bread.",
        ),
        answer="B",
    )


def case(question_id: str = "q-7-1", cause: Cause = "defect") -> Case:
    """A wrong answer with its diagnosis."""
    return Case(
        run_key="e1/order/s1",
        question=question(question_id),
        diagnosis=Diagnosis(
            question_id=question_id,
            error_type="reasoning_failure",
            subtype="logic_error",
            cause=cause,
            degraded=False,
            finding="The first match was taken for the first event.",
        ),
    )


def trace(question_id: str = "q-7-1", step: int = 1, **changes: str | None) -> TraceRow:
    """A stored step; by default a submitted answer."""
    row = TraceRow(
        run_key="e1/order/s1",
        question_id=question_id,
        step=step,
        thought="I have seen enough.",
        tool="submit_answer",
        arguments='{"answer": "C", "confidence": 0.9, "evidence": "It rains in the first scene."}',
        observation="",
        raw="{}",
        node_ids="[]",
        prompt_tokens=10,
        completion_tokens=5,
        seconds=0.1,
    )
    return msgspec.structs.replace(row, **changes)


def rejected(
    edits: Sequence[Edit],
    run_key: str = "e1/order/s0",
    hash_: str = "x",
    notes: Sequence[str] = (),
) -> RejectedRow:
    """A row of the rejected ledger."""
    return RejectedRow(
        run_key=run_key,
        task_type="Order",
        candidate_hash=hash_,
        edits=msgspec.json.encode(edits).decode(),
        notes=msgspec.json.encode(notes).decode(),
        verdict="reject",
        e_value=0.25,
        wins=1,
        losses=4,
    )


def answer(text: str, finish: Finish = "stop") -> ChatAnswer:
    """A complete answer of the editor."""
    return ChatAnswer(text=text, finish=finish, usage=Usage(), endpoint="e", cached=False)


def failed(kind: FailureKind = "timeout") -> ChatFailed:
    """A chat that failed."""
    return ChatFailed(kind=kind, fatal=False, detail="no answer")


def reply(edits: Sequence[Edit] = (), notes: Sequence[str] = ()) -> str:
    """The editor's reply as text."""
    plain = [
        {name: getattr(item, name) for name in ("op", "target", "content", "support", "reason")}
        for item in edits
    ]
    return msgspec.json.encode({"suggestions": [], "edits": plain, "notes": notes}).decode()


class Editor:
    """An editor that answers from a function of the prompt; keeps the chats."""

    def __init__(self, respond: Callable[[Chat], ChatAnswer | ChatFailed]) -> None:
        self.chats: list[Chat] = []
        self._respond = respond

    async def __call__(self, chat: Chat) -> ChatAnswer | ChatFailed:
        """Answer."""
        self.chats.append(chat)
        return self._respond(chat)

    @staticmethod
    def scripted(*answers: ChatAnswer | ChatFailed) -> Editor:
        """An editor that gives these answers in turn."""
        waiting = list(answers)
        return Editor(lambda _: waiting.pop(0))


def skill(text: str = SKILL) -> Skill:
    """The class's skill."""
    return Skill(task_type="Order", text=text)
