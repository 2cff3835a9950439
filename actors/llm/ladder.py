"""The one retry loop: when a call is tried again, and when it is given up (S3, S9, S18).

Waits are full jitter from a hash of call and attempt, so that a run can be repeated. Partial
text of a failed try goes nowhere. While every endpoint is down a call waits and burns no
attempt; a probe of a broken endpoint is none either, nor is a try at one that serves nobody. Never
touches HTTP, cache or ledger itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol

import anyio
import msgspec

from actors.llm.budget import RetryBudget
from actors.llm.classify import Failure, verdict_of
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.pool import EndpointPool, Slot
from actors.llm.request import PlannedCall
from actors.llm.spending import Spending
from actors.llm.stream import Complete
from actors.llm.transport import Exchange
from protocol.llm import Attempt, ChatAnswer, ChatFailed, FailureKind
from protocol.settings import LlmSettings

__all__ = ["Exchanger", "Ladder", "NoteAttempt", "jitter"]

_MOST_PATIENCE = 4.0
_BOOKING_S = 2.0
"""How long a cancelled try may take to get into the accounts."""


class Exchanger(Protocol):
    """What makes one try; ``Transport`` in production."""

    async def exchange(
        self, endpoint: ResolvedEndpoint, body: bytes, limit_s: float, *, patience: float
    ) -> Exchange:
        """One try at one endpoint. patience: multiplies the clocks that measure silence."""
        ...


class NoteAttempt(Protocol):
    """Told each try as soon as it is over. number: from 1."""

    def __call__(
        self, number: int, attempt: Attempt, started: datetime, endpoint: ResolvedEndpoint
    ) -> Awaitable[None]: ...


def jitter(key: str, attempt: int) -> float:
    """A number in [0, 1) that follows from the call and the attempt alone."""
    digest = hashlib.sha256(f"backoff:{key}:{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Ladder:
    """Climbs for every call; between calls it keeps only what they may spend, and who is sent."""

    def __init__(
        self,
        settings: LlmSettings,
        pool: EndpointPool,
        exchanger: Exchanger,
        spending: Spending,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.exchanger = exchanger
        self.spending = spending
        self.clock = clock
        self.budget = RetryBudget(settings.retry_share, settings.retry_reserve, clock())
        self.sent: set[str] = set()
        """Keys of the calls that are at an endpoint which is up: they may be answered any time."""

    async def climb(self, call: PlannedCall, note: NoteAttempt) -> ChatAnswer | ChatFailed:
        """Try until an answer is whole, a failure is fatal, or attempts or time are used up."""
        return await _Climb(self, call, note).run()


class _Climb:
    """One call's way up."""

    def __init__(self, house: Ladder, call: PlannedCall, note: NoteAttempt) -> None:
        self._house = house
        self._settings = house.settings
        self._clock = house.clock
        self._call = call
        self._note = note
        self._attempts: list[Attempt] = []
        self._counted = 0  # attempts that were no probes
        self._timeouts = 0
        self._failures: Counter[str] = Counter()
        self._not_before = self._clock()
        self._deadline = self._not_before + self._settings.total_s

    async def run(self) -> ChatAnswer | ChatFailed:
        house, last = self._house, None
        house.budget.earn()
        while True:
            if (limit := house.spending.over()) is not None:
                return self._failed("budget", limit)
            if last is not None and not await self._sleep_until(self._not_before):
                return self._gave_up(last)
            queued = self._clock()
            async with house.pool.slot(
                self._call.role, self._failures, retry=bool(self._attempts)
            ) as slot:
                # waiting for our turn is back-pressure or an outage, not trying
                self._deadline += self._clock() - queued
                if slot is None:
                    return self._no_endpoint(last)
                if (limit := house.spending.over()) is not None:  # reached while we waited
                    return self._failed("budget", limit)
                begun = self._clock()
                exchange = await self._try(slot)
                if slot.probe:  # it asked for all that wait: an outage costs no call its time
                    self._deadline += self._clock() - begun
            attempt = _attempt(slot, exchange)
            self._attempts.append(attempt)
            with anyio.CancelScope(shield=True):  # what was spent is booked, whoever goes away
                await self._note(len(self._attempts), attempt, exchange.started, slot.endpoint)
            if isinstance(exchange.result, Complete):
                return self._answer(slot, exchange, exchange.result)
            failure = exchange.result
            # who serves nobody has not tried; each such try is at another endpoint, or a rest later
            self._counted += not (slot.probe or failure.of_endpoint)
            if not self._may_go_on(slot, failure) or self._counted >= self._settings.attempts:
                return self._gave_up(failure)
            if last is None or not failure.of_endpoint:
                last = failure  # to blame, should time run out: not who was passed over
            self._step_back(slot, failure)

    def _may_go_on(self, slot: Slot, failure: Failure) -> bool:
        """Whether another try can bring an answer."""
        if not failure.fatal:
            return True
        return self._house.pool.goes_on(self._call.role, slot.endpoint.name, failure)

    async def _try(self, slot: Slot) -> Exchange:
        house, endpoint = self._house, slot.endpoint
        begun, started = self._clock(), datetime.now(UTC)
        house.spending.begin()
        if not slot.probe:
            house.sent.add(self._call.key)
        try:
            exchange = await house.exchanger.exchange(
                endpoint,
                self._call.body(endpoint),
                self._deadline - begun,
                patience=min(_MOST_PATIENCE, 2.0**self._timeouts),
            )
        except anyio.get_cancelled_exc_class():
            await self._note_cancelled(endpoint, self._clock() - begun, started)
            raise
        finally:
            house.sent.discard(self._call.key)
        result = exchange.result
        slot.settle(result if isinstance(result, Failure) else None, exchange.first_token_s)
        house.spending.add(exchange.usage, endpoint.usd(exchange.usage))
        return exchange

    async def _note_cancelled(
        self, endpoint: ResolvedEndpoint, seconds: float, started: datetime
    ) -> None:
        """Nobody waits for this try any more; the endpoint worked on it all the same."""
        attempt = Attempt(
            endpoint=endpoint.name,
            outcome="cancelled",
            seconds=seconds,
            detail="the caller went away; tokens are unknown",
        )
        with anyio.move_on_after(_BOOKING_S, shield=True):
            await self._note(len(self._attempts) + 1, attempt, started, endpoint)

    def _step_back(self, slot: Slot, failure: Failure) -> None:
        """Note the failure, and how long this call waits before it is tried again."""
        settings, now = self._settings, self._clock()
        self._failures[slot.endpoint.name] += 1
        self._timeouts += failure.kind == "timeout"
        if slot.probe and (failure.of_endpoint or verdict_of(failure, probe=True) == "failure"):
            self._not_before = now  # the breaker says when it is asked again; that is no retry
            return
        doublings = min(max(self._counted - 1, 0), 30)
        longest = min(settings.backoff_cap_s, settings.backoff_s * 2.0**doublings)
        if failure.of_endpoint:
            longest = 0.0  # what comes next is another endpoint, or this one when it wants to
        wait = longest * jitter(self._call.key, len(self._attempts))
        self._not_before = now + max(wait, self._house.budget.spend_s(now))

    async def _sleep_until(self, when: float) -> bool:
        """False, at once, if the total clock ends before."""
        if when >= self._deadline:
            return False
        await anyio.sleep(max(0.0, when - self._clock()))
        return True

    def _answer(self, slot: Slot, exchange: Exchange, whole: Complete) -> ChatAnswer:
        return ChatAnswer(
            text=whole.text,
            finish=whole.finish,
            usage=whole.usage,
            endpoint=slot.endpoint.name,
            cached=False,
            reasoning=whole.reasoning,
            tool_calls=whole.tool_calls,
            seconds=exchange.seconds,
            attempts=tuple(self._attempts),
        )

    def _no_endpoint(self, last: Failure | None) -> ChatFailed:
        pool, role = self._house.pool, self._call.role
        if pool.never_answered(role):
            troubles = (f"{name} {what}" for name, what in pool.troubles(role).items())
            return self._failed(
                "breaker_open",
                f"no endpoint of role {role} has answered yet, in {pool.patience_s(role):g} s: "
                f"{'; '.join(troubles)}",
            )
        named = ", ".join(e.name for e in pool.of_role(role))
        before = f"; before that {last.kind}: {last.detail}" if last is not None else ""
        return self._failed(
            "breaker_open",
            f"every endpoint of role {role} ({named}) was down for "
            f"{self._settings.outage_s:g} s{before}",
        )

    def _gave_up(self, failure: Failure) -> ChatFailed:
        return msgspec.structs.replace(
            self._failed(failure.kind, failure.detail), fatal=failure.fatal
        )

    def _failed(self, kind: FailureKind, detail: str) -> ChatFailed:
        return ChatFailed(kind=kind, fatal=False, detail=detail, attempts=tuple(self._attempts))


def _attempt(slot: Slot, exchange: Exchange) -> Attempt:
    failure = slot.failure
    return Attempt(
        endpoint=slot.endpoint.name,
        outcome="ok" if failure is None else failure.kind,
        seconds=exchange.seconds,
        first_token_s=exchange.first_token_s,
        detail="" if failure is None else failure.detail,
        usage=exchange.usage,
    )
