"""Serves ``protocol.rollout``: runs the loop against the peers and stores how it ended.

Peers that fail make *this* question missing, never its batch (row P0-4): their failures
are turned into ``Missed`` here, and nothing else is caught. Outcome and steps go to the
ledger in one transaction, before the reply.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio
import msgspec

from actors.rollout.action import action_schema
from actors.rollout.loop import Lost, run_loop
from actors.rollout.record import missing_row, outcome_row, reply_of, trace_rows
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address
from actors.runtime.errors import AskFailed
from protocol.base import Scope
from protocol.ledger import AnyRow, Record
from protocol.llm import Chat, ChatAnswer, ChatFailed, ChatMessage
from protocol.rollout import Answered, Missed, Rollout
from protocol.settings import AgentSettings
from protocol.video import (
    GetOverview,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)

__all__ = ["RolloutActor"]

S = TypeVar("S")
_ACTION_SCHEMA = action_schema()


class RolloutActor(Actor):
    """The agent. llm, video, ledger: the peers it asks."""

    def __init__(
        self, settings: AgentSettings, llm: Address, video: Address, ledger: Address
    ) -> None:
        self._settings = settings
        self._llm = llm
        self._video = video
        self._ledger = ledger

    @handles(Rollout)
    async def rollout(self, request: Rollout) -> Answered | Missed:
        """Answer one question and store outcome and steps."""
        started = anyio.current_time()
        scope = _scope(request)

        async def chat(messages: tuple[ChatMessage, ...]) -> ChatAnswer | Lost:
            return await self._chat(messages, request.salt, scope)

        result = await run_loop(
            request.question.public,
            request.prompts,
            request.skill,
            chat=chat,
            tools=_TreeTools(self._video, request.question.video_id, scope),
            settings=self._settings,
        )
        seconds = anyio.current_time() - started
        try:
            rows: tuple[AnyRow, ...] = (
                outcome_row(request, result, seconds),
                *trace_rows(request, result.steps),
            )
            await self._ledger.ask(
                Record(
                    rows=rows,
                    scope=scope,
                    instead_of=(request.run_key, request.question.question_id),
                )
            )
        except (AskFailed, UnicodeError, msgspec.MsgspecError) as error:
            return await self._unstored(request, str(error), seconds, scope)
        return reply_of(request, result)

    async def _chat(
        self, messages: tuple[ChatMessage, ...], salt: str, scope: Scope
    ) -> ChatAnswer | Lost:
        request = Chat(
            role="search",
            messages=messages,
            cache_salt=salt,
            json_schema=_ACTION_SCHEMA,
            scope=scope,
        )
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
        try:
            await self._ledger.ask(Record(rows=(row,), scope=scope))
        except AskFailed as error:
            detail = f"{detail}; nor could the missing row be stored: {error}"
        return Missed(question_id=request.question.question_id, kind="storage", detail=detail)


class _TreeTools:
    """The video peer, for one video."""

    def __init__(self, video: Address, video_id: str, scope: Scope) -> None:
        self._video = video
        self._video_id = video_id
        self._scope = scope

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


async def _seen(ask: Awaitable[S | TreeUnavailable]) -> S | Lost:
    """What the peer shows; a tree that is not there and a failed ask are infrastructure."""
    try:
        seen = await ask
    except AskFailed as error:
        return Lost("crash", str(error))
    if isinstance(seen, TreeUnavailable):
        return Lost("tree", seen.detail)
    return seen


def _scope(request: Rollout) -> Scope:
    """The asker's scope with the question in it, so that every log line below names it."""
    return msgspec.structs.replace(
        request.scope,
        question_id=request.question.question_id,
        task_type=request.question.task_type,
    )
