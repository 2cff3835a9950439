"""What can be seen: log lines with their scope, statistics, blocked messages, stacks."""

from __future__ import annotations

import time

import anyio
import pytest
import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from actors.runtime.stats import LoopLag
from actors.runtime.supervisor import Supervisor
from actors.runtime.watch import dump_tasks
from protocol.base import Scope
from tests.runtime.support import (
    Do,
    Journal,
    Note,
    Worker,
    on_trio,
    outcome,
    relay,
    settings,
    worker,
)

pytestmark = pytest.mark.anyio


async def test_p17_log_lines_carry_actor_and_scope(journal: Journal) -> None:
    """Each handler's own, also side by side; nothing leaks to the actor, its peer or outside."""

    async def speak(worker: Worker, text: str) -> str:
        worker.context.log.info("one", text=text)
        await anyio.wait_all_tasks_blocked()
        structlog.get_logger().info("two", text=text)
        return text

    async def speak_and_relay(worker: Worker, text: str) -> str:
        await relay(worker, text)
        return await speak(worker, text)

    specs = [
        worker(journal, "top", speak_and_relay, asks=("low",), concurrency=2),
        worker(journal, "low", speak, concurrency=2),
    ]
    with (
        structlog.contextvars.bound_contextvars(run_id="r1"),
        capture_logs(processors=[merge_contextvars]) as logs,
    ):
        async with Supervisor(specs, settings()) as system:
            async with anyio.create_task_group() as tasks:
                for text in ("a", "b"):
                    scope = Scope(epoch=1, task_type=text, question_id=f"q-{text}")
                    asked = system.address("top").ask(Do(text=text, scope=scope))
                    tasks.start_soon(outcome, asked, journal, "ask")
            await system.address("low").tell(Note(text="c"))
        structlog.get_logger().info("outside")
    spoken = [entry for entry in logs if entry["event"] in ("one", "two")]
    assert len(spoken) == 10
    for entry in spoken:
        assert entry["run_id"] == "r1"
        known = {key: entry[key] for key in ("epoch", "class", "question_id") if key in entry}
        if entry["actor"] == "top":
            text = entry["text"]
            assert known == {"epoch": 1, "class": text, "question_id": f"q-{text}"}
        else:
            # The relayed request names no scope, and none is invented for it.
            assert known == {}
    assert "actor" not in logs[-1]


@on_trio
async def test_p17_statistics_are_logged_every_stats_s(journal: Journal) -> None:
    """A heartbeat per actor: one event, all actors; and once more at the end."""
    with capture_logs() as logs:
        async with Supervisor(
            [worker(journal, "a"), worker(journal, "b")], settings(stats_s=30.0)
        ) as system:
            await outcome(system.address("a").ask(Do(text="boom")), journal, "ask")
            await system.address("a").ask(Do(text="sleep 100"))
    beats = [entry["actors"] for entry in logs if entry["event"] == "runtime.stats"]
    assert len(beats) == 4
    assert [[one["actor"] for one in beat] for beat in beats] == [["a", "b"]] * 4
    a = beats[0][0]
    assert (a["state"], a["incarnation"], a["crashes"], a["in_flight"]) == ("up", 2, 1, 1)
    assert 29 < a["running_s"] <= 30
    assert beats[-1][0]["state"] == "dead"


async def test_p17_a_loop_that_is_held_up_is_told() -> None:
    """Each period's own samples: the longest, and what 99 % of them stay within."""
    lag = LoopLag()
    assert lag.take() == {"lag_max_ms": 0.0, "lag_p99_ms": 0.0}
    for late_s in (*([0.001] * 198), 0.020, 0.250):
        lag.add(late_s)
    assert lag.take() == {"lag_max_ms": 250.0, "lag_p99_ms": 1.0}
    assert lag.take() == {"lag_max_ms": 0.0, "lag_p99_ms": 0.0}
    lag.add(0.0301)
    assert lag.take() == {"lag_max_ms": 30.1, "lag_p99_ms": 30.1}


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_p17_the_lag_of_the_loop_is_measured(journal: Journal) -> None:
    """A handler that does not let go of the loop is seen in the statistics of its period."""

    async def hold(worker: Worker, text: str) -> str:
        await anyio.sleep(0.02)  # a few samples, then one that is late
        begun = time.monotonic()
        while time.monotonic() < begun + 0.2:
            pass
        await anyio.sleep(0.02)
        return text

    with capture_logs() as logs:
        async with Supervisor([worker(journal, "a", hold)], settings(stats_s=1.0)) as system:
            await system.address("a").ask(Do(text="x"))
    (event,) = [entry for entry in logs if entry["event"] == "runtime.stats"]
    assert event["lag_max_ms"] > 190
    assert 0 <= event["lag_p99_ms"] <= event["lag_max_ms"]


@on_trio
async def test_p17_a_message_that_waits_too_long_is_reported_once(journal: Journal) -> None:
    """With who waits, what runs meanwhile, and every stack; a new one is reported anew."""
    specs = [
        worker(journal, "asker", relay, asks=("busy",)),
        worker(journal, "busy", mailbox_size=1),
    ]
    with capture_logs() as logs:
        async with (
            Supervisor(specs, settings(), blocked_s=8.0) as system,
            anyio.create_task_group() as tasks,
        ):
            for name, text in [
                ("busy", "sleep 30"),
                ("asker", "sleep 20"),
                ("busy", "sleep 1"),
            ]:
                tasks.start_soon(outcome, system.address(name).ask(Do(text=text)), journal, "ask")
                await anyio.wait_all_tasks_blocked()
    blocked = [entry for entry in logs if entry["event"] == "runtime.blocked"]
    assert [(e["actor"], e["waits"], e["oldest"]) for e in blocked] == [
        ("busy", "asker", "Do"),
        ("busy", "outside", "Do"),
    ]
    assert blocked[0]["oldest_s"] == 12
    assert blocked[0]["senders_waiting"] == ("outside",)
    assert blocked[0]["running"] == {"<Do from outside>": 12}
    (stacks, *_) = [entry["stacks"] for entry in logs if entry["event"] == "runtime.tasks"]
    assert "task busy#1:Do" in stacks
    assert "in obey" in stacks


@on_trio
async def test_p17_a_long_queue_that_moves_is_no_news(journal: Journal) -> None:
    """The last of ten waits far longer than the limit, the next one never does."""
    with capture_logs() as logs:
        async with (
            Supervisor(
                [worker(journal, "a", mailbox_size=10)], settings(), blocked_s=8.0
            ) as system,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(10):
                asked = system.address("a").ask(Do(text="sleep 5"))
                tasks.start_soon(outcome, asked, journal, "ask")
    assert len(journal.starting("ask")) == 10
    assert not [entry for entry in logs if entry["event"] == "runtime.blocked"]


async def test_p17_stacks_of_all_tasks_are_dumped_on_demand(journal: Journal) -> None:
    """By task name, down to the innermost await of a handler."""
    async with (
        Supervisor([worker(journal, "a")], settings()) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(system.address("a").ask, Do(text="sleep 60"))
        await anyio.wait_all_tasks_blocked()
        stacks = dump_tasks()
        tasks.cancel_scope.cancel()
    (handler,) = [part for part in stacks.split("\n\n") if part.startswith("task a#1:Do")]
    names = [line.rsplit(" in ", 1)[1] for line in handler.splitlines() if " in " in line]
    assert names[names.index("_handle") :][:4] == ["_handle", "_answer", "do", "obey"]
    assert "await anyio.sleep(float(seconds))" in handler
    assert "task a:control" in stacks
    assert "task supervisor" in stacks
