"""Stops, asked for and not: drain, order, bounds, cancellation."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from actors.runtime.actor import Actor, handles
from actors.runtime.errors import ActorDead, StopFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec, Peers
from tests.runtime.support import (
    Boom,
    Do,
    Done,
    DoSafely,
    Journal,
    Note,
    Worker,
    nothing,
    obey,
    on_trio,
    outcome,
    relay,
    settings,
    worker,
)

pytestmark = pytest.mark.anyio


@on_trio
async def test_p13_a_drain_lets_work_finish_and_takes_nothing_new(journal: Journal) -> None:
    """In flight and queued work ends, its nested asks are served; from outside: refused."""

    async def twice(worker: Worker, text: str) -> str:
        await relay(worker, "sleep 2")
        journal(f"draining {worker.context.draining}")
        return await relay(worker, "sleep 2 more")

    specs = [worker(journal, "top", twice, asks=("low",)), worker(journal, "low")]
    async with Supervisor(specs, settings()) as system, anyio.create_task_group() as tasks:
        tasks.start_soon(outcome, system.address("top").ask(Do(text="x")), journal, "first")
        tasks.start_soon(outcome, system.address("top").ask(Do(text="x")), journal, "second")
        await anyio.sleep(1)
        assert not system.draining
        begun = anyio.current_time()
        system.request_stop("test")
        assert system.draining
        await outcome(system.address("top").ask(Do(text="late")), journal, "late")
        with pytest.raises(ActorDead, match="takes nothing new"):
            await system.address("low").tell(Note(text="late"))
        await system.wait_stopped()
        assert anyio.current_time() == begun + 7
    assert journal.starting("late") == ["late: ActorDead"]
    assert journal.starting("first") + journal.starting("second") == [
        "first: sleep 2 more/1",
        "second: sleep 2 more/1",
    ]
    assert journal.lines.count("draining True") == 2
    assert journal.starting("stop") == ["stop top", "stop low"]


@on_trio
async def test_p13_a_drain_ends_at_its_deadline(journal: Journal) -> None:
    """What still runs then is cancelled and its ask answered."""
    async with Supervisor([worker(journal, "a")], settings(drain_s=5.0)) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outcome, system.address("a").ask(Do(text="sleep 60")), journal, "ask")
            await anyio.wait_all_tasks_blocked()
            begun = anyio.current_time()
            system.request_stop("test")
        assert anyio.current_time() == begun + 5
    assert journal.starting("ask") == ["ask: ActorDead"]
    assert [line for line in journal.lines if line != "ask: ActorDead"] == [
        "start a 1",
        "a sleep 60",
        "a cancelled sleep 60",
        "stop a",
    ]


@on_trio
@pytest.mark.parametrize("requests", [1, 2])
async def test_p13_only_a_second_request_cuts_short(journal: Journal, requests: int) -> None:
    """A drain that ran out of time does not, although its ask ends with ActorDead too."""
    system = Supervisor([worker(journal, "a")], settings(drain_s=5.0))

    async def run() -> None:
        async with system, anyio.create_task_group() as tasks:
            tasks.start_soon(outcome, system.address("a").ask(Do(text="sleep 60")), journal, "ask")
            await anyio.wait_all_tasks_blocked()
            for _ in range(requests):
                system.request_stop("test")
            await system.wait_stopped()
            await system.address("a").tell(Note(text="late"))

    with pytest.raises(ExceptionGroup):
        await run()
    assert journal.starting("ask") == ["ask: ActorDead"]
    assert system.cut_short == (requests == 2)


@on_trio
async def test_p13_a_second_request_stops_at_once(journal: Journal) -> None:
    """Whatever is left of the drain."""
    async with (
        Supervisor([worker(journal, "a")], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome, system.address("a").ask(Do(text="sleep 60")), journal, "ask")
        await anyio.sleep(1)
        begun = anyio.current_time()
        system.request_stop("first")
        await anyio.sleep(2)
        system.request_stop("second")
        await system.wait_stopped()
        assert anyio.current_time() == begun + 2
    assert journal.starting("ask") == ["ask: ActorDead"]


@on_trio
async def test_p13_leaving_the_block_drains(journal: Journal) -> None:
    """Told work is done before the end, with the same bound."""
    async with Supervisor([worker(journal, "a")], settings(drain_s=5.0)) as system:
        for seconds in (3, 1, 60, 2):
            await system.address("a").tell(Note(text=f"sleep {seconds}"))
        begun = anyio.current_time()
    assert anyio.current_time() == begun + 5
    assert journal.lines[1:] == [
        "a sleep 3",
        "a sleep 1",
        "a sleep 60",
        "a cancelled sleep 60",
        "stop a",
    ]


@on_trio
async def test_p13_a_drain_waits_for_a_restart(journal: Journal) -> None:
    """Work handed back by a crash is in flight too."""

    async def second_time(worker: Worker, text: str) -> str:
        if worker.context.incarnation == 1:
            await anyio.sleep(1)
            raise Boom
        return text

    async with (
        Supervisor([worker(journal, "a", second_time)], settings(backoff_s=4.0)) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome, system.address("a").ask(DoSafely(text="x")), journal, "ask")
        await anyio.wait_all_tasks_blocked()
        system.request_stop("test")
    assert journal.starting("ask") == ["ask: x/2"]


@on_trio
async def test_p10_a_stop_overtakes_a_full_mailbox(journal: Journal) -> None:
    """Nothing that waits is begun; all of it gets ActorDead."""
    async with Supervisor([worker(journal, "a", mailbox_size=4)], settings()) as system:
        async with anyio.create_task_group() as tasks:
            for index in range(6):
                asked = system.address("a").ask(DoSafely(text=f"sleep 9 {index}"))
                tasks.start_soon(outcome, asked, journal, "ask")
                await anyio.wait_all_tasks_blocked()
            begun = anyio.current_time()
            system.request_stop("first")
            system.request_stop("second")
        assert anyio.current_time() == begun
    assert journal.starting("a sleep") == ["a sleep 9 0"]
    assert journal.starting("ask") == ["ask: ActorDead"] * 6


async def test_p10_control_is_served_while_handlers_run(journal: Journal) -> None:
    """A ping comes back although every slot is taken and the mailbox is full."""
    async with (
        Supervisor([worker(journal, "a", mailbox_size=1)], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(3):
            tasks.start_soon(system.address("a").ask, Do(text="sleep 99"))
            await anyio.wait_all_tasks_blocked()
        pong = await system.ping("a")
        assert (pong.actor, pong.state, pong.incarnation) == ("a", "up", 1)
        tasks.cancel_scope.cancel()
    with pytest.raises(ActorDead):
        await system.ping("a")


@on_trio
async def test_p12_cancellation_is_not_a_crash(journal: Journal) -> None:
    """No restart, no budget, no error in the log; asks from elsewhere are still answered."""
    specs = [worker(journal, "top", relay, asks=("low",)), worker(journal, "low")]
    system = Supervisor(specs, settings(max_restarts=0))
    reached = []
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(5) as scope:
                async with system:
                    asked = system.address("top").ask(Do(text="sleep 60"))
                    tasks.start_soon(outcome, asked, journal, "ask")
                    await anyio.sleep_forever()
                reached.append("never")
            reached.append(f"cancelled {scope.cancelled_caught}")
    assert reached == ["cancelled True"]
    assert journal.starting("ask") == ["ask: ActorDead"]
    assert journal.starting("start") == ["start low 1", "start top 1"]
    assert journal.starting("stop") == ["stop top", "stop low"]
    assert [stats.crashes for stats in system.stats()] == [0, 0]
    assert system.pending_asks == 0
    assert not [entry for entry in logs if entry["log_level"] in ("warning", "error")]


@on_trio
async def test_p13_on_stop_is_shielded_and_bounded(journal: Journal) -> None:
    """It runs in full under cancellation; one that hangs is left after ``stop_s``."""

    async def flush(worker: Worker) -> None:
        await anyio.sleep(2)
        journal(f"flushed {worker.name}")

    async def hang(worker: Worker) -> None:
        await anyio.sleep_forever()

    specs = [worker(journal, "low", stops=flush), worker(journal, "top", stops=hang)]
    reached = []
    begun = anyio.current_time()
    with anyio.move_on_after(1) as scope, capture_logs() as logs:
        async with Supervisor(specs, settings(), stop_s=5.0):
            await anyio.sleep_forever()
    reached.append(f"cancelled {scope.cancelled_caught}")
    assert reached == ["cancelled True"]
    assert anyio.current_time() == begun + 1 + 5 + 2
    assert journal.lines[-3:] == ["stop top", "stop low", "flushed low"]
    assert [e["actor"] for e in logs if e["event"] == "actor.stop_failed"] == ["top"]


async def test_p13_what_could_not_be_released_is_raised(journal: Journal) -> None:
    """After everything has stopped, and only if nothing worse is raised."""

    async def fail(worker: Worker) -> None:
        raise Boom("flush")

    specs = [worker(journal, "low"), worker(journal, "ledger", stops=fail), worker(journal, "top")]
    reached = []
    with pytest.raises(StopFailed, match=r"ledger: on_stop: Boom\('flush'\)") as told:
        async with Supervisor(specs, settings()):
            reached.append("block")
    assert reached == ["block"]
    assert isinstance(told.value.__cause__, Boom)
    assert journal.starting("stop") == ["stop top", "stop ledger", "stop low"]
    with pytest.raises(LookupError):
        async with Supervisor(specs, settings()):
            raise LookupError


async def test_p13_peers_still_answer_in_on_stop(journal: Journal) -> None:
    """Dependencies stop later, also when the system is draining."""

    async def flush(worker: Worker) -> None:
        await worker.peers["low"].ask(Do(text="flush"))

    specs = [worker(journal, "low"), worker(journal, "top", asks=("low",), stops=flush)]
    async with Supervisor(specs, settings()):
        journal("block")
    assert journal.lines[-4:] == ["block", "stop top", "low flush", "stop low"]


async def test_p13_a_stop_during_the_start_ends_it(journal: Journal) -> None:
    """A hanging ``on_start`` is cancelled; what comes after is not begun."""

    async def hang(worker: Worker) -> None:
        system.request_stop("test")
        await anyio.sleep_forever()

    specs = [worker(journal, "one"), worker(journal, "two", starts=hang), worker(journal, "three")]
    system = Supervisor(specs, settings())
    with pytest.raises(ActorDead, match="two: it did not start"):
        async with system:
            journal("never")
    assert journal.lines == ["start one 1", "start two 1", "stop two", "stop one"]


async def test_a_supervisor_runs_once(journal: Journal) -> None:
    """Its actors belong to one event loop and one life."""
    system = Supervisor([worker(journal, "a")], settings())
    async with system:
        journal("block")
    with pytest.raises(RuntimeError, match="runs once"):
        async with system:
            journal("never")
    assert "never" not in journal.lines


class Staller(Worker):
    """Names as stalled what is told to stall."""

    stalls: list[Do]

    def stalled(self) -> list[Do]:
        """See ``Actor``."""
        return self.stalls

    @handles(Do)
    async def do(self, request: Do) -> Done:
        """Sleep; ``stall N``: after N seconds for ever, as far as anybody can say."""
        if not request.text.startswith("stall"):
            return await super().do(request)
        await anyio.sleep(float(request.text.split()[1]))
        self.stalls.append(request)
        await anyio.sleep_forever()
        raise AssertionError("for ever")


def staller(journal: Journal, *, concurrency: int) -> ActorSpec:
    """An actor ``low`` without peers."""

    def build(_: Peers) -> Actor:
        low = Staller("low", journal, obey, {}, nothing, nothing)
        low.stalls = []
        return low

    return ActorSpec(name="low", factory=build, concurrency=concurrency, mailbox_size=1)


@on_trio
@pytest.mark.parametrize(
    ("told", "took_s"),
    [
        (("stall 0", "stall 0"), 0.0),  # at once, whatever waits behind them
        (("stall 0", "stall 3"), 3.0),  # found out in the middle of the drain
        (("stall 0", "sleep 9"), 9.0),  # what can finish is waited for
    ],
    ids=["both", "the second later", "one of two"],
)
async def test_a_drain_does_not_wait_for_what_stalls(
    journal: Journal, told: tuple[str, str], took_s: float
) -> None:
    """Nor for whoever asked for it, nor for what waits behind it."""
    specs = [
        worker(journal, "top", relay, asks=("low",), concurrency=3),
        staller(journal, concurrency=2),
    ]
    async with (
        Supervisor(specs, settings(drain_s=500.0)) as system,
        anyio.create_task_group() as tasks,
    ):
        for text in (*told, "stall 0") if took_s < 9 else told:
            asked = system.address("top").ask(Do(text=text))
            tasks.start_soon(outcome, asked, journal, text)
            await anyio.wait_all_tasks_blocked()
        begun = anyio.current_time()
        with capture_logs() as lines:
            system.request_stop("test")
            await system.wait_stopped()
        assert took_s <= anyio.current_time() - begun <= took_s + 0.25
    assert [line["event"] for line in lines].count("runtime.stalled") == 1
    assert "stall 0: ActorDead" in journal.lines
