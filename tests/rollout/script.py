"""Questions, documents, and a model and tools that follow a script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from actors.rollout.dialect import Request
from actors.rollout.outcome import Described, Lost
from protocol.dataset import Question
from protocol.documents import Document, Prompts, Skill
from protocol.llm import ChatAnswer, ChatMessage, Finish, ToolCall, Usage
from protocol.rollout import Rollout
from protocol.settings import AgentSettings
from protocol.video import Frames, Picture, ToolRefused, TreeText

__all__ = [
    "PROMPTS",
    "QUESTION",
    "SKILL",
    "ScriptedChat",
    "ScriptedTools",
    "call",
    "native",
    "reply",
    "request",
    "settings",
    "submit",
]

QUESTION = Question(
    question_id="SECRET-QUESTION-ID",
    video_id="-v1",
    task_type="Object Recognition",
    question="What is shown?\n(second line)",
    options=("A person walking a dog.", "A red car.", "A bunch of berries.", "A blue umbrella."),
    answer="B",
    domain="SECRET-DOMAIN",
)
SKILL = Skill(
    task_type="Object Recognition",
    text=(
        "---\nname: object-recognition\ndescription: SECRET-FRONT\n"
        "task_type: Object Recognition\n---\n\n# Objects\n\n- Look twice.\n"
    ),
)
PROMPTS = Prompts(
    version="v1",
    system="You answer questions about a video.",
    tools=(
        Document(name="view_node", text="view_node shows a node."),
        Document(name="submit_answer", text="submit_answer ends."),
    ),
)


def settings(**changes: object) -> AgentSettings:
    """The agent of the tests, with what differs."""
    agent = AgentSettings(
        concurrency=4,
        max_steps=4,
        max_parse_failures=3,
        search_k=5,
        time_budget_s=100.0,
        token_budget=None,
        max_prompt_tokens=30_000,
        tool_calls="json",
        skill_routing="oracle",
        vision="none",
    )
    return msgspec.structs.replace(agent, **changes)


def request() -> Rollout:
    return Rollout(
        run_key="e1/object-recognition/s1/rollout",
        question=QUESTION,
        skill=SKILL,
        prompts=PROMPTS,
        salt="seed1/e1",
    )


def call(tool: str, args: object, thought: str = "thinking") -> str:
    return json.dumps({"thought": thought, "action": {"tool": tool, "args": args}})


def submit(answer: object, **more: object) -> str:
    return call("submit_answer", {"answer": answer, "confidence": 0.8, **more})


def reply(
    text: str,
    finish: Finish = "stop",
    seconds: float = 0.0,
    *,
    calls: tuple[ToolCall, ...] = (),
    reasoning: str = "",
    prompt_tokens: int = 100,
) -> ChatAnswer:
    return ChatAnswer(
        text=text,
        finish=finish,
        usage=Usage(prompt_tokens=prompt_tokens, completion_tokens=10),
        endpoint="scripted",
        cached=False,
        seconds=seconds,
        tool_calls=calls,
        reasoning=reasoning,
    )


def native(tool: str, args: object, thought: str = "thinking", call_id: str = "c1") -> ChatAnswer:
    """A reply that calls a tool natively."""
    made = ToolCall(call_id=call_id, name=tool, arguments=json.dumps(args))
    return reply(thought, "tool_calls", calls=(made,))


class ScriptedChat:
    """Replies in order; keeps what it was asked."""

    def __init__(
        self,
        script: Sequence[str | ChatAnswer | Lost],
        takes_s: float = 0,
    ) -> None:
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.requests: list[Request] = []
        self._script: Iterator[str | ChatAnswer | Lost] = iter(script)
        self._takes_s = takes_s

    async def __call__(
        self, messages: tuple[ChatMessage, ...], request: Request
    ) -> ChatAnswer | Lost:
        self.asked.append(messages)
        self.requests.append(request)
        item = next(self._script)
        return reply(item, seconds=self._takes_s) if isinstance(item, str) else item

    @property
    def last_said(self) -> str:
        """The last message of the last request."""
        content = self.asked[-1][-1].content
        assert isinstance(content, str)
        return content


class ScriptedTools:
    """A tree of one node. pictures: how it shows them. long: characters of a search's result."""

    def __init__(
        self,
        lost: Lost | None = None,
        overview_lost: Lost | None = None,
        *,
        pictures: Literal["none", "shown", "described"] = "none",
        long: int = 0,
    ) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._lost = lost
        self._overview_lost = overview_lost
        self._pictures = pictures
        self._long = long

    async def overview(self) -> TreeText | Lost:
        return self._overview_lost or TreeText(text="- -v1_L1_000 | L1", node_ids=("-v1_L1_000",))

    async def view(self, node_id: str) -> TreeText | ToolRefused | Lost:
        self.calls.append(("view", node_id))
        if node_id != "-v1_L1_000":
            return ToolRefused(text="There is no such node.")
        return self._lost or TreeText(text="A red car.", node_ids=(node_id,))

    async def search(self, query: str, k: int) -> TreeText | ToolRefused | Lost:
        self.calls.append(("search", query, k))
        text = f"hits for {query}" + "." * self._long
        return self._lost or TreeText(text=text, node_ids=("-v1_L1_000",))

    async def subtitles(
        self, query: str, start_s: float | None, end_s: float | None
    ) -> TreeText | ToolRefused | Lost:
        self.calls.append(("subtitles", query, start_s, end_s))
        return self._lost or TreeText(text="subtitles", node_ids=())

    async def observe(
        self, node_ids: tuple[str, ...], question: str
    ) -> Frames | Described | ToolRefused | Lost:
        self.calls.append(("observe", node_ids, question))
        if self._lost is not None or self._pictures == "none":
            return self._lost or ToolRefused(text="This video has no pictures.")
        if self._pictures == "described":
            return Described(
                text="A car, red.",
                node_ids=node_ids,
                usage=Usage(prompt_tokens=1000, completion_tokens=50),
                seconds=30.0,
            )
        shown = tuple(
            Picture(node_id=node_id, start_s=float(at), url=f"data:image/jpeg;base64,{at}")
            for at, node_id in enumerate(node_ids)
        )
        return Frames(text=f"{len(shown)} key frames", node_ids=node_ids, pictures=shown)
