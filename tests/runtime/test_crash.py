"""What a crash does to the messages of an actor, and how the next incarnation begins."""

from __future__ import annotations

import contextlib
import itertools

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from structlog.testing import capture_logs

from actors.runtime.errors import ActorCrashed, GaveUp, PoisonMessage, StartFailed
from actors.runtime.supervisor import Supervisor
from protocol.base import Request
from tests.runtime.support import (
    Boom,
    Do,
    Done,
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


async def boom_times(worker: Worker, text: str) -> str:
    """``boom N``: crash as long as the journal knows at most N tries."""
    worker.journal(f"{worker.name} {text}")
    word, _, times = text.partition(" ")
    if word == "boom" and worker.journal.lines.count(f"{worker.name} {text}") <= int(times):
        raise Boom(text)
    return text


async def test_p2_the_message_in_hand_is_answered_and_not_handed_on(journal: Journal) -> None:
    """ActorCrashed, seen once; the next message is handled by the second incarnation."""
    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a")], settings()) as system:
            with pytest.raises(ActorCrashed, match="a: Do: crashed: Boom"):
                await system.address("a").ask(Do(text="boom"))
            assert (await system.address("a").ask(Do(text="next"))).incarnation == 2
    assert journal.starting("a ") == ["a boom", "a next"]
    crashes = [entry for entry in logs if entry["event"] == "actor.crashed"]
    assert len(crashes) == 1
    assert (crashes[0]["actor"], crashes[0]["request"], crashes[0]["incarnation"]) == ("a", "Do", 1)
    assert isinstance(crashes[0]["exc_info"], Boom)
    assert crashes[0]["exc_info"].__traceback__ is not None


async def test_p2_an_idempotent_message_is_handed_on_once(journal: Journal) -> None:
    """To the second incarnation, ahead of what waited behind it."""
    gate = anyio.Event()

    async def act(worker: Worker, text: str) -> str:
        await gate.wait()
        return await boom_times(worker, text)

    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a", act)], settings()) as system:
            async with anyio.create_task_group() as tasks:
                for text in ("boom 1", "behind"):
                    asked = system.address("a").ask(DoSafely(text=text))
                    tasks.start_soon(outcome, asked, journal, "ask")
                    await anyio.wait_all_tasks_blocked()
                gate.set()
            assert system.stats()[0].redelivered == 1
    assert journal.starting("a ") == ["a boom 1", "a boom 1", "a behind"]
    assert journal.starting("ask") == ["ask: boom 1/2", "ask: behind/2"]
    assert [entry["request"] for entry in logs if entry["event"] == "actor.redelivered"] == [
        "DoSafely"
    ]


async def test_p2_a_message_that_crashes_two_incarnations_is_poison(journal: Journal) -> None:
    """PoisonMessage; the third message is processed."""
    async with Supervisor([worker(journal, "a", boom_times)], settings()) as system:
        with pytest.raises(PoisonMessage, match=r"DoSafely crashed two incarnations \(crashed: "):
            await system.address("a").ask(DoSafely(text="boom 9"))
        assert (await system.address("a").ask(Do(text="third"))).incarnation == 3
    assert journal.starting("a ") == ["a boom 9", "a boom 9", "a third"]


async def test_p2_a_crash_that_nobody_waits_for_any_more_is_not_handed_on(
    journal: Journal,
) -> None:
    """The asker left between the crash and the restart."""
    settled = anyio.Event()

    async def stops(worker: Worker) -> None:
        await settled.wait()

    async with Supervisor([worker(journal, "a", boom_times, stops=stops)], settings()) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(system.address("a").ask, DoSafely(text="boom 9"))
            await anyio.wait_all_tasks_blocked()
            assert system.stats()[0].depth == 1
            tasks.cancel_scope.cancel()
        assert system.stats()[0].depth == 0
        settled.set()
        assert (await system.address("a").ask(Do(text="next"))).incarnation == 2
    assert journal.starting("a ") == ["a boom 9", "a next"]


async def test_p2_a_lost_event_is_logged(journal: Journal) -> None:
    """Nobody waits for its answer."""
    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a")], settings()) as system:
            await system.address("a").tell(Note(text="boom"))
            await system.address("a").tell(Note(text="fine"))
    assert journal.starting("a ") == ["a boom", "a fine"]
    assert [entry["request"] for entry in logs if entry["event"] == "actor.event_lost"] == ["Note"]


async def test_p3_queued_messages_survive_in_order(journal: Journal) -> None:
    """Three wait behind the one that crashes; incarnation 2 answers all three."""
    gate = anyio.Event()

    async def act(worker: Worker, text: str) -> str:
        worker.journal(f"a {text}")
        if text == "boom":
            await gate.wait()
            raise Boom
        return text

    async with (
        Supervisor([worker(journal, "a", act)], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        for text in ("boom", "1", "2", "3"):
            tasks.start_soon(outcome, system.address("a").ask(Do(text=text)), journal, "ask")
            await anyio.wait_all_tasks_blocked()
        gate.set()
    assert journal.starting("a ") == ["a boom", "a 1", "a 2", "a 3"]
    assert journal.starting("ask") == ["ask: ActorCrashed", "ask: 1/2", "ask: 2/2", "ask: 3/2"]


async def test_p14_handlers_beside_a_crash_end_with_it(journal: Journal) -> None:
    """5 in flight: the plain ones get ActorCrashed, the idempotent are handed on uncounted."""
    gate = anyio.Event()
    hold = anyio.Event()

    async def act(worker: Worker, text: str) -> str:
        worker.journal(f"a {text} #{worker.context.incarnation}")
        if text == "boom":
            await gate.wait()
            raise Boom
        if worker.context.incarnation == 1:
            await hold.wait()
        elif text == "s1" and worker.context.incarnation == 2:
            # Its first crash of its own: were the one beside it counted, this were poison.
            raise Boom
        return text

    async with Supervisor([worker(journal, "a", act, concurrency=6)], settings()) as system:
        async with anyio.create_task_group() as tasks:
            requests: list[Request[Done]] = [
                DoSafely(text="s1"),
                Do(text="p1"),
                Do(text="boom"),
                DoSafely(text="s2"),
                Do(text="p2"),
            ]
            for request in requests:
                tasks.start_soon(outcome, system.address("a").ask(request), journal, "ask")
                await anyio.wait_all_tasks_blocked()
            gate.set()
        assert system.stats()[0].crashes == 2
        assert system.pending_asks == 0
    asks = sorted(journal.starting("ask"))
    assert asks[:3] == ["ask: ActorCrashed"] * 3
    assert asks[3] == "ask: s1/3"
    assert asks[4] in ("ask: s2/2", "ask: s2/3")
    assert "a p1 #2" not in journal.lines


async def test_p14_connections_close_with_the_incarnation(journal: Journal) -> None:
    """5 calls in flight over real sockets: 5 ActorCrashed, the server sees 5 closed."""
    opened = 0
    closed = 0
    all_open = anyio.Event()
    all_closed = anyio.Event()

    async def serve(stream: SocketStream) -> None:
        nonlocal opened, closed
        async with stream:
            opened += 1
            if opened == 5:
                all_open.set()
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()
            closed += 1
            if closed == 5:
                all_closed.set()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)

    async def call(worker: Worker, text: str) -> str:
        if text == "boom":
            raise Boom
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            return (await stream.receive()).decode()

    async with listener, anyio.create_task_group() as servers:
        servers.start_soon(listener.serve, serve)
        async with Supervisor([worker(journal, "a", call, concurrency=6)], settings()) as system:
            async with anyio.create_task_group() as tasks:
                for index in range(5):
                    asked = system.address("a").ask(Do(text=str(index)))
                    tasks.start_soon(outcome, asked, journal, "ask")
                await all_open.wait()
                await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
            await all_closed.wait()
        servers.cancel_scope.cancel()
    assert journal.starting("ask") == ["ask: ActorCrashed"] * 6
    assert (opened, closed) == (5, 5)


async def test_p14_a_crash_in_an_actors_own_task_is_its_crash(journal: Journal) -> None:
    """Handlers end, tasks end, the actor is restarted."""

    async def fall(worker: Worker) -> None:
        await gate.wait()
        raise Boom("background")

    async def linger(worker: Worker) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            worker.journal(f"task of {worker.context.incarnation} ended")

    async def starts(worker: Worker) -> None:
        worker.context.tasks.start_soon(linger, worker)
        if worker.context.incarnation == 1:
            worker.context.tasks.start_soon(fall, worker)

    gate = anyio.Event()
    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a", starts=starts)], settings()) as system:
            async with anyio.create_task_group() as tasks:
                asked = system.address("a").ask(Do(text="sleep 60"))
                tasks.start_soon(outcome, asked, journal, "ask")
                await anyio.wait_all_tasks_blocked()
                gate.set()
            assert (await system.address("a").ask(Do(text="next"))).incarnation == 2
    assert journal.starting("ask") == ["ask: ActorCrashed"]
    assert journal.lines.index("task of 1 ended") < journal.lines.index("stop a")
    assert [repr(e["exc_info"]) for e in logs if e["event"] == "actor.crashed"] == [
        "Boom('background')"
    ]


async def test_what_others_raise_while_they_are_cancelled_is_no_second_crash(
    journal: Journal,
) -> None:
    """It is logged, and costs no restart."""
    gate = anyio.Event()

    async def act(worker: Worker, text: str) -> str:
        if text == "boom":
            await gate.wait()
            raise Boom("first")
        try:
            await anyio.sleep_forever()
        finally:
            raise Boom("cleanup")

    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a", act, concurrency=2)], settings()) as system:
            async with anyio.create_task_group() as tasks:
                for text in ("boom", "wait"):
                    asked = system.address("a").ask(Do(text=text))
                    tasks.start_soon(outcome, asked, journal, "ask")
                await anyio.wait_all_tasks_blocked()
                gate.set()
            assert system.stats()[0].crashes == 1
    events = [(e["event"], repr(e["exc_info"])) for e in logs if "exc_info" in e]
    assert events == [
        ("actor.crashed", "Boom('first')"),
        ("actor.cleanup_failed", "Boom('cleanup')"),
    ]
    assert journal.starting("ask") == ["ask: ActorCrashed"] * 2


async def test_p15_the_first_start_failure_is_fatal_and_named(journal: Journal) -> None:
    """What had started is stopped in order; the cause is chained; the block is not entered."""

    async def fail(worker: Worker) -> None:
        raise Boom("no database")

    specs = [
        worker(journal, "low"),
        worker(journal, "ledger", asks=("low",), starts=fail),
        worker(journal, "top", asks=("ledger",)),
    ]
    reached = []
    with pytest.raises(StartFailed, match=r"ledger: on_start raised Boom\('no database'\)") as told:
        async with Supervisor(specs, settings()):
            reached.append("block")
    assert reached == []
    assert isinstance(told.value.__cause__, Boom)
    assert journal.lines == ["start low 1", "start ledger 1", "stop ledger", "stop low"]


async def failing_starts(journal: Journal, failures: int) -> list[str]:
    """Crash once, then fail ``failures`` starts in a row; what was asked last."""

    async def starts(worker: Worker) -> None:
        if 1 < worker.context.incarnation <= 1 + failures:
            raise Boom("start")

    async with Supervisor([worker(journal, "a", starts=starts)], settings()) as system:
        await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
        await outcome(system.address("a").ask(Do(text="next")), journal, "ask")
    return journal.starting("ask")


async def test_p15_a_later_start_failure_counts_against_the_budget(journal: Journal) -> None:
    """One crash and two bad starts make three: allowed. The fourth incarnation works."""
    assert await failing_starts(journal, 2) == ["ask: ActorCrashed", "ask: next/4"]
    assert len(journal.starting("start")) == len(journal.starting("stop")) == 4


async def test_p15_a_start_that_keeps_failing_gives_up(journal: Journal) -> None:
    """One crash and three bad starts make four. Every half-started life is released."""
    with pytest.raises(GaveUp):
        await failing_starts(journal, 3)
    assert journal.starting("ask") == ["ask: ActorCrashed", "ask: ActorDead"]
    assert len(journal.starting("start")) == len(journal.starting("stop")) == 4


async def test_p15_every_incarnation_is_built_anew_and_released(journal: Journal) -> None:
    """The factory runs once per life, ``on_stop`` after each, also after a crash."""
    actors: list[Worker] = []

    async def starts(worker: Worker) -> None:
        actors.append(worker)

    async with Supervisor([worker(journal, "a", starts=starts)], settings()) as system:
        for _ in range(2):
            await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
        await system.address("a").ask(Do(text="x"))
    assert len(set(map(id, actors))) == 3
    assert journal.starting("start") == ["start a 1", "start a 2", "start a 3"]
    assert journal.starting("stop") == ["stop a"] * 3


@on_trio
async def test_p4_the_pause_before_a_restart_grows(journal: Journal) -> None:
    """Doubled with every crash in the window, never above the cap; jitter takes up to a half."""
    moments: list[float] = []

    async def starts(worker: Worker) -> None:
        moments.append(anyio.current_time())

    knobs = settings(max_restarts=5, backoff_s=1.0, backoff_cap_s=4.0)
    async with Supervisor([worker(journal, "a", starts=starts)], knobs) as system:
        for _ in range(5):
            await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
        await system.address("a").ask(Do(text="next"))
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    for pause, longest in zip(pauses, (1.0, 2.0, 4.0, 4.0, 4.0), strict=True):
        assert longest / 2 <= pause <= longest


async def test_an_injected_crash_strikes_once(journal: Journal) -> None:
    """The handed-on message passes the second time."""
    with capture_logs() as logs:
        async with Supervisor(
            [worker(journal, "a", echo)], settings(inject_crash=("a@2",))
        ) as system:
            for index in range(4):
                asked = system.address("a").ask(DoSafely(text=str(index)))
                await outcome(asked, journal, "ask")
    assert journal.starting("a ") == ["a 0", "a 1", "a 2", "a 3"]
    assert journal.starting("ask") == ["ask: 0/1", "ask: 1/2", "ask: 2/2", "ask: 3/2"]
    assert [repr(e["exc_info"]) for e in logs if e["event"] == "actor.crashed"] == [
        "InjectedCrash('a@2')"
    ]


on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)


@on_asyncio
async def test_p12_a_handler_cancelled_from_within_is_answered_and_no_crash(
    journal: Journal,
) -> None:
    """A library that cancels the task itself: the ask still ends, the actor lives on."""
    cancelled = anyio.get_cancelled_exc_class()

    async def act(worker: Worker, text: str) -> str:
        if text == "native":
            raise cancelled
        return text

    async with Supervisor([worker(journal, "a", act)], settings()) as system:
        with pytest.raises(ActorCrashed, match="cancelled from within"):
            await system.address("a").ask(Do(text="native"))
        assert (await system.address("a").ask(Do(text="next"))).incarnation == 1


@on_asyncio
async def test_an_incarnation_cancelled_from_within_does_not_end_unseen(journal: Journal) -> None:
    """It counts as a crash: otherwise it would be born again without a pause, for ever."""
    cancelled = anyio.get_cancelled_exc_class()

    async def fall() -> None:
        raise cancelled

    async def starts(worker: Worker) -> None:
        worker.context.tasks.start_soon(fall)

    reached = []

    async def run() -> None:
        async with Supervisor([worker(journal, "a", starts=starts)], settings()):
            reached.append("block")
            await anyio.sleep_forever()

    with pytest.raises(GaveUp, match="cancelled from within"):
        await run()
    assert reached == ["block"]
    assert len(journal.starting("start")) == 4
