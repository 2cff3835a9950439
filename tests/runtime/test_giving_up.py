"""Escalation and strategies: when one actor's crash is everybody's business."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from actors.runtime.errors import ActorDead, GaveUp
from actors.runtime.supervisor import Supervisor
from tests.runtime.support import (
    Boom,
    Do,
    DoSafely,
    Journal,
    Note,
    Worker,
    echo,
    on_trio,
    outcome,
    settings,
    worker,
)

pytestmark = pytest.mark.anyio


@on_trio
async def test_p4_slow_crashes_never_exhaust_the_budget(journal: Journal) -> None:
    """10 crashes 60 s apart, with 3 allowed in 60 s."""
    async with Supervisor([worker(journal, "a")], settings()) as system:
        for _ in range(10):
            await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
            await anyio.sleep(60)
        assert (await system.address("a").ask(Do(text="next"))).incarnation == 11
        (stats,) = system.stats()
        assert (stats.crashes, stats.restarts) == (10, 10)
    assert journal.starting("ask") == ["ask: ActorCrashed"] * 10


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_p4_one_more_within_the_period_gives_up(journal: Journal, most: int) -> None:
    """``most`` are survived; the next raises out of the block, named, with its cause."""
    reached = []

    async def run() -> None:
        async with Supervisor([worker(journal, "a")], settings(max_restarts=most)) as system:
            for _ in range(most):
                await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
            assert (await system.address("a").ask(Do(text="ok"))).incarnation == most + 1
            reached.append("budget spent")
            await outcome(system.address("a").ask(Do(text="boom")), journal, "last")
            await outcome(system.address("a").ask(Do(text="next")), journal, "after")

    with pytest.raises(GaveUp, match=f"a: more than {most} crashes within 60.0 s") as told:
        await run()
    assert reached == ["budget spent"]
    assert journal.starting("last") == ["last: ActorCrashed"]
    assert journal.starting("after") in ([], ["after: ActorDead"])
    assert isinstance(told.value.__cause__, Boom)
    assert told.value.actor == "a"


@pytest.mark.parametrize("how", ["waits", "asks", "catches", "returns"])
async def test_p5_giving_up_raises_out_whatever_the_block_does(journal: Journal, how: str) -> None:
    """Also when the block waits for something else, or swallows the failed ask and ends."""
    reached = []

    async def run() -> None:
        async with Supervisor([worker(journal, "a")], settings(max_restarts=0)) as system:
            await system.address("a").tell(Note(text="boom"))
            reached.append("told")
            if how == "waits":
                await anyio.sleep_forever()
            elif how == "asks":
                await system.address("a").ask(Do(text="x"))
            elif how == "catches":
                await outcome(system.address("a").ask(Do(text="x")), journal, "ask")
        reached.append("went on as if nothing had happened")

    with pytest.raises(GaveUp):
        await run()
    assert reached == ["told"]
    if how == "catches":
        assert journal.starting("ask") == ["ask: ActorDead"]


async def test_p5_giving_up_is_not_hidden_by_a_cancellation(journal: Journal) -> None:
    """An outer scope that is cancelled meanwhile must not swallow it."""
    scope = anyio.CancelScope()
    reached = []

    async def stops(worker: Worker) -> None:
        scope.cancel()

    async def run() -> None:
        with scope:
            spec = worker(journal, "a", stops=stops)
            async with Supervisor([spec], settings(max_restarts=0)) as system:
                await system.address("a").tell(Note(text="boom"))
                reached.append("told")
                await anyio.sleep_forever()
        reached.append("went on as if nothing had happened")

    with pytest.raises(GaveUp):
        await run()
    assert reached == ["told"]
    assert scope.cancel_called


async def test_p5_a_bug_of_the_block_beside_it_is_noted(journal: Journal) -> None:
    """GaveUp is raised, the other is not lost."""

    async def run() -> None:
        async with Supervisor([worker(journal, "a")], settings(max_restarts=0)) as system:
            try:
                await system.address("a").ask(Do(text="boom"))
            finally:
                raise LookupError("the block's own")

    with pytest.raises(GaveUp) as told:
        await run()
    assert told.value.__notes__ == ['beside it the block raised LookupError("the block\'s own")']


async def test_p5_pending_asks_fail_and_blocked_senders_wake(journal: Journal) -> None:
    """In the handler, in the mailbox, in front of it, at another actor: all end."""
    gate = anyio.Event()
    reached = []

    async def act(worker: Worker, text: str) -> str:
        await gate.wait()
        raise Boom

    async def tell(system: Supervisor) -> None:
        try:
            await system.address("a").tell(Note(text="blocked"))
        except ActorDead:
            journal("tell: ActorDead")

    specs = [worker(journal, "a", act, mailbox_size=1), worker(journal, "b")]
    system = Supervisor(specs, settings(max_restarts=0))

    async def run() -> None:
        async with system, anyio.create_task_group() as tasks:
            for name, text in [("a", "hand"), ("a", "queue"), ("a", "front"), ("b", "sleep 99")]:
                asked = system.address(name).ask(DoSafely(text=text))
                tasks.start_soon(outcome, asked, journal, text)
                await anyio.wait_all_tasks_blocked()
            tasks.start_soon(tell, system)
            await anyio.wait_all_tasks_blocked()
            assert system.pending_asks == 4
            reached.append("all wait")
            gate.set()

    with pytest.raises(GaveUp):
        await run()
    assert reached == ["all wait"]
    assert sorted(line for line in journal.lines if ": " in line) == [
        "front: ActorDead",
        "hand: ActorCrashed",
        "queue: ActorDead",
        "sleep 99: ActorDead",
        "tell: ActorDead",
    ]
    assert system.pending_asks == 0


async def test_p5_a_block_that_fails_stops_the_system_and_passes_unchanged(
    journal: Journal,
) -> None:
    """Not wrapped in a group; running work is cut short."""

    async def run() -> None:
        async with Supervisor([worker(journal, "a")], settings()) as system:
            await system.address("a").tell(Note(text="sleep 99"))
            await anyio.wait_all_tasks_blocked()
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await run()
    assert journal.lines[-2:] == ["a cancelled sleep 99", "stop a"]


async def test_p6_after_giving_up_the_others_stop_in_reverse_order(journal: Journal) -> None:
    """The one at fault first: it is dead already."""
    specs = [
        worker(journal, "one"),
        worker(journal, "two", asks=("one",)),
        worker(journal, "three", asks=("two",)),
    ]

    async def run() -> None:
        async with Supervisor(specs, settings(max_restarts=0)) as system:
            await system.address("two").ask(Do(text="boom"))

    with pytest.raises(GaveUp), capture_logs() as logs:
        await run()
    assert journal.starting("stop") == ["stop two", "stop three", "stop one"]
    assert [entry["actor"] for entry in logs if entry["event"] == "runtime.gave_up"] == ["two"]


async def test_p6_one_for_one_leaves_the_others_alone(journal: Journal) -> None:
    """Only the one that crashed is born again."""
    specs = [worker(journal, name) for name in ("one", "two", "three")]
    async with Supervisor(specs, settings()) as system:
        await outcome(system.address("two").ask(Do(text="boom")), journal, "ask")
        await system.address("two").ask(Do(text="x"))
    assert journal.starting("start")[3:] == ["start two 2"]


async def test_p6_rest_for_one_restarts_what_was_started_after(journal: Journal) -> None:
    """Stopped last first, started after; their own crashes and budget stay untouched."""
    specs = [
        worker(journal, "one"),
        worker(journal, "cache", strategy="rest_for_one"),
        worker(journal, "client", asks=("cache",)),
        worker(journal, "user", asks=("client",)),
    ]
    async with Supervisor(specs, settings(max_restarts=1)) as system:
        async with anyio.create_task_group() as tasks:
            asked = system.address("user").ask(Do(text="sleep 99"))
            tasks.start_soon(outcome, asked, journal, "plain")
            await anyio.wait_all_tasks_blocked()
            await outcome(system.address("cache").ask(Do(text="boom")), journal, "culprit")
        for name in ("one", "cache", "client", "user"):
            done = await system.address(name).ask(Do(text="x"))
            assert done.incarnation == (1 if name == "one" else 2)
        assert [stats.crashes for stats in system.stats()] == [0, 1, 0, 0]
    lives = [line for line in journal.lines if line.split()[0] in ("start", "stop")]
    assert lives[4:8] == ["stop cache", "stop user", "stop client", "start cache 2"]
    assert sorted(lives[8:10]) == ["start client 2", "start user 2"]
    assert lives[10:] == ["stop user", "stop client", "stop cache", "stop one"]
    assert journal.starting("plain") == ["plain: ActorCrashed"]


async def test_p6_rest_for_one_hands_idempotent_work_on(journal: Journal) -> None:
    """A later actor's message in hand is repeated, and not counted as a crash of its own."""
    begun = {incarnation: anyio.Event() for incarnation in (1, 2, 3)}

    async def third_time(worker: Worker, text: str) -> str:
        worker.journal(f"{worker.name} {text}")
        begun[worker.context.incarnation].set()
        if worker.context.incarnation < 3:
            await anyio.sleep_forever()
        return text

    specs = [worker(journal, "low", strategy="rest_for_one"), worker(journal, "high", third_time)]
    async with Supervisor(specs, settings()) as system, anyio.create_task_group() as tasks:
        tasks.start_soon(outcome, system.address("high").ask(DoSafely(text="x")), journal, "ask")
        for incarnation in (1, 2):
            with anyio.fail_after(5):
                await begun[incarnation].wait()
            await outcome(system.address("low").ask(Do(text="boom")), journal, "culprit")
    assert journal.lines.count("high x") == 3
    assert journal.starting("ask") == ["ask: x/3"]


