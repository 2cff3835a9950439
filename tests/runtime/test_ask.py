"""Asks and tells between healthy actors: replies, deadlines, cancellation, chains."""

from __future__ import annotations

import math

import anyio
import pytest
from structlog.testing import capture_logs

from actors.runtime.address import Address
from actors.runtime.envelope import LINEAGE
from actors.runtime.errors import ActorDead, AskCycle, AskFailed, AskTimeout, WiringError
from actors.runtime.supervisor import Supervisor
from tests.runtime.support import (
    Boom,
    Do,
    Done,
    DoSafely,
    Journal,
    Note,
    Unheard,
    Worker,
    echo,
    obey,
    on_trio,
    outcome,
    relay,
    settings,
    worker,
)

pytestmark = pytest.mark.anyio


async def test_p1_an_ask_is_answered_through_a_chain_of_actors(journal: Journal) -> None:
    """And leaves nothing pending."""
    specs = [
        worker(journal, "top", relay, asks=("middle",)),
        worker(journal, "middle", relay, asks=("low",)),
        worker(journal, "low", echo),
    ]
    async with Supervisor(specs, settings()) as system:
        done: Done = await system.address("top").ask(Do(text="hello"))
        assert done == Done(text="hello", incarnation=1)
        assert system.pending_asks == 0
    assert journal.lines[:4] == ["start low 1", "start middle 1", "start top 1", "low hello"]
    assert journal.lines[4:] == ["stop top", "stop middle", "stop low"]


async def test_p1_a_tell_arrives_in_order(journal: Journal) -> None:
    """Leaving the block drains: what was told is handled."""
    async with Supervisor([worker(journal, "a", echo)], settings(mailbox_size=2)) as system:
        for index in range(5):
            await system.address("a").tell(Note(text=str(index)))
    assert journal.starting("a ") == [f"a {index}" for index in range(5)]


async def test_p1_the_dead_are_not_asked(journal: Journal) -> None:
    """ActorDead at once for ask and tell, after the end of the system."""
    async with Supervisor([worker(journal, "a")], settings()) as system:
        address = system.address("a")
    with pytest.raises(ActorDead):
        await address.ask(Do(text="late"))
    with pytest.raises(ActorDead):
        await address.tell(Note(text="late"))
    assert repr(address) == "<address outside -> a>"


async def test_a_message_without_a_handler_is_the_senders_bug(journal: Journal) -> None:
    """WiringError at the sender; the actor lives on."""
    async with Supervisor([worker(journal, "a", echo)], settings()) as system:
        with pytest.raises(WiringError, match="a has no handler for Unheard, sent by outside"):
            await system.address("a").ask(Unheard())
        assert (await system.address("a").ask(Do(text="fine"))).incarnation == 1


async def test_p7_30_senders_on_a_mailbox_of_3(journal: Journal) -> None:
    """Through addresses: nobody is lost, and the statistics show the wait."""
    gate = anyio.Event()

    async def wait(worker: Worker, text: str) -> str:
        await gate.wait()
        return text

    async with Supervisor([worker(journal, "a", wait, mailbox_size=3)], settings()) as system:
        async with anyio.create_task_group() as tasks:
            for index in range(30):
                asked = system.address("a").ask(Do(text=str(index)))
                tasks.start_soon(outcome, asked, journal, "ask")
            await anyio.wait_all_tasks_blocked()
            (stats,) = system.stats()
            assert (stats.depth, stats.in_flight, stats.senders_waiting) == (3, 1, 26)
            assert stats.pending_asks == 30
            gate.set()
        (stats,) = system.stats()
        assert (stats.high_water, stats.handled, stats.pending_asks) == (3, 30, 0)
    assert len(set(journal.starting("ask: "))) == 30


@on_trio
async def test_p8_a_cycle_of_asks_fails_at_once(journal: Journal) -> None:
    """A asks B asks A, past the wiring: AskCycle within 0 virtual seconds, nobody crashes."""
    back: list[Address] = []

    async def ask_back(worker: Worker, text: str) -> str:
        try:
            return (await back[0].ask(Do(text=text))).text
        except AskCycle as exc:
            journal(str(exc))
            raise

    specs = [worker(journal, "a", relay, asks=("b",)), worker(journal, "b", ask_back)]
    with capture_logs() as logs:
        async with Supervisor(specs, settings()) as system:
            back.append(system.address("a"))
            begun = anyio.current_time()
            with pytest.raises(AskCycle):
                await system.address("a").ask(Do(text="x"), timeout_s=60)
            assert anyio.current_time() == begun
            stats = {one.actor: (one.crashes, one.failed) for one in system.stats()}
            assert stats == {"a": (0, 1), "b": (0, 1)}
    assert "a: a -> b -> a" in journal.lines
    assert not [entry for entry in logs if entry["log_level"] == "error"]


