"""Serves ``protocol.rollout``: runs the loop against the peers and stores how it ended.

Peers that fail make *this* question missing, never its batch (row P0-4): their failures
are turned into ``Missed`` here, and nothing else is caught. Outcome and steps go to the
ledger in one transaction, before the reply; every rollout leaves one ``rollout.done`` line in the
log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import msgspec
import structlog

from actors.rollout.answer_text import storable
from actors.rollout.dialect import Request as Asked
from actors.rollout.dialect import picture_parts
from actors.rollout.loop import run_loop
from actors.rollout.outcome import Described, Lost
from actors.rollout.record import missing_row, outcome_row, reply_of, trace_rows
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address
from actors.runtime.errors import AskFailed
from prompts.templates import load_templates
from prompts.trajectory import neutral
from protocol.base import Scope
from protocol.ledger import Record
from protocol.llm import Chat, ChatAnswer, ChatFailed, ChatMessage
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import AnyRow, OutcomeRow
from protocol.settings import AgentSettings
from protocol.video import (
    Frames,
    GetOverview,
    ObserveFrames,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)

__all__ = ["TEMPLATES", "RolloutActor"]

TEMPLATES = ("describe_frames",)

S = TypeVar("S")
Describe = Callable[[Frames, str], Awaitable[ChatAnswer | Lost]]

log = structlog.get_logger("rollout")


class RolloutActor(Actor):
    """The agent. llm, video, ledger: the peers it asks.

    Raises FileNotFoundError when it is built and its engine prompt is missing (row P0-1).
    """

    def __init__(
        self, settings: AgentSettings, llm: Address, video: Address, ledger: Address
    ) -> None:
        self._settings = settings
        self._llm = llm
        self._video = video
        self._ledger = ledger
        self._describe = load_templates(TEMPLATES)["describe_frames"]

    @handles(Rollout)
    async def rollout(self, request: Rollout) -> Answered | Missed:
        """Answer one question and store outcome and steps."""
        started = anyio.current_time()
        scope = _scope(request)

        async def chat(messages: tuple[ChatMessage, ...], asked: Asked) -> ChatAnswer | Lost:
            return await self._ask_llm(
                Chat(
                    role="search",
                    messages=messages,
                    cache_salt=request.salt,
                    json_schema=asked.json_schema,
                    tools=asked.tools,
                    scope=scope,
                )
            )

        async def describe(frames: Frames, question: str) -> ChatAnswer | Lost:
            return await self._ask_llm(self._vision_chat(frames, question, request.salt, scope))

        result = await run_loop(
            request.question.public,
            request.prompts,
            request.skill,
            chat=chat,
            tools=_TreeTools(
                self._video,
                request.question.video_id,
                scope,
                describe if self._settings.vision == "describe" else None,
            ),
            settings=self._settings,
            others=request.others,
        )
        seconds = anyio.current_time() - started
        try:
            outcome = outcome_row(request, result, seconds)
            rows: tuple[AnyRow, ...] = (outcome, *trace_rows(request, result.steps))
            await self._ledger.ask(
                Record(
                    rows=rows,
                    scope=scope,
                    instead_of=(request.run_key, request.question.question_id),
                )
            )
        except (AskFailed, UnicodeError, msgspec.MsgspecError) as error:
            return await self._unstored(request, str(error), seconds, scope)
        _tell(outcome)
        return reply_of(request, result)

    def _vision_chat(self, frames: Frames, question: str, salt: str, scope: Scope) -> Chat:
        """Pictures and what the agent wants to know about them."""
        text = self._describe.fill(frames=neutral(frames.text), question=neutral(question))
        message = ChatMessage(role="user", content=picture_parts(text, frames.pictures))
        return Chat(role="vision", messages=(message,), cache_salt=salt, scope=scope)

    async def _ask_llm(self, request: Chat) -> ChatAnswer | Lost:
        try:
            answer = await self._llm.ask(request)
        except AskFailed as error:
            return Lost("crash", str(error))
        if isinstance(answer, ChatFailed):
            return Lost(answer.kind, answer.detail)
        return answer

    async def _unstored(
        self, request: Rollout, detail: str, seconds: float, scope: Scope
    ) -> Missed:
        """The result could not be stored: missing, and a row says so if one can be written."""
        row = missing_row(request, "storage", detail, (), seconds)
        _tell(row)
        try:
            await self._ledger.ask(Record(rows=(row,), scope=scope))
        except AskFailed as error:
            detail = f"{detail}; nor could the missing row be stored: {error}"
        return Missed(question_id=request.question.question_id, kind="storage", detail=detail)


def _tell(row: OutcomeRow) -> None:
    """The rollout's one line: how it ended and what it took, nothing of what was said."""
    log.info(
        "rollout.done",
        run_key=row.run_key,
        outcome=row.outcome,
        letter=row.letter,
        stop=row.stop,
        missing_kind=row.missing_kind,
        steps=row.n_steps,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        seconds=round(row.seconds, 3),
    )