async def test_p6_a_message_that_crashes_through_rest_for_one_is_poison(journal: Journal) -> None:
    """The asker is restarted with the actor it crashed, and must not ask the same for ever."""

    async def crash_low(worker: Worker, text: str) -> str:
        worker.journal(f"{worker.name} {text}")
        return (await worker.peers["low"].ask(DoSafely(text="boom"))).text

    specs = [
        worker(journal, "low", strategy="rest_for_one"),
        worker(journal, "high", crash_low, asks=("low",)),
    ]
    async with Supervisor(specs, settings()) as system:
        await outcome(system.address("high").ask(DoSafely(text="x")), journal, "ask")
        assert [stats.crashes for stats in system.stats()] == [2, 0]
    assert journal.starting("ask") == ["ask: PoisonMessage"]
    assert journal.lines.count("high x") == 2


@on_trio
async def test_p6_a_stop_reaches_actors_that_are_held_or_pausing(journal: Journal) -> None:
    """The cause pauses for long, the rest is held down: the end does not wait for either."""
    specs = [worker(journal, "low", strategy="rest_for_one"), worker(journal, "high")]
    knobs = settings(backoff_s=1000.0, backoff_cap_s=1000.0)
    async with Supervisor(specs, knobs) as system:
        await outcome(system.address("low").ask(Do(text="boom")), journal, "ask")
        await anyio.wait_all_tasks_blocked()
        assert [stats.state for stats in system.stats()] == ["restarting"] * 2
        begun = anyio.current_time()
    assert anyio.current_time() == begun
    assert journal.starting("start") == ["start low 1", "start high 1"]


@on_trio
async def test_p6_two_actors_may_take_the_rest_down_at_once(journal: Journal) -> None:
    """The later of them waits for the earlier; all are up in the end."""
    specs = [
        worker(journal, "one", strategy="rest_for_one"),
        worker(journal, "two", strategy="rest_for_one"),
        worker(journal, "three", echo),
    ]
    async with Supervisor(specs, settings(backoff_s=1.0)) as system:
        async with anyio.create_task_group() as tasks:
            for name in ("two", "one"):
                asked = system.address(name).ask(Do(text="boom"))
                tasks.start_soon(outcome, asked, journal, "ask")
        for name in ("one", "two", "three"):
            await system.address(name).ask(Do(text="x"))
        assert [stats.state for stats in system.stats()] == ["up"] * 3
        assert [stats.crashes for stats in system.stats()] == [1, 1, 0]
    assert journal.starting("ask") == ["ask: ActorCrashed"] * 2
