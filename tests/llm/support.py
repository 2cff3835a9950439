"""An LLM actor with its peers faked and its clocks small."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import structlog
from anyio.abc import TaskGroup

from actors.llm.actor import LlmActor
from protocol.base import Request
from protocol.cache import CacheGet, CacheHit, CacheMiss, CachePut, CacheStored
from protocol.ledger import AttemptRow, Record, Recorded
from protocol.llm import Chat, ChatAnswer, ChatFailed, ChatMessage
from protocol.settings import Endpoint, LlmSettings, RoleSettings
from tests.support.fakes import FakeAddress

__all__ = ["House", "asked", "endpoint", "settings"]


def endpoint(base_url: str, name: str = "one", model: str = "m") -> Endpoint:
    """An endpoint for every role."""
    return Endpoint(
        name=name, base_url=base_url, model=model, roles=("search", "judge", "evolve", "vision")
    )


def settings(*endpoints: Endpoint, **changes: object) -> LlmSettings:
    """Settings with small clocks; ``changes`` by field name."""
    role = RoleSettings(temperature=0.7, top_p=None, max_tokens=64)
    values: dict[str, object] = {
        "endpoints": endpoints,
        "search": role,
        "judge": RoleSettings(temperature=0.0, top_p=None, max_tokens=64),
        "evolve": role,
        "vision": role,
        "concurrency": 32,
        "send_seed": True,
        "structured_output": True,
        "attempts": 3,
        "connect_s": 2.0,
        "first_token_s": 5.0,
        "idle_s": 5.0,
        "attempt_s": 8.0,
        "total_s": 20.0,
        "backoff_s": 0.001,
        "backoff_cap_s": 0.01,
        "retry_after_cap_s": 5.0,
        "breaker_failures": 100,
        "breaker_cooldown_s": 0.05,
        **changes,
    }
    return LlmSettings(**values)  # type: ignore[arg-type]  # field by field, checked by the test


def asked(text: str = "hi", salt: str | None = "s1", **changes: object) -> Chat:
    """A chat of the agent."""
    message = ChatMessage(role="user", content=text)
    return Chat(role="search", messages=(message,), cache_salt=salt, **changes)  # type: ignore[arg-type]  # optional fields


class StillContext:
    """What ``on_start`` gets outside the runtime."""

    name = "llm"
    incarnation = 1
    restored: bytes | None = None
    draining = False

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger()

    async def checkpoint(self, label: str) -> None:
        raise AssertionError(f"the chat client has no state to keep ({label})")


class House:
    """The actor, the cache's entries and the ledger's rows."""

    def __init__(self, wanted: LlmSettings, environ: Mapping[str, str]) -> None:
        self.entries: dict[str, ChatAnswer] = {}
        self.rows: list[AttemptRow] = []
        self.recorded = anyio.Event()  # the first row is there
        self.cache_error: Exception | None = None
        self.cache = FakeAddress("cache", self._cache)
        self.ledger = FakeAddress("ledger", self._record)
        self.actor = LlmActor(wanted, self.cache, self.ledger, environ=environ)

    async def _cache(self, request: Request[object]) -> object:
        if self.cache_error is not None:
            raise self.cache_error
        if isinstance(request, CachePut):
            self.entries[request.key] = request.answer
            return CacheStored(stored=True)
        assert isinstance(request, CacheGet)
        if request.key in self.entries:
            return CacheHit(answer=self.entries[request.key])
        return CacheMiss(why="absent")

    async def _record(self, request: Request[object]) -> object:
        assert isinstance(request, Record)
        for row in request.rows:
            assert isinstance(row, AttemptRow)
            self.rows.append(row)
        self.recorded.set()
        return Recorded(rows=len(request.rows))

    async def ask(self, chat: Chat) -> ChatAnswer | ChatFailed:
        """The handler, as a coroutine for a task group."""
        return await self.actor.chat(chat)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, wanted: LlmSettings, environ: Mapping[str, str] | None = None
    ) -> AsyncIterator[House]:
        """A started actor; stopped at the end."""
        house = cls(wanted, environ or {})
        async with anyio.create_task_group() as tasks:
            await house.actor.on_start(StillContext(tasks))
            try:
                yield house
            finally:
                with anyio.CancelScope(shield=True):
                    await house.actor.on_stop()
