"""The chat client's shell: cache, single flight, ladder, accounting.

A request that was answered before is answered from the cache; identical requests in progress
share one call; the rest goes up the retry ladder. Every try and every cache hit is a row in
the ledger, every chat one ``llm.call`` line of the log. A cache that fails is a miss: it never
fails a call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import NamedTuple

import anyio
import msgspec
import structlog

from actors.llm.breaker import Breaker
from actors.llm.endpoints import ResolvedEndpoint, resolve_endpoints
from actors.llm.flight import SingleFlight
from actors.llm.ladder import Ladder
from actors.llm.limiter import Limit
from actors.llm.pace import Pace
from actors.llm.pool import EndpointPool
from actors.llm.request import PlannedCall, Unencodable, plan_call
from actors.llm.spending import Spending
from actors.llm.transport import Transport
from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address
from actors.runtime.errors import AskFailed
from protocol.base import Message
from protocol.cache import CacheGet, CacheHit, CachePut
from protocol.ledger import AskSpent, Record
from protocol.llm import (
    AskEndpoints,
    Attempt,
    Chat,
    ChatAnswer,
    ChatFailed,
    EndpointsSeen,
)
from protocol.rows import AttemptRow
from protocol.settings import LimitSettings, LlmSettings

__all__ = ["LlmActor"]

_CACHEABLE = frozenset({"stop", "tool_calls"})
"""A refusal or an unknown end is asked again; ``length`` only where the key holds max_tokens."""

_CACHE = "cache"  # the endpoint named in rows of answers that were not asked for again


class _Stamps:
    """Times of cache hits, each later than the one before: two hits of one key are two rows."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)

    def next(self) -> datetime:
        """Now, or a microsecond after the last one."""
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        return self._last


class _InHand(NamedTuple):
    """A chat that has not ended. key: what identical ones share. begun: event loop time."""

    request: Chat
    key: str
    begun: float


