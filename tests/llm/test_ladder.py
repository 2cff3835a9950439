"""When a call is tried again and when it is given up, in exact time (S3, S13, S18)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import anyio
import pytest

from actors.llm.breaker import Breaker
from actors.llm.classify import Failure
from actors.llm.endpoints import ResolvedEndpoint, resolve_endpoints
from actors.llm.ladder import Ladder, jitter
from actors.llm.limiter import Limit
from actors.llm.pool import EndpointPool
from actors.llm.request import PlannedCall, plan_call
from actors.llm.spending import Spending
from actors.llm.stream import Complete
from actors.llm.transport import Exchange
from protocol.llm import Attempt, ChatAnswer, ChatFailed, Usage
from protocol.settings import LimitSettings
from tests.llm.support import NO_LIMITS, asked, endpoint, in_virtual_time, settings

WHOLE = Complete("Hello", "", "stop", Usage(prompt_tokens=3, completion_tokens=2))
ERROR = Failure("server_error", "HTTP 500")
SILENT = Failure("timeout", "first token")
DOWN = Failure("transport", "ConnectError")
HOUR_S = 3600.0

Outcome = Complete | Failure | Exception


class House:
    """A ladder before endpoints that do as ``script`` says; the last line for ever.

    script: seconds that a try takes, and what comes of it.
    """

    def __init__(
        self,
        *script: tuple[float, Outcome],
        endpoints: tuple[str, ...] = ("one",),
        limits: LimitSettings = NO_LIMITS,
        answered: bool = True,
        **changes: object,
    ) -> None:
        self.script = list(script)
        self.sent: list[tuple[float, str]] = []
        self.patience: list[float] = []
        self.limit_s: list[float] = []
        self.noted: list[tuple[int, Attempt]] = []
        self.began = anyio.current_time()
        named = [endpoint(f"http://{name}/v1", name) for name in endpoints]
        self.settings = wanted = settings(*named, **{"attempts": 3, **changes})
        self.pool = EndpointPool(
            resolve_endpoints(wanted.endpoints, {}, wanted.concurrency),
            lambda one: Limit(wanted.concurrency_start, one.concurrency),
            lambda _: Breaker(wanted.breaker_failures, wanted.breaker_cooldown_s, 1000.0),
            outage_s=wanted.outage_s,
            first_answer_s=wanted.first_answer_s,
            answered=set(endpoints) if answered else set(),
        )
        self.ladder = Ladder(wanted, self.pool, self, Spending(limits))

    @property
    def now(self) -> float:
        """Seconds since the house was built."""
        return anyio.current_time() - self.began

    async def exchange(
        self, endpoint: ResolvedEndpoint, body: bytes, limit_s: float, *, patience: float
    ) -> Exchange:
        """The next line of the script."""
        self.sent.append((self.now, endpoint.name))
        self.patience.append(patience)
        self.limit_s.append(limit_s)
        seconds, outcome = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        started = datetime.now(UTC)
        await anyio.sleep(seconds)
        if isinstance(outcome, Exception):
            raise outcome
        usage = outcome.usage if isinstance(outcome, Complete) else Usage()
        return Exchange(outcome, started, seconds, None, usage)

    async def note(
        self, number: int, attempt: Attempt, started: datetime, endpoint: ResolvedEndpoint
    ) -> None:
        """Keep the attempt."""
        assert attempt.endpoint == endpoint.name
        self.noted.append((number, attempt))

    def plan(self, text: str) -> PlannedCall:
        """A chat, planned."""
        return plan_call(asked(text), self.settings, self.pool.of_role("search"))

    async def climb(self, text: str = "hi") -> ChatAnswer | ChatFailed:
        """One call."""
        return await self.ladder.climb(self.plan(text), self.note)

    async def climb_all(self, count: int) -> list[ChatAnswer | ChatFailed]:
        """Many calls at the same time, each another one."""
        replies: list[ChatAnswer | ChatFailed] = []

        async def one(number: int) -> None:
            replies.append(await self.climb(f"q{number}"))

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(one, number)
        return replies


def exactly(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test where seconds are exact and cost nothing."""

    def run() -> None:
        in_virtual_time(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def failed(reply: ChatAnswer | ChatFailed) -> ChatFailed:
    assert isinstance(reply, ChatFailed)
    return reply


@exactly
async def test_S3_a_slow_server_gets_more_patience_and_no_more_requests() -> None:
    """S3: twice as much after every timeout, four times at most; attempts are the bound."""
    house = House((5.0, SILENT), attempts=5, total_s=1000.0)
    reply = failed(await house.climb())
    assert reply.kind == "timeout"
    assert house.patience == [1.0, 2.0, 4.0, 4.0, 4.0]
    assert len(house.sent) == len(reply.attempts) == 5


@exactly
async def test_S3_other_failures_are_no_reason_for_patience() -> None:
    """S3: an error comes at once, however long one waits."""
    house = House((0.0, ERROR), (0.0, SILENT), (0.0, ERROR), (0.0, WHOLE), attempts=4)
    assert isinstance(await house.climb(), ChatAnswer)
    assert house.patience == [1.0, 1.0, 2.0, 2.0]


@exactly
async def test_a_failed_try_goes_to_another_endpoint() -> None:
    """And back, when both have failed as often."""
    house = House((1.0, ERROR), (1.0, ERROR), (1.0, WHOLE), endpoints=("one", "two"))
    assert isinstance(await house.climb(), ChatAnswer)
    assert [name for _, name in house.sent] == ["one", "two", "one"]
    assert [number for number, _ in house.noted] == [1, 2, 3]


@exactly
async def test_the_answer_says_what_its_own_try_took() -> None:
    """Neither the queue before it nor the tries that failed: none of these is the agent's time."""
    house = House((7.0, ERROR), (3.0, WHOLE), concurrency_start=1, backoff_s=5.0, backoff_cap_s=5.0)
    first, second = await house.climb_all(2)
    for reply in (first, second):
        assert isinstance(reply, ChatAnswer)
        assert reply.seconds == 3.0
        assert reply.attempts[-1].seconds == 3.0
    assert house.now > 10.0


@exactly
async def test_waiting_for_a_place_is_no_trying() -> None:
    """The queue is back-pressure: the total clock counts tries and the waits between them."""
    house = House((6.0, WHOLE), concurrency_start=1, concurrency=1, attempt_s=6.5, total_s=7.0)
    replies = await house.climb_all(50)
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    assert house.now == 300.0
    assert house.limit_s == [7.0] * 50


@exactly
async def test_the_total_clock_bounds_the_last_try_and_the_wait_before_it() -> None:
    """A try gets what is left; a wait that would outlast it ends the call at once."""
    house = House((4.0, ERROR), total_s=10.0, attempts=9)
    reply = failed(await house.climb())
    assert reply.kind == "server_error"
    assert [round(limit) for limit in house.limit_s] == [10, 6, 2]
    assert house.now < 13.0
    late = House((4.0, ERROR), total_s=5.0, backoff_s=1e6, backoff_cap_s=1e6)
    assert failed(await late.climb()).kind == "server_error"
    assert late.now == pytest.approx(4.0)


@exactly
async def test_a_retry_that_the_budget_has_not_got_waits_for_its_turn() -> None:
    """S3: ten calls that fail together do not come again together, and none is given up."""
    house = House(
        *[(1.0, ERROR)] * 10, (1.0, WHOLE), retry_share=0.0, retry_reserve=1, backoff_s=1e-9
    )
    replies = await house.climb_all(10)
    assert all(isinstance(reply, ChatAnswer) for reply in replies)
    turns = [round(when - 1.0, 6) for when, _ in house.sent[10:]]
    assert turns == [round(number / 10, 6) for number in range(10)]


@exactly
async def test_probes_are_no_attempts() -> None:
    """A call that probes for all others is not the first that is given up."""
    house = House(
        (1.0, DOWN),
        *[(1.0, DOWN)] * 8,
        (1.0, WHOLE),
        attempts=2,
        breaker_failures=1,
        breaker_cooldown_s=1.0,
        outage_s=HOUR_S,
    )
    reply = await house.climb()
    assert isinstance(reply, ChatAnswer)
    assert [attempt.outcome for attempt in reply.attempts] == ["transport"] * 9 + ["ok"]
    assert [number for number, _ in house.noted] == list(range(1, 11))


@exactly
async def test_an_outage_of_hours_costs_a_call_nothing() -> None:
    """The probes' time and the waits between them are the outage's, not the call's."""
    house = House(
        *[(60.0, SILENT)] * 200,
        (1.0, WHOLE),
        attempts=2,
        breaker_failures=1,
        breaker_cooldown_s=10.0,
        outage_s=24 * HOUR_S,
        attempt_s=90.0,
        total_s=120.0,
        backoff_s=0.5,
        backoff_cap_s=30.0,
    )
    reply = await house.climb()
    assert isinstance(reply, ChatAnswer)
    assert house.now > 6 * HOUR_S


@exactly
async def test_an_outage_that_lasts_too_long_ends_the_call() -> None:
    """Also that of a call which probes in between; what was wrong is in the detail."""
    house = House(
        (1.0, DOWN), breaker_failures=1, breaker_cooldown_s=10.0, outage_s=HOUR_S, total_s=60.0
    )
    replies = [failed(reply) for reply in await house.climb_all(5)]
    assert {(reply.kind, reply.fatal) for reply in replies} == {("breaker_open", False)}
    assert all("transport: ConnectError" in reply.detail for reply in replies)
    assert all("(one)" in reply.detail for reply in replies)
    assert HOUR_S <= house.now <= HOUR_S + 61.0
    assert house.pool.waiting == house.pool.in_flight("one") == 0


@exactly
async def test_an_endpoint_that_never_answered_is_not_waited_for_that_long() -> None:
    """Nor is one call after the other: who comes later is let go at once. The detail says where."""
    house = House(
        (1.0, DOWN),
        answered=False,
        breaker_failures=1,
        breaker_cooldown_s=10.0,
        first_answer_s=600.0,
        outage_s=24 * HOUR_S,
    )
    for _ in range(3):
        replies = [failed(reply) for reply in await house.climb_all(5)]
        assert {reply.kind for reply in replies} == {"breaker_open"}
        assert {reply.detail for reply in replies} == {
            "no endpoint of role search has answered yet, in 600 s: one http://one/v1: ConnectError"
        }
    assert 600.0 <= house.now <= 700.0


@exactly
async def test_a_probe_that_is_refused_has_shown_that_the_server_is_there() -> None:
    """A 429 closes the breaker, and the call steps back as after any other."""
    busy = Failure("rate_limit", "HTTP 429")
    house = House(
        (1.0, DOWN),
        (1.0, busy),
        (1.0, WHOLE),
        breaker_failures=1,
        breaker_cooldown_s=10.0,
        backoff_s=5.0,
        backoff_cap_s=5.0,
    )
    assert isinstance(await house.climb(), ChatAnswer)
    back = 5.0 * jitter(house.plan("hi").key, 2)
    assert back > 0.1
    assert [when for when, _ in house.sent] == pytest.approx([0.0, 11.0, 12.0 + back])


@exactly
async def test_a_cancelled_try_is_in_the_accounts() -> None:
    """S12: the endpoint worked on it; it says nothing about the endpoint, and the place is free."""
    house = House((1.0, ERROR), (100.0, WHOLE), breaker_failures=2)
    with anyio.move_on_after(5.0):
        await house.climb()
    number, attempt = house.noted[-1]
    assert (number, attempt.outcome, attempt.usage) == (2, "cancelled", Usage())
    assert attempt.seconds == pytest.approx(4.0, abs=0.1)
    assert house.pool.in_flight("one") == 0
    assert house.ladder.spending.calls == 2


@exactly
async def test_a_call_that_is_cancelled_in_the_queue_is_in_no_accounts() -> None:
    """Nothing was sent for it (S11)."""
    house = House((10.0, WHOLE), concurrency_start=1, concurrency=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(house.climb, "first")
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(5.0):
            await house.climb("second")
    assert [attempt.outcome for _, attempt in house.noted] == ["ok"]
    assert house.ladder.spending.calls == 1


@exactly
async def test_accounts_that_do_not_answer_hold_no_cancelled_call() -> None:
    """Whoever stops the run must not wait for them."""
    house = House((100.0, WHOLE))

    async def stuck(
        number: int, attempt: Attempt, started: datetime, endpoint: ResolvedEndpoint
    ) -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(5.0):
        await house.ladder.climb(house.plan("hi"), stuck)
    assert house.now < 10.0


@exactly
async def test_S18_a_limit_ends_calls_before_they_are_sent() -> None:
    """S18: exactly as many are sent as the limit says, those in the queue included."""
    bound = LimitSettings(max_calls=5, max_tokens=None, max_usd=None)
    house = House((1.0, WHOLE), limits=bound, concurrency_start=2, concurrency=2)
    replies = await house.climb_all(40)
    assert len(house.sent) == 5
    assert sum(isinstance(reply, ChatAnswer) for reply in replies) == 5
    over = [reply for reply in replies if isinstance(reply, ChatFailed)]
    assert {(reply.kind, reply.fatal, reply.attempts) for reply in over} == {("budget", False, ())}
    assert all(reply.detail.startswith("limits.max_calls = 5") for reply in over)
    assert house.pool.in_flight("one") == 0


@exactly
async def test_S18_a_limit_that_is_reached_is_said_at_once() -> None:
    """S18: nobody waits for an endpoint that he may not ask."""
    bound = LimitSettings(max_calls=1, max_tokens=None, max_usd=None)
    house = House((1.0, DOWN), limits=bound, breaker_failures=1, breaker_cooldown_s=60.0)
    first = failed(await house.climb("one"))
    second = failed(await house.climb("two"))
    assert (first.kind, len(first.attempts)) == ("budget", 1)
    assert (second.kind, second.attempts) == ("budget", ())
    assert house.now == 1.0


@exactly
async def test_S18_what_is_in_flight_is_paid_for() -> None:
    """S18: tokens are known when an answer is whole; then nothing more is sent, no retry either."""
    bound = LimitSettings(max_calls=None, max_tokens=10, max_usd=None)
    house = House((1.0, ERROR), (1.0, WHOLE), limits=bound, concurrency_start=4, backoff_s=1e-9)
    replies = await house.climb_all(4)
    assert [reply.usage.prompt_tokens for reply in replies if isinstance(reply, ChatAnswer)] == [
        3
    ] * 3
    (over,) = [reply for reply in replies if isinstance(reply, ChatFailed)]
    assert (over.kind, [attempt.outcome for attempt in over.attempts]) == (
        "budget",
        ["server_error"],
    )
    assert len(house.sent) == 4
    assert house.ladder.spending.tokens == 15


@exactly
async def test_S13_a_bug_surfaces_at_once() -> None:
    """S13: what is no failure of HTTP is not retried, and does not speak against the endpoint."""
    house = House((1.0, RuntimeError("a hook")), (1.0, WHOLE), breaker_failures=1)
    with pytest.raises(RuntimeError, match="a hook"):
        await house.climb()
    assert len(house.sent) == 1
    assert house.pool.in_flight("one") == 0
    assert isinstance(await house.climb(), ChatAnswer)
    assert [round(when, 6) for when, _ in house.sent] == [0.0, 1.0]


def test_jitter_is_repeatable_and_spread() -> None:
    """The same call waits the same; many calls fill [0, 1)."""
    values = [jitter(f"k{i}", 1) for i in range(1000)]
    assert values == [jitter(f"k{i}", 1) for i in range(1000)]
    assert 0.45 < sum(values) / 1000 < 0.55
    assert min(values) < 0.01
    assert max(values) > 0.99
