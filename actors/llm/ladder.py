"""The one retry loop: which endpoint, after how long, and when to give up (S9 of clients.md).

Waits are full jitter from a hash of call and attempt, so that a run can be repeated. Partial
text of a failed try goes nowhere. While every breaker is open it waits for a probe slot and
burns no attempt. Never touches HTTP, the cache or the ledger itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import anyio
import msgspec

from actors.llm.classify import Failure, verdict_of
from actors.llm.endpoints import EndpointPool, ResolvedEndpoint
from actors.llm.request import PlannedCall
from actors.llm.stream import Complete
from actors.llm.transport import Exchange
from protocol.llm import Attempt, ChatAnswer, ChatFailed
from protocol.settings import LlmSettings

__all__ = ["Exchanger", "Ladder", "NoteAttempt", "jitter"]


class Exchanger(Protocol):
    """What makes one try; ``Transport`` in production."""

    async def exchange(self, endpoint: ResolvedEndpoint, body: bytes, limit_s: float) -> Exchange:
        """One try at one endpoint."""
        ...


class NoteAttempt(Protocol):
    """Told each try as soon as it is over. number: from 1."""

    def __call__(self, number: int, attempt: Attempt, started: datetime) -> Awaitable[None]: ...


def jitter(key: str, attempt: int) -> float:
    """A number in [0, 1) that follows from the call and the attempt alone."""
    digest = hashlib.sha256(f"backoff:{key}:{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Ladder:
    """Climbs for every call; holds no state between calls."""

    def __init__(
        self,
        settings: LlmSettings,
        pool: EndpointPool,
        exchanger: Exchanger,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._exchanger = exchanger
        self._clock = clock

    async def climb(self, call: PlannedCall, note: NoteAttempt) -> ChatAnswer | ChatFailed:
        """Try until an answer is whole, a failure is fatal, or attempts or time are used up."""
        return await _Climb(self._settings, self._pool, self._exchanger, self._clock, call).run(
            note
        )


class _Tried(msgspec.Struct, frozen=True):
    endpoint: ResolvedEndpoint
    exchange: Exchange
    attempt: Attempt


class _Climb:
    """One call's way up."""

    def __init__(
        self,
        settings: LlmSettings,
        pool: EndpointPool,
        exchanger: Exchanger,
        clock: Callable[[], float],
        call: PlannedCall,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._exchanger = exchanger
        self._clock = clock
        self._call = call
        self._attempts: list[Attempt] = []
        self._failures: Counter[str] = Counter()
        self._rests: dict[str, float] = {}  # endpoint -> when its Retry-After is over
        self._not_before = clock()
        self._deadline = clock() + settings.total_s

    async def run(self, note: NoteAttempt) -> ChatAnswer | ChatFailed:
        last: Failure | None = None
        while True:
            endpoint = await self._next_endpoint()
            if endpoint is None:
                return self._failed(last)
            tried = await self._try(endpoint)
            if tried is None:
                continue  # its breaker opened while we queued; nothing was sent
            self._attempts.append(tried.attempt)
            await note(len(self._attempts), tried.attempt, tried.exchange.started)
            result = tried.exchange.result
            if isinstance(result, Complete):
                return ChatAnswer(
                    text=result.text,
                    finish=result.finish,
                    usage=result.usage,
                    endpoint=endpoint.name,
                    cached=False,
                    reasoning=result.reasoning,
                    attempts=tuple(self._attempts),
                )
            last = result
            if last.fatal or len(self._attempts) >= self._settings.attempts:
                return self._gave_up(last)
            self._step_back(endpoint, last)

    async def _next_endpoint(self) -> ResolvedEndpoint | None:
        """The endpoint for the next try, once it is due; None: the total clock ends first."""
        if not await self._sleep_until(self._not_before):
            return None
        while True:
            now = self._clock()
            endpoint = self._pool.pick(
                self._call.role,
                resting=self._is_resting,
                failures=self._failures.__getitem__,
            )
            if endpoint is None:
                if now >= self._deadline:
                    return None
                await self._pool.wait_for_change(self._call.role, self._deadline - now)
                continue
            rested = self._rests.get(endpoint.name, now)
            if rested <= now:
                return endpoint if now < self._deadline else None
            if not await self._sleep_until(rested):
                return None

    def _is_resting(self, name: str) -> bool:
        return self._rests.get(name, self._not_before) > self._clock()

    async def _try(self, endpoint: ResolvedEndpoint) -> _Tried | None:
        queued = self._clock()
        async with self._pool.slot(endpoint) as slot:
            # waiting behind our own limit is back-pressure, not trying
            self._deadline += self._clock() - queued
            if slot is None:
                return None
            exchange = await self._exchanger.exchange(
                endpoint, self._call.body(endpoint.model), self._deadline - self._clock()
            )
            result = exchange.result
            failure = result if isinstance(result, Failure) else None
            slot.verdict = verdict_of(failure)
            slot.detail = "" if failure is None else f"{failure.kind}: {failure.detail}"
        attempt = Attempt(
            endpoint=endpoint.name,
            outcome="ok" if failure is None else failure.kind,
            seconds=exchange.seconds,
            first_token_s=exchange.first_token_s,
            detail="" if failure is None else failure.detail,
            usage=exchange.usage,
        )
        return _Tried(endpoint, exchange, attempt)

    def _step_back(self, endpoint: ResolvedEndpoint, failure: Failure) -> None:
        """Note the failure, and how long everyone and this endpoint are left alone."""
        settings, now = self._settings, self._clock()
        number = len(self._attempts)
        longest = min(settings.backoff_cap_s, settings.backoff_s * 2.0 ** (number - 1))
        self._not_before = now + longest * jitter(self._call.key, number)
        self._failures[endpoint.name] += 1
        if failure.retry_after_s is not None:
            self._rests[endpoint.name] = now + failure.retry_after_s

    async def _sleep_until(self, when: float) -> bool:
        """False, at once, if the total clock ends before."""
        if when >= self._deadline:
            return False
        await anyio.sleep(max(0.0, when - self._clock()))
        return True

    def _failed(self, last: Failure | None) -> ChatFailed:
        """Time is up: for want of an open endpoint, or after the last failure."""
        open_now = self._pool.pick(self._call.role, lambda _: False, lambda _: 0) is None
        if last is not None and not open_now:
            return self._gave_up(last)
        named = ", ".join(e.name for e in self._pool.of_role(self._call.role))
        before = f"; before that {last.kind}: {last.detail}" if last is not None else ""
        return ChatFailed(
            kind="breaker_open",
            fatal=False,
            detail=f"no endpoint of role {self._call.role} lets a request through "
            f"within {self._settings.total_s:g} s ({named}){before}",
            attempts=tuple(self._attempts),
        )

    def _gave_up(self, failure: Failure) -> ChatFailed:
        return ChatFailed(
            kind=failure.kind,
            fatal=failure.fatal,
            detail=failure.detail,
            attempts=tuple(self._attempts),
        )