class LlmActor(Actor):
    """Chats with the endpoints of ``settings``; stateless beyond breakers and connections.

    pace: the operator's wishes. answered: endpoints that have answered; both outlive a crash.
    environ: where the endpoints' keys are. Raises ValueError if one is missing.
    """

    def __init__(
        self,
        settings: LlmSettings,
        limits: LimitSettings,
        cache: Address,
        ledger: Address,
        *,
        pace: Pace | None = None,
        answered: set[str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._pace = pace or Pace()
        self._numbers = count()
        self._answered = set() if answered is None else answered
        self._calls: dict[int, _InHand] = {}  # chats that have not ended
        self._settings = settings
        self._limits = limits
        self._cache = cache
        self._ledger = ledger
        self._endpoints = resolve_endpoints(settings.endpoints, environ, settings.concurrency)
        self._flight: SingleFlight[ChatAnswer | ChatFailed] = SingleFlight()
        self._stamps = _Stamps()
        self._opened: tuple[Transport, EndpointPool, Ladder] | None = None
        self._log: structlog.stdlib.BoundLogger | None = None

    async def on_start(self, context: Context) -> None:
        """Open the HTTP client; connections are made when they are needed."""
        settings = self._settings
        spent = await self._ledger.ask(AskSpent())
        spending = Spending(
            self._limits,
            calls=spent.calls,
            tokens=spent.prompt_tokens + spent.completion_tokens,
            usd=spent.usd,
        )
        transport = Transport(settings)
        pool = EndpointPool(
            self._endpoints,
            lambda endpoint: Limit(settings.concurrency_start, endpoint.concurrency),
            # a probe ends with its attempt; later than that it is lost
            lambda _: Breaker(
                settings.breaker_failures, settings.breaker_cooldown_s, settings.attempt_s + 1.0
            ),
            outage_s=settings.outage_s,
            first_answer_s=settings.first_answer_s,
            answered=self._answered,
            pace=self._pace,
        )
        self._spending = spending
        self._opened = (transport, pool, Ladder(settings, pool, transport, spending))
        self._log = context.log

    async def on_stop(self) -> None:
        """Close every connection."""
        if self._opened is not None:
            await self._opened[0].aclose()

    @handles(Chat)
    async def chat(self, request: Chat) -> ChatAnswer | ChatFailed:
        """Answer a chat, from the cache or from an endpoint."""
        assert self._opened is not None, "handlers run only after on_start"
        _, pool, ladder = self._opened
        endpoints = pool.of_role(request.role)
        if not endpoints:
            return ChatFailed(
                kind="bad_request", fatal=True, detail=f"no endpoint has the role {request.role}"
            )
        try:
            call = plan_call(request, self._settings, endpoints)
        except Unencodable as error:
            return ChatFailed(kind="body", fatal=True, detail=str(error))

        async def work() -> ChatAnswer | ChatFailed:
            known = await self._lookup(call)
            return known if known is not None else await self._ask(ladder, call)

        number, begun = next(self._numbers), anyio.current_time()
        self._calls[number] = _InHand(request, call.key, begun)
        try:
            reply, shared = await self._flight.run(call.key, work)
            if shared and isinstance(reply, ChatAnswer):
                reply = msgspec.structs.replace(reply, cached=True, attempts=())
            if isinstance(reply, ChatAnswer) and reply.cached:
                hit = Attempt(endpoint=_CACHE, outcome="cached", seconds=0.0)
                await self._account(call, 0, hit, self._stamps.next(), None)
        finally:
            del self._calls[number]
        self._tell(call, reply, anyio.current_time() - begun)
        return reply

    def stalled(self) -> list[Message]:
        """The chats that wait for an endpoint while all of their role are down."""
        if self._opened is None:
            return []
        _, pool, ladder = self._opened
        return [
            chat.request
            for chat in self._calls.values()
            if pool.stands_still(chat.request.role) and chat.key not in ladder.sent
        ]

    @handles(AskEndpoints)
    async def endpoints(self, request: AskEndpoints) -> EndpointsSeen:
        """How everything stands at this moment."""
        assert self._opened is not None, "handlers run only after on_start"
        _, pool, _ = self._opened
        begun = min((chat.begun for chat in self._calls.values()), default=None)
        priced = any(endpoint.usd_per_m_prompt is not None for endpoint in self._endpoints)
        return EndpointsSeen(
            endpoints=pool.seen(),
            waiting=pool.waiting,
            calls=len(self._calls),
            oldest_s=0.0 if begun is None else anyio.current_time() - begun,
            paused_by=self._pace.paused_by or "",
            usd=self._spending.usd if priced else None,
        )

    def _tell(self, call: PlannedCall, reply: ChatAnswer | ChatFailed, seconds: float) -> None:
        """The chat's one line. first_token_s: of the try that answered."""
        assert self._log is not None, "handlers run only after on_start"
        told: dict[str, str | int | None]
        if isinstance(reply, ChatFailed):
            told = {"outcome": reply.kind, "endpoint": None, "detail": reply.detail}
        else:
            told = {
                "outcome": "cached" if reply.cached else "ok",
                "endpoint": _CACHE if reply.cached else reply.endpoint,
                "finish": reply.finish,
                "prompt_tokens": reply.usage.prompt_tokens,
                "completion_tokens": reply.usage.completion_tokens,
            }
        tries = reply.attempts
        first = tries[-1].first_token_s if tries and "detail" not in told else None
        self._log.info(
            "llm.call",
            call=call.key[:12],
            role=call.role,
            attempts=len(tries),
            seconds=round(seconds, 3),
            first_token_s=None if first is None else round(first, 3),
            **told,
        )

    async def _ask(self, ladder: Ladder, call: PlannedCall) -> ChatAnswer | ChatFailed:
        async def note(
            number: int, attempt: Attempt, started: datetime, endpoint: ResolvedEndpoint
        ) -> None:
            try:
                await self._account(call, number, attempt, started, endpoint.usd(attempt.usage))
            except AskFailed as error:
                if attempt.outcome != "cancelled":
                    raise
                # stopping already, and the ledger may have stopped first: the cancellation goes on
                self._warn("llm.cancelled_try_not_booked", call, error)

        reply = await ladder.climb(call, note)
        if isinstance(reply, ChatAnswer) and _is_whole(reply, call):
            await self._keep(call, reply)
        return reply

    async def _lookup(self, call: PlannedCall) -> ChatAnswer | None:
        try:
            found = await self._cache.ask(CacheGet(key=call.key))
        except AskFailed as error:
            self._warn("llm.cache_get_failed", call, error)
            return None
        if not isinstance(found, CacheHit):
            return None
        return msgspec.structs.replace(found.answer, cached=True, attempts=())

    async def _keep(self, call: PlannedCall, answer: ChatAnswer) -> None:
        try:
            await self._cache.ask(CachePut(key=call.key, answer=answer))
        except AskFailed as error:
            self._warn("llm.cache_put_failed", call, error)

    async def _account(
        self,
        call: PlannedCall,
        number: int,
        attempt: Attempt,
        started: datetime,
        usd: float | None,
    ) -> None:
        """One row, committed before the reply goes out: no call is missing in the accounts."""
        row = AttemptRow(
            call=call.key,
            attempt=number,
            started=started.isoformat(timespec="microseconds"),
            role=call.role,
            endpoint=attempt.endpoint,
            outcome=attempt.outcome,
            detail=attempt.detail,
            seconds=attempt.seconds,
            first_token_s=attempt.first_token_s,
            prompt_tokens=attempt.usage.prompt_tokens,
            completion_tokens=attempt.usage.completion_tokens,
            cached_tokens=attempt.usage.cached_tokens,
            reasoning_tokens=attempt.usage.reasoning_tokens,
            usd=usd,
        )
        await self._ledger.ask(Record(rows=(row,)))
        if attempt.outcome not in ("ok", "cached"):
            assert self._log is not None, "handlers run only after on_start"
            self._log.info(
                "llm.attempt_failed",
                call=call.key[:12],
                attempt=number,
                endpoint=attempt.endpoint,
                kind=attempt.outcome,
                detail=attempt.detail,
                seconds=round(attempt.seconds, 3),
            )

    def _warn(self, event: str, call: PlannedCall, error: AskFailed) -> None:
        assert self._log is not None, "handlers run only after on_start"
        self._log.warning(event, call=call.key[:12], error=type(error).__name__, detail=str(error))


def _is_whole(answer: ChatAnswer, call: PlannedCall) -> bool:
    """Whether to keep it; an answer without text only when it called a tool."""
    kept = answer.finish in _CACHEABLE or (
        answer.finish == "length" and call.asked.max_tokens is not None
    )
    return kept and (bool(answer.text) or answer.finish == "tool_calls")
