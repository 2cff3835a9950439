"""P1 as a property: whatever happens in whatever order, every ask ends exactly once.

A run is a random list of steps against three actors (``top`` asks ``middle`` asks ``low``):
asks and tells that succeed, last, crash once or always, go through, with and without a
timeout; cancellations of earlier asks; pauses; and at some point perhaps a stop.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import anyio
import pytest
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


class Stop(NamedTuple):
    """Ask the system to stop; twice: at once."""


Step = Ask | Tell | Cancel | Pause | Stop

actor_names = st.sampled_from(["top", "middle", "low"])
acts = st.sampled_from(["ok", "last", "last", "relay", "relay", "crash", "crash-late"])
units = st.integers(1, 6)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(Ask, actor_names, acts, units, st.booleans(), st.none() | st.integers(0, 8)),
        st.builds(Ask, actor_names, acts, units, st.booleans(), st.none() | st.integers(0, 8)),
        st.builds(Tell, actor_names, acts, units),
        st.builds(Cancel, st.integers(0, 30)),
        st.builds(Pause, units),
        st.builds(Stop),
    ),
    max_size=30,
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
        self.gave_up = False
        self.stats: tuple[ActorStats, ...] = ()
        self._scopes: list[anyio.CancelScope] = []
        knobs = settings(
            mailbox_size=2,
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

    async def _tell(self, ident: int, step: Tell) -> None:
        try:
            await self.system.address(step.actor).tell(
                Note(text=f"{step.act} {step.units} {ident}")
            )
        except AskFailed as exc:
            self.kinds[f"tell {type(exc).__name__}"] += 1

    async def take(self, steps: list[Step]) -> None:
        """Run the steps in one system, and leave it. Whoever waits for ever is an error."""
        with anyio.fail_after(1000 * self.unit_s):
            await self._take(steps)
        self.stats = self.system.stats()

    async def _take(self, steps: list[Step]) -> None:
        async with anyio.create_task_group() as askers:
            try:
                async with self.system:
                    for ident, step in enumerate(steps):
                        match step:
                            case Ask():
                                self.asked += 1
                                self._scopes.append(anyio.CancelScope())
                                askers.start_soon(self._ask, ident, step, self._scopes[-1])
                            case Tell():
                                askers.start_soon(self._tell, ident, step)
                            case Cancel() if self._scopes:
                                self._scopes[step.nth % len(self._scopes)].cancel()
                            case Pause():
                                await anyio.sleep(step.units * self.unit_s)
                            case Stop():
                                self.system.request_stop("a step")
            except GaveUp:
                self.gave_up = True

    def check(self) -> None:
        """Every property that holds for every run."""
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
            assert stats.high_water <= stats.size == 2
        starts, stops = self.journal.starting("start"), self.journal.starting("stop")
        assert Counter(line.split()[1] for line in starts) == Counter(
            line.split()[1] for line in stops
        )


def on_trio(steps: list[Step], max_restarts: int) -> Run:
    """Its scheduler shuffles, and seconds cost nothing."""
    run = Run(1.0, max_restarts)
    clock = MockClock(autojump_threshold=0)
    with capture_logs():
        anyio.run(run.take, steps, backend="trio", backend_options={"clock": clock})
    run.check()
    return run


@examples(max_examples=200, deadline=None)
@given(steps, st.sampled_from([0, 2, 1000]))
def test_p1_every_ask_ends_exactly_once(steps: list[Step], max_restarts: int) -> None:
    """In exact, virtual time."""
    on_trio(steps, max_restarts)


@examples(max_examples=40, deadline=None)
@given(steps, st.sampled_from([0, 2, 1000]))
def test_p1_every_ask_ends_exactly_once_on_asyncio(steps: list[Step], max_restarts: int) -> None:
    """In real time, with a unit of two milliseconds."""
    run = Run(0.002, max_restarts)
    with capture_logs():
        anyio.run(run.take, steps, backend="asyncio")
    run.check()


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
            Ask("middle", "last", 6, safely, None),
            Pause(1),
            Stop(),
            Ask("top", "ok", 1, safely, None),
        ],
        1000,
    )
    assert run.kinds.keys() == {
        "reply",
        "cancelled",
        "AskTimeout",
        "ActorDead",
        "PoisonMessage" if safely else "ActorCrashed",
    }
