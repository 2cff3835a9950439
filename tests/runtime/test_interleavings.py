"""P1 as a property: whatever happens in whatever order, every ask ends exactly once.

A run is a random list of steps against three actors (``top`` asks ``middle`` asks ``low``):
bursts of asks that succeed, last, crash or are passed on, with and without a timeout; tells;
cancellations of earlier asks; pauses. Then one of several ends. With ``settle`` nothing is
stopped before every ask has ended by itself: otherwise a stuck system would pass, because the
stop answers what is stuck.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors.runtime.errors import AskFailed, AskTimeout, GaveUp, PoisonMessage
from actors.runtime.stats import ActorStats
from actors.runtime.supervisor import Supervisor
from protocol.base import Request
from tests.runtime.support import Boom, Do, Done, DoSafely, Journal, Note, Worker, settings, worker


class Ask(NamedTuple):
    """Ask an actor; ``act`` is what its handler does, ``timeout`` in units of time."""

    actor: str
    act: str
    units: int
    safely: bool
    timeout: int | None
    times: int = 1


class Tell(NamedTuple):
    """Tell an actor."""

    actor: str
    act: str
    units: int


class Cancel(NamedTuple):
    """Cancel the n-th ask so far, counted around."""

    nth: int


class Pause(NamedTuple):
    """Let time pass."""

    units: int


Step = Ask | Tell | Cancel | Pause
End = Literal["settle", "leave", "drain", "stop", "raise", "cancel"]

actor_names = st.sampled_from(["top", "middle", "low"])
acts = st.sampled_from(["ok", "last", "last", "last", "relay", "relay", "crash", "crash-late"])
units = st.integers(1, 6)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(
            Ask,
            actor_names,
            acts,
            units,
            st.booleans(),
            st.none() | st.integers(0, 8),
            st.integers(1, 5),
        ),
        st.builds(Tell, actor_names, acts, units),
        st.builds(Cancel, st.integers(0, 30)),
        st.builds(Pause, units),
    ),
    max_size=20,
)
ends: st.SearchStrategy[End] = st.sampled_from(
    ["settle", "settle", "leave", "drain", "stop", "raise", "cancel"]
)


class Run:
    """One run of the steps, and what it left. ``unit_s``: the unit of time in seconds."""

    def __init__(self, unit_s: float, max_restarts: int) -> None:
        self.unit_s = unit_s
        self.asked = 0
        self.endings: Counter[int] = Counter()
        self.kinds: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.only_once: list[str] = []
        self.problems: list[str] = []
        self.journal = Journal()
        self.left = False
        self.raised: str | None = None
        self.stats: tuple[ActorStats, ...] = ()
        self._scopes: list[anyio.CancelScope] = []
        self._ended = anyio.Event()
        knobs = settings(
            mailbox_size=1,
            max_restarts=max_restarts,
            backoff_s=unit_s,
            backoff_cap_s=2 * unit_s,
            drain_s=5 * unit_s,
        )
        specs = [
            worker(self.journal, "top", self._act, asks=("middle",), concurrency=2),
            worker(self.journal, "middle", self._act, asks=("low",), strategy="rest_for_one"),
            worker(self.journal, "low", self._act, concurrency=3),
        ]
        self.system = Supervisor(specs, knobs)

    async def _act(self, worker: Worker, text: str) -> str:
        self.begun[f"{worker.name} {text}"] += 1
        act, length, ident = text.split()
        if act == "crash":
            raise Boom(text)
        if act in ("last", "crash-late"):
            await anyio.sleep(int(length) * self.unit_s)
        if act == "crash-late":
            raise Boom(text)
        if act == "relay" and worker.peers:
            (peer,) = worker.peers.values()
            request = Do if int(ident) % 2 else DoSafely
            await peer.ask(
                request(text=f"{'last' if int(ident) % 3 else 'crash'} {length} {ident}")
            )
        return text

    async def _ask(self, ident: int, step: Ask, scope: anyio.CancelScope) -> None:
        text = f"{step.act} {step.units} {ident}"
        request: Request[Done] = DoSafely(text=text) if step.safely else Do(text=text)
        if not step.safely:
            self.only_once.append(f"{step.actor} {text}")
        timeout_s = None if step.timeout is None else step.timeout * self.unit_s
        due = anyio.current_time() + (timeout_s or 0.0)
        how = "cancelled"
        try:
            with scope:
                done = await self.system.address(step.actor).ask(request, timeout_s=timeout_s)
                how = "reply"
                if done.text != text:
                    self.problems.append(f"{text} was answered with {done.text}")
        except AskFailed as exc:
            how = type(exc).__name__
            if isinstance(exc, AskTimeout) and timeout_s is None:
                self.problems.append(f"{text} has no deadline and timed out")
            if isinstance(exc, PoisonMessage) and exc.actor == step.actor and not step.safely:
                self.problems.append(f"{text} is not idempotent and was handed on")
        if timeout_s is not None and self.unit_s == 1.0 and anyio.current_time() > due:
            self.problems.append(f"{text} ended {anyio.current_time() - due} s after its deadline")
        self.endings[ident] += 1
        self.kinds[how] += 1
        ended, self._ended = self._ended, anyio.Event()
        ended.set()

    async def _tell(self, ident: int, step: Tell) -> None:
        try:
            await self.system.address(step.actor).tell(
                Note(text=f"{step.act} {step.units} {ident}")
            )
        except AskFailed as exc:
            self.kinds[f"tell {type(exc).__name__}"] += 1

    async def take(self, steps: list[Step], end: End) -> None:
        """Run the steps in one system, and end it. Whoever waits for ever is an error."""
        with anyio.fail_after(5000 * self.unit_s):
            async with anyio.create_task_group() as askers:
                try:
                    with anyio.CancelScope() as scope:
                        async with self.system:
                            await self._steps(steps, askers)
                            await self._end(end, scope)
                        self.left = True
                except (GaveUp, LookupError) as exc:
                    self.raised = type(exc).__name__
        self.stats = self.system.stats()

    async def _steps(self, steps: list[Step], askers: TaskGroup) -> None:
        ident = 0
        for step in steps:
            ident += 10
            match step:
                case Ask():
                    for once in range(step.times):
                        self.asked += 1
                        self._scopes.append(anyio.CancelScope())
                        askers.start_soon(self._ask, ident + once, step, self._scopes[-1])
                case Tell():
                    askers.start_soon(self._tell, ident, step)
                case Cancel() if self._scopes:
                    self._scopes[step.nth % len(self._scopes)].cancel()
                case Pause():
                    await anyio.sleep(step.units * self.unit_s)

    async def _end(self, end: End, scope: anyio.CancelScope) -> None:
        match end:
            case "settle":
                while self.endings.total() < self.asked:
                    await self._ended.wait()
            case "drain":
                self.system.request_stop("drain")
                await self.system.wait_stopped()
            case "stop":
                self.system.request_stop("drain")
                self.system.request_stop("stop")
            case "raise":
                raise LookupError
            case "cancel":
                scope.cancel()
                await anyio.sleep_forever()

    def check(self, end: End) -> None:
        """Every property that holds for every run."""
        if self.raised == "GaveUp":
            assert any(stats.crashes for stats in self.stats)
        else:
            assert self.raised == ("LookupError" if end == "raise" else None)
            assert self.left == (end not in ("raise", "cancel"))
            if end == "settle":
                assert self.kinds["ActorDead"] == 0
        assert self.problems == []
        assert self.endings.total() == self.asked
        assert all(times == 1 for times in self.endings.values())
        assert [text for text in self.only_once if self.begun[text] > 1] == []
        assert self.kinds.keys() <= {
            "reply",
            "cancelled",
            "ActorCrashed",
            "ActorDead",
            "AskTimeout",
            "PoisonMessage",
            "tell ActorDead",
        }
        assert self.system.pending_asks == 0
        for stats in self.stats:
            assert (stats.state, stats.depth, stats.in_flight, stats.senders_waiting) == (
                "dead",
                0,
                0,
                0,
            )
            assert stats.high_water <= stats.size == 1
        starts, stops = self.journal.starting("start"), self.journal.starting("stop")
        assert Counter(line.split()[1] for line in starts) == Counter(
            line.split()[1] for line in stops
        )


def on_trio(steps: list[Step], max_restarts: int, end: End) -> Run:
    """Its scheduler shuffles, and seconds cost nothing."""
    clock = MockClock(autojump_threshold=0)

    async def take() -> Run:
        run = Run(1.0, max_restarts)
        await run.take(steps, end)
        return run

    with capture_logs():
        run = anyio.run(take, backend="trio", backend_options={"clock": clock})
    run.check(end)
    return run


@examples(max_examples=250, deadline=None)
@given(steps, st.sampled_from([0, 2, 1000]), ends)
def test_p1_every_ask_ends_exactly_once(steps: list[Step], max_restarts: int, end: End) -> None:
    """In exact, virtual time."""
    on_trio(steps, max_restarts, end)


@examples(max_examples=40, deadline=None)
@given(steps, st.sampled_from([0, 2, 1000]), ends)
def test_p1_every_ask_ends_exactly_once_on_asyncio(
    steps: list[Step], max_restarts: int, end: End
) -> None:
    """In real time, with a unit of two milliseconds."""

    async def take() -> Run:
        run = Run(0.002, max_restarts)
        await run.take(steps, end)
        return run

    with capture_logs():
        run = anyio.run(take, backend="asyncio")
    run.check(end)


@pytest.mark.parametrize("safely", [True, False])
def test_p1_the_property_sees_every_kind_of_ending(safely: bool) -> None:
    """A run that reaches them all, so that the property above is not vacuous."""
    run = on_trio(
        [
            Ask("low", "ok", 1, safely, None),
            Ask("low", "last", 3, safely, 1),
            Ask("top", "relay", 3, safely, None),
            Pause(6),
            Ask("low", "crash", 1, safely, None),
            Pause(6),
            Ask("low", "last", 6, safely, None),
            Pause(1),
            Cancel(4),
            Ask("middle", "last", 6, safely, None, 5),
            Pause(1),
        ],
        1000,
        "stop",
    )
    assert run.kinds.keys() == {
        "reply",
        "cancelled",
        "AskTimeout",
        "ActorDead",
        "PoisonMessage" if safely else "ActorCrashed",
    }
