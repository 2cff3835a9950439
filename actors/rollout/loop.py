"""The agent's turns: ask the model, run the tool, show what it brought, until an answer.

Knows no runtime: the model and the tools are callables. Infrastructure that fails comes
back from them as ``Lost`` and ends the rollout as ``Broken``, with the steps so far;
everything that the agent itself does wrong is told to it, and ends as a wrong answer at
worst. Must never see the gold answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from actors.rollout.action import (
    Action,
    BadCall,
    Look,
    Search,
    Submit,
    read_action,
)
from actors.rollout.answer import Letter, as_text, extract
from actors.rollout.answer_text import storable
from actors.rollout.prompt import (
    last_step_text,
    observation_text,
    opening_messages,
    unreadable_text,
)
from prompts.question import letter_of
from prompts.reply import Unreadable
from protocol.dataset import PublicQuestion
from protocol.documents import Prompts, Skill
from protocol.llm import ChatAnswer, ChatMessage
from protocol.rollout import Step, Stop
from protocol.settings import AgentSettings
from protocol.video import ToolRefused, TreeText

__all__ = ["Broken", "ChatCall", "Ended", "Lost", "Tools", "run_loop"]


class Lost(msgspec.Struct, frozen=True):
    """A call that infrastructure lost. kind: as in ``Missed``."""

    kind: str
    detail: str


class Ended(msgspec.Struct, frozen=True):
    """The agent ran to an end. why: how the letter was read, or why there is none."""

    letter: str | None
    why: str
    submitted: str
    confidence: float
    stop: Stop
    steps: tuple[Step, ...]


class Broken(msgspec.Struct, frozen=True):
    """Infrastructure failed. steps: those that were whole."""

    kind: str
    detail: str
    steps: tuple[Step, ...]


ChatCall = Callable[[tuple[ChatMessage, ...]], Awaitable[ChatAnswer | Lost]]


class Tools(Protocol):
    """The video tree, as the loop sees it."""

    async def overview(self) -> TreeText | Lost:
        """The top level."""
        ...

    async def view(self, node_id: str) -> TreeText | ToolRefused | Lost:
        """One node."""
        ...

    async def search(self, query: str, k: int) -> TreeText | ToolRefused | Lost:
        """The best nodes."""
        ...

    async def subtitles(
        self, query: str, start_s: float | None, end_s: float | None
    ) -> TreeText | ToolRefused | Lost:
        """Subtitle lines."""
        ...


async def run_loop(
    question: PublicQuestion,
    prompts: Prompts,
    skill: Skill,
    *,
    chat: ChatCall,
    tools: Tools,
    settings: AgentSettings,
) -> Ended | Broken:
    """Let the agent answer a question.

    The time budget is what the answers took: waiting for an endpoint, its outage or a retry
    is infrastructure, not the agent's slowness, and a replayed answer counts like the first.
    It is looked at between turns: once it is spent, only an answer is taken.
    """
    overview = await tools.overview()
    if isinstance(overview, Lost):
        return Broken(overview.kind, overview.detail, ())
    messages = opening_messages(prompts, skill, question, overview.text)
    turns = _Turns(question, messages, tools, settings)
    while True:
        answer = await chat(tuple(turns.messages))
        if isinstance(answer, Lost):
            return Broken(answer.kind, answer.detail, tuple(turns.steps))
        ended = await turns.take(answer)
        if ended is not None:
            return ended


class _Turns:
    """One rollout: the conversation, the steps, what is left of the budgets."""

    def __init__(
        self,
        question: PublicQuestion,
        messages: list[ChatMessage],
        tools: Tools,
        settings: AgentSettings,
    ) -> None:
        self.messages = messages
        self.steps: list[Step] = []
        self._options = question.options
        self._tools = tools
        self._settings = settings
        self._left_s = settings.time_budget_s
        self._used = 0  # actions, readable ones
        self._unreadable = 0  # in a row
        self._told = False  # that its answer holds no letter
        self._last = False  # only an answer is taken

    async def take(self, answer: ChatAnswer) -> Ended | Broken | None:
        """Act on a reply; None: the conversation goes on."""
        self._left_s -= answer.seconds
        raw = storable(answer.text)
        action = _cut_off() if answer.finish == "length" else read_action(raw)
        if isinstance(action, Unreadable):
            return self._reask(answer, raw, action.problem)
        self._unreadable = 0
        self._used += 1
        if isinstance(action.call, Submit):
            return self._submitted(answer, raw, action, action.call)
        if self._last:
            self._keep(answer, raw, action, "Not run: only submit_answer was left.", ())
            return self._end("budget", "the budget was spent without an answer")
        seen = await self._run(action)
        if isinstance(seen, Lost):
            return Broken(seen.kind, seen.detail, tuple(self.steps))
        ids = seen.node_ids if isinstance(seen, TreeText) else ()
        self._keep(answer, raw, action, seen.text, ids)
        self._show(raw, seen.text)
        return None

    async def _run(self, action: Action) -> TreeText | ToolRefused | Lost:
        call = action.call
        if isinstance(call, BadCall):
            return ToolRefused(text=call.problem)
        if isinstance(call, Look):
            return await self._tools.view(call.node_id)
        if isinstance(call, Search):
            k = self._settings.search_k if call.k is None else call.k
            return await self._tools.search(call.query, k)
        if isinstance(call, Submit):
            raise TypeError("an answer is not a tool call")
        return await self._tools.subtitles(call.query, call.start_s, call.end_s)

    def _submitted(
        self, answer: ChatAnswer, raw: str, action: Action, submit: Submit
    ) -> Ended | None:
        """A letter ends the rollout; without one the agent is told once, then believed."""
        reading = extract(submit.answer, self._options)
        letter = reading.letter if isinstance(reading, Letter) else None
        if letter is None and not self._told:
            self._told = True
            letters = ", ".join(letter_of(place) for place in range(len(self._options)))
            problem = (
                f"Your answer has no valid letter ({reading.why}). Submit exactly one of {letters}."
            )
            self._keep(answer, raw, action, problem, ())
            self._show(raw, problem)
            return None
        text = f"Answer taken: {letter or 'none'} ({reading.why})."
        self._keep(answer, raw, action, text, ())
        return Ended(
            letter=letter,
            why=reading.why,
            submitted=as_text(submit.answer),
            confidence=submit.confidence,
            stop="submitted" if letter else "no_answer",
            steps=tuple(self.steps),
        )

    def _reask(self, answer: ChatAnswer, raw: str, problem: str) -> Ended | None:
        self._unreadable += 1
        self._check_time()
        text = unreadable_text(problem, self._last)
        self._keep(answer, raw, None, text, ())
        if self._unreadable >= self._settings.max_parse_failures:
            return self._end("parse_error", f"{self._unreadable} unreadable replies in a row")
        self._say(raw, text)
        return None

    def _show(self, raw: str, observation: str) -> None:
        """Send an observation, with the budget or with the call for the answer."""
        self._last = self._last or self._used >= self._settings.max_steps
        self._check_time()
        if self._last:
            self._say(raw, last_step_text(observation))
        else:
            steps = self._settings.max_steps
            self._say(raw, observation_text(self._used, steps, observation))

    def _check_time(self) -> None:
        self._last = self._last or self._left_s <= 0

    def _say(self, raw: str, text: str) -> None:
        # Some endpoints refuse an assistant message without content.
        self.messages.append(ChatMessage(role="assistant", content=raw or "(empty reply)"))
        self.messages.append(ChatMessage(role="user", content=text))

    def _keep(
        self,
        answer: ChatAnswer,
        raw: str,
        action: Action | None,
        observation: str,
        node_ids: tuple[str, ...],
    ) -> None:
        self.steps.append(
            Step(
                index=len(self.steps) + 1,
                thought=action.thought if action else "",
                tool=action.tool if action else None,
                arguments=action.arguments if action else "",
                observation=observation,
                raw=raw,
                node_ids=node_ids,
                prompt_tokens=answer.usage.prompt_tokens,
                completion_tokens=answer.usage.completion_tokens,
                seconds=answer.seconds,
            )
        )

    def _end(self, stop: Stop, why: str) -> Ended:
        return Ended(
            letter=None,
            why=why,
            submitted="",
            confidence=0.5,
            stop=stop,
            steps=tuple(self.steps),
        )


def _cut_off() -> Unreadable:
    return Unreadable("it was cut off at the token limit; be shorter")