@on_trio
async def test_p11_an_expired_ask_never_reaches_the_handler(journal: Journal) -> None:
    """The actor is busy for longer; the ask ends on time and leaves the mailbox."""
    async with (
        Supervisor([worker(journal, "a")], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome, system.address("a").ask(Do(text="sleep 10")), journal, "x")
        await anyio.wait_all_tasks_blocked()
        begun = anyio.current_time()
        with pytest.raises(AskTimeout, match="a: Do: no reply in time"):
            await system.address("a").ask(Do(text="late"), timeout_s=3)
        assert anyio.current_time() == begun + 3
        (stats,) = system.stats()
        assert (stats.depth, stats.pending_asks) == (0, 1)
    assert journal.starting("a ") == ["a sleep 10"]
    assert "x: sleep 10/1" in journal.lines


@on_trio
async def test_p11_an_ask_expires_in_front_of_a_full_mailbox_too(journal: Journal) -> None:
    """The deadline counts from the ask."""
    async with (
        Supervisor([worker(journal, "a", mailbox_size=1)], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        for text in ("sleep 10", "sleep 1"):
            tasks.start_soon(outcome, system.address("a").ask(Do(text=text)), journal, "x")
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(AskTimeout):
            await system.address("a").ask(Do(text="late"), timeout_s=3)
    assert journal.starting("a ") == ["a sleep 10", "a sleep 1"]


@on_trio
@pytest.mark.parametrize(
    ("outer_s", "inner_s", "expected_s"), [(2.0, 9.0, 2.0), (9.0, 2.0, 2.0), (math.inf, 4.0, 4.0)]
)
async def test_p11_nested_asks_have_the_smaller_deadline(
    journal: Journal, outer_s: float, inner_s: float, expected_s: float
) -> None:
    """Own or inherited; and the work at the bottom is cancelled then."""
    seen: list[float] = []

    async def ask_low(worker: Worker, text: str) -> str:
        return (await worker.peers["low"].ask(Do(text=text), timeout_s=inner_s)).text

    async def look(worker: Worker, text: str) -> str:
        seen.append(LINEAGE.get().deadline)
        return await obey(worker, text)

    specs = [worker(journal, "top", ask_low, asks=("low",)), worker(journal, "low", look)]
    async with Supervisor(specs, settings()) as system:
        begun = anyio.current_time()
        with pytest.raises(AskTimeout):
            await system.address("top").ask(Do(text="sleep 60"), timeout_s=outer_s)
        assert anyio.current_time() == begun + expected_s
        await anyio.wait_all_tasks_blocked()
        assert seen == [begun + expected_s]
        assert "low cancelled sleep 60" in journal.lines
        assert [stats.in_flight for stats in system.stats()] == [0, 0]
        assert [stats.crashes for stats in system.stats()] == [0, 0]


@on_trio
async def test_p11_the_default_deadline_is_the_settings(journal: Journal) -> None:
    """No ask is without one; math.inf may be named."""
    async with Supervisor([worker(journal, "a")], settings(ask_timeout_s=5.0)) as system:
        begun = anyio.current_time()
        with pytest.raises(AskTimeout):
            await system.address("a").ask(Do(text="sleep 60"))
        assert anyio.current_time() == begun + 5
        await system.address("a").ask(Do(text="sleep 60"), timeout_s=math.inf)
        assert anyio.current_time() == begun + 65


async def test_p11_the_lineage_ends_with_the_handler(journal: Journal) -> None:
    """Chain and deadline belong to the handler's own task, not to the actor."""
    seen: list[tuple[str, ...]] = []

    async def look(worker: Worker, text: str) -> str:
        seen.append(LINEAGE.get().chain)
        return text

    async def look_and_relay(worker: Worker, text: str) -> str:
        await look(worker, text)
        return await relay(worker, text)

    specs = [worker(journal, "top", look_and_relay, asks=("low",)), worker(journal, "low", look)]
    async with Supervisor(specs, settings()) as system:
        await system.address("top").ask(Do(text="x"))
        await system.address("low").ask(Do(text="x"))
    assert seen == [("top",), ("top", "low"), ("low",)]
    assert LINEAGE.get().chain == ()


async def test_p12_an_ask_cancelled_by_its_caller_cancels_the_work_below(
    journal: Journal,
) -> None:
    """Through two actors; nobody crashes, nothing stays."""
    specs = [worker(journal, "top", relay, asks=("low",)), worker(journal, "low")]
    reached = []
    with capture_logs() as logs:
        async with Supervisor(specs, settings()) as system:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(system.address("top").ask, Do(text="sleep 60"))
                await anyio.wait_all_tasks_blocked()
                assert system.pending_asks == 2
                tasks.cancel_scope.cancel()
            reached.append("cancelled")
            await anyio.wait_all_tasks_blocked()
            assert "low cancelled sleep 60" in journal.lines
            assert system.pending_asks == 0
            assert [stats.in_flight for stats in system.stats()] == [0, 0]
            assert (await system.address("top").ask(Do(text="next"))).incarnation == 1
    assert reached == ["cancelled"]
    assert not [entry for entry in logs if entry["log_level"] in ("warning", "error")]


async def test_p12_a_cancelled_ask_leaves_the_mailbox(journal: Journal) -> None:
    """It is never begun."""
    gate = anyio.Event()

    async def wait(worker: Worker, text: str) -> str:
        journal(f"a {text}")
        await gate.wait()
        return text

    async with (
        Supervisor([worker(journal, "a", wait)], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(system.address("a").ask, Do(text="first"))
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as impatient:
            impatient.start_soon(system.address("a").ask, Do(text="second"))
            await anyio.wait_all_tasks_blocked()
            impatient.cancel_scope.cancel()
        (stats,) = system.stats()
        assert (stats.depth, stats.pending_asks) == (0, 1)
        gate.set()
    assert journal.starting("a ") == ["a first"]


async def test_an_ask_that_fails_below_is_passed_on_and_crashes_nobody_above(
    journal: Journal,
) -> None:
    """The failure names where it happened, also out of a task group of one handler."""

    async def relay_in_group(worker: Worker, text: str) -> str:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(relay, worker, text)
        return text

    specs = [
        worker(journal, "top", relay_in_group, asks=("middle",)),
        worker(journal, "middle", relay, asks=("low",)),
        worker(journal, "low"),
    ]
    async with Supervisor(specs, settings()) as system:
        with pytest.raises(AskFailed, match=r"^low: Do: crashed: Boom") as caught:
            await system.address("top").ask(Do(text="boom"))
        assert caught.value.actor == "low"
        crashes = {stats.actor: stats.crashes for stats in system.stats()}
        assert crashes["top"] == crashes["middle"] == 0
        assert crashes["low"] >= 1


async def test_a_group_with_a_bug_in_it_is_a_crash(journal: Journal) -> None:
    """A failed ask beside it does not hide it."""

    async def both(worker: Worker, text: str) -> str:
        raise ExceptionGroup("both", [AskTimeout("low", "late"), Boom("bug")])

    async with Supervisor([worker(journal, "a", both)], settings()) as system:
        with pytest.raises(AskFailed, match=r"^a: Do: crashed"):
            await system.address("a").ask(Do(text="x"))
        assert system.stats()[0].crashes == 1


async def test_a_told_event_whose_ask_fails_is_logged(journal: Journal) -> None:
    """Nobody waits for it, and it is no crash."""

    async def fail(worker: Worker, text: str) -> str:
        raise AskTimeout("low", "late")

    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a", fail)], settings()) as system:
            await system.address("a").tell(Note(text="x"))
    assert [entry["error"] for entry in logs if entry["event"] == "actor.event_failed"] == [
        "low: late"
    ]
    assert journal.starting("start") == ["start a 1"]


async def test_the_handler_runs_at_most_concurrency_times(journal: Journal) -> None:
    """Three at once, the fourth waits in the mailbox."""
    gate = anyio.Event()
    running = 0
    peak = 0

    async def wait(worker: Worker, text: str) -> str:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await gate.wait()
        running -= 1
        return text

    async with (
        Supervisor([worker(journal, "a", wait, concurrency=3)], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        for index in range(7):
            tasks.start_soon(system.address("a").ask, DoSafely(text=str(index)))
        await anyio.wait_all_tasks_blocked()
        (stats,) = system.stats()
        assert (stats.in_flight, stats.depth) == (3, 4)
        gate.set()
    assert peak == 3


@on_trio
async def test_p17_statistics_add_up(journal: Journal) -> None:
    """Waits and handler times, in seconds, over several messages."""
    async with Supervisor([worker(journal, "a", obey)], settings()) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(system.address("a").ask, Do(text="sleep 2"))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(system.address("a").ask, Do(text="sleep 3"))
            await anyio.sleep(1)
            (stats,) = system.stats()
            assert (stats.oldest_s, stats.running_s, stats.state) == (1.0, 1.0, "up")
        (stats,) = system.stats()
        assert (stats.wait_s, stats.wait_s_max) == (2.0, 2.0)
        assert (stats.handler_s, stats.handler_s_max, stats.handled) == (5.0, 3.0, 2)
