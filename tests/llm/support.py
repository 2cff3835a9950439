"""An LLM actor with its peers faked and its clocks small, and what drives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup
from trio.testing import MockClock

from actors.llm.actor import LlmActor
from actors.llm.pool import EndpointPool
from protocol.base import Request
from protocol.cache import CacheGet, CacheHit, CacheMiss, CachePut, CacheStored
from protocol.ledger import AskSpent, Record, Recorded, Spent
from protocol.llm import Chat, ChatAnswer, ChatFailed, ChatMessage
from protocol.rows import AttemptRow
from protocol.settings import Endpoint, LimitSettings, LlmSettings, RoleSettings
from tests.llm.server import Connection, Handler
from tests.support.fakes import FakeAddress

__all__ = [
    "NO_LIMITS",
    "House",
    "Script",
    "asked",
    "endpoint",
    "in_virtual_time",
    "settings",
    "slow",
    "status",
]

T = TypeVar("T")

NO_LIMITS = LimitSettings(max_calls=None, max_tokens=None, max_usd=None)
NOTHING = Spent(calls=0, prompt_tokens=0, completion_tokens=0, usd=0.0)


def in_virtual_time(main: Callable[[], Awaitable[T]]) -> T:
    """Run it where seconds are exact and cost nothing; there must be no sockets in it."""
    clock = MockClock(autojump_threshold=0)
    return anyio.run(main, backend="trio", backend_options={"clock": clock})


def status(code: int, *headers: str) -> bytes:
    """A response that is no answer."""
    lines = (f"HTTP/1.1 {code} x", "Content-Length: 2", *headers, "", "{}")
    return "\r\n".join(lines).encode()


class Script:
    """Answers requests one after the other, over all connections; the last one for ever.

    None: hang up without a word.
    """

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    async def __call__(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            self.bodies.append(request[1])
            reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if reply is None:
                return
            await connection.send(reply)


def slow(seconds: float, then: bytes, bodies: list[bytes]) -> Handler:
    """A server that is healthy and takes its time. bodies: filled with what it is asked."""

    async def handle(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            bodies.append(request[1])
            await anyio.sleep(seconds)
            await connection.send(then)

    return handle


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
        "concurrency_start": 32,
        "send_seed": True,
        "attempts": 3,
        "retry_share": 1.0,
        "retry_reserve": 1000,
        "outage_s": 30.0,
        "first_answer_s": 30.0,
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

    def __init__(
        self, wanted: LlmSettings, environ: Mapping[str, str], limits: LimitSettings, spent: Spent
    ) -> None:
        self.entries: dict[str, ChatAnswer] = {}
        self.rows: list[AttemptRow] = []
        self.recorded = anyio.Event()  # the first row is there
        self.cache_error: Exception | None = None
        self.ledger_error: Exception | None = None
        self.spent = spent
        self.cache = FakeAddress("cache", self._cache)
        self.ledger = FakeAddress("ledger", self._record)
        self.actor = LlmActor(wanted, limits, self.cache, self.ledger, environ=environ)

    @property
    def pool(self) -> EndpointPool:
        """The pool of the started actor."""
        assert self.actor._opened is not None
        return self.actor._opened[1]

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
        if isinstance(request, AskSpent):
            return self.spent
        if self.ledger_error is not None:
            raise self.ledger_error
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
        cls,
        wanted: LlmSettings,
        environ: Mapping[str, str] | None = None,
        *,
        limits: LimitSettings = NO_LIMITS,
        spent: Spent = NOTHING,
    ) -> AsyncIterator[House]:
        """A started actor; stopped at the end. spent: what former processes did."""
        house = cls(wanted, environ or {}, limits, spent)
        async with anyio.create_task_group() as tasks:
            await house.actor.on_start(StillContext(tasks))
            try:
                yield house
            finally:
                with anyio.CancelScope(shield=True):
                    await house.actor.on_stop()