class _TreeTools:
    """The video peer, for one video. describe: None: pictures go to the agent itself."""

    def __init__(
        self, video: Address, video_id: str, scope: Scope, describe: Describe | None
    ) -> None:
        self._video = video
        self._video_id = video_id
        self._scope = scope
        self._describe = describe

    async def overview(self) -> TreeText | Lost:
        """The top level."""
        return await _seen(self._video.ask(GetOverview(video_id=self._video_id, scope=self._scope)))

    async def view(self, node_id: str) -> TreeText | ToolRefused | Lost:
        """One node."""
        return await _seen(
            self._video.ask(ViewNode(video_id=self._video_id, node_id=node_id, scope=self._scope))
        )

    async def search(self, query: str, k: int) -> TreeText | ToolRefused | Lost:
        """The best nodes."""
        return await _seen(
            self._video.ask(
                SearchTree(video_id=self._video_id, query=query, k=k, scope=self._scope)
            )
        )

    async def subtitles(
        self, query: str, start_s: float | None, end_s: float | None
    ) -> TreeText | ToolRefused | Lost:
        """Subtitle lines."""
        return await _seen(
            self._video.ask(
                SearchSubtitles(
                    video_id=self._video_id,
                    query=query,
                    start_s=start_s,
                    end_s=end_s,
                    scope=self._scope,
                )
            )
        )

    async def observe(
        self, node_ids: tuple[str, ...], question: str
    ) -> Frames | Described | ToolRefused | Lost:
        """Pictures, or what the vision role sees on them."""
        frames: Frames | ToolRefused | Lost = await _seen(
            self._video.ask(
                ObserveFrames(video_id=self._video_id, node_ids=node_ids, scope=self._scope)
            )
        )
        if self._describe is None or not isinstance(frames, Frames):
            return frames
        answer = await self._describe(frames, question)
        if isinstance(answer, Lost):
            return answer
        return Described(
            text=f"{frames.text}\n\nWhat is seen:\n{_said(answer)}",
            node_ids=frames.node_ids,
            usage=answer.usage,
            seconds=answer.seconds,
        )


def _said(answer: ChatAnswer) -> str:
    """What the viewer said, and whether that was all."""
    text = storable(answer.text).strip() or "(nothing was said)"
    ends = {"length": "\n(cut off at the token limit)", "content_filter": "\n(cut off by a filter)"}
    return text + ends.get(answer.finish, "")


async def _seen(ask: Awaitable[S | TreeUnavailable]) -> S | Lost:
    """What the peer shows; a tree that is not there and a failed ask are infrastructure."""
    try:
        seen = await ask
    except AskFailed as error:
        return Lost("crash", str(error))
    if isinstance(seen, TreeUnavailable):
        return Lost(seen.kind, seen.detail)
    return seen


def _scope(request: Rollout) -> Scope:
    """The asker's scope with the question in it, so that every log line below names it."""
    return msgspec.structs.replace(
        request.scope,
        question_id=request.question.question_id,
        task_type=request.question.task_type,
    )
