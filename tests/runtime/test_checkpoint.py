"""Snapshots, the sink, and what a restarted incarnation is given."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from actors.runtime.actor import Actor, Context, handles
from actors.runtime.errors import ActorCrashed, AskFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from tests.runtime.support import Boom, Do, Done, Journal, on_trio, outcome, settings, worker

pytestmark = pytest.mark.anyio


class Sink:
    """Keeps what is written; ``slow_s`` and ``fails`` make trouble."""

    def __init__(self) -> None:
        self.written: list[tuple[str, dict[str, bytes]]] = []
        self.slow_s = 0.0
        self.fails = False

    async def write(self, label: str, states: Mapping[str, bytes]) -> None:
        await anyio.sleep(self.slow_s)
        if self.fails:
            raise OSError("disk full")
        self.written.append((label, dict(states)))


class Tallyman(Actor):
    """Counts its messages; ``save L`` takes the checkpoint L, ``boom`` crashes."""

    def __init__(self) -> None:
        self.count = 0
        self.broken = False

    async def on_start(self, context: Context) -> None:
        self.context = context
        self.count = int(context.restored or b"0")

    def snapshot(self) -> bytes | None:
        if self.broken:
            raise Boom("snapshot")
        return None if self.count < 0 else str(self.count).encode()

    @handles(Do)
    async def do(self, request: Do) -> Done:
        self.count += 1
        match request.text.split():
            case ["save", label]:
                await self.context.checkpoint(label)
            case ["sleep", seconds]:
                await anyio.sleep(float(seconds))
            case ["break"]:
                self.broken = True
            case ["empty"]:
                self.count = -1
            case ["boom"]:
                raise Boom
        return Done(text=str(self.count), incarnation=self.context.incarnation)


def tallymen(journal: Journal) -> list[ActorSpec]:
    return [
        ActorSpec(name="low", factory=lambda peers: Tallyman()),
        worker(journal, "stateless"),
        ActorSpec(name="top", factory=lambda peers: Tallyman(), asks=("low",)),
    ]


async def say(system: Supervisor, name: str, text: str) -> str:
    done = await system.address(name).ask(Do(text=text))
    return f"{done.text}/{done.incarnation}"


async def test_a_checkpoint_holds_every_stateful_actor_and_the_caller(journal: Journal) -> None:
    """The caller's snapshot is taken while its own handler waits for the checkpoint."""
    sink = Sink()
    async with Supervisor(tallymen(journal), settings(), sink=sink) as system:
        await say(system, "low", "x")
        await say(system, "top", "save epoch-1")
        await say(system, "low", "empty")
        await say(system, "top", "save epoch-2")
    assert sink.written == [
        ("epoch-1", {"low": b"1", "top": b"1"}),
        ("epoch-2", {"top": b"2"}),
    ]


async def test_p15_a_restart_begins_from_the_last_checkpoint(journal: Journal) -> None:
    """Before the first from what the run was given, then from the newest; never from memory."""
    sink = Sink()
    given = {"top": b"40"}
    async with Supervisor(tallymen(journal), settings(), sink=sink, restored=given) as system:
        assert await say(system, "top", "x") == "41/1"
        await outcome(system.address("top").ask(Do(text="boom")), journal, "ask")
        assert await say(system, "top", "x") == "41/2"
        await say(system, "top", "save one")
        await say(system, "top", "x")
        await outcome(system.address("top").ask(Do(text="boom")), journal, "ask")
        assert await say(system, "top", "x") == "43/3"
    assert sink.written == [("one", {"low": b"0", "top": b"42"})]


async def test_a_failed_write_changes_nothing(journal: Journal) -> None:
    """The OSError is the handler's; a restart begins from the checkpoint before."""
    sink = Sink()
    async with Supervisor(tallymen(journal), settings(), sink=sink) as system:
        await say(system, "top", "save one")
        sink.fails = True
        with pytest.raises(ActorCrashed, match="disk full"):
            await say(system, "top", "save two")
        assert await say(system, "top", "x") == "2/2"
    assert [label for label, _ in sink.written] == ["one"]


@on_trio
async def test_the_write_is_shielded(journal: Journal) -> None:
    """The asker leaves in the middle of it: it ends, and counts."""
    sink = Sink()
    sink.slow_s = 5.0
    async with Supervisor(tallymen(journal), settings(), sink=sink) as system:
        with pytest.raises(AskFailed):
            await system.address("top").ask(Do(text="save one"), timeout_s=1)
        assert sink.written == []
        await outcome(system.address("top").ask(Do(text="boom")), journal, "ask")
        assert sink.written == [("one", {"low": b"0", "top": b"1"})]
        assert await say(system, "top", "x") == "2/2"


@on_trio
async def test_p10_a_snapshot_overtakes_work_and_waits_for_a_restart(journal: Journal) -> None:
    """A busy actor is asked between its awaits; one in its pause once it is up again."""
    sink = Sink()
    async with Supervisor(tallymen(journal), settings(backoff_s=8.0), sink=sink) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, system, "low", "sleep 99")
            await anyio.wait_all_tasks_blocked()
            begun = anyio.current_time()
            await say(system, "top", "save busy")
            assert anyio.current_time() == begun
        await outcome(system.address("low").ask(Do(text="boom")), journal, "ask")
        begun = anyio.current_time()
        await say(system, "top", "save again")
        assert 4 <= anyio.current_time() - begun <= 8
    assert [label for label, _ in sink.written] == ["busy", "again"]


async def test_a_snapshot_that_raises_is_a_crash(journal: Journal) -> None:
    """No checkpoint is written from the rest; the next one is."""
    sink = Sink()
    async with Supervisor(tallymen(journal), settings(), sink=sink) as system:
        await say(system, "low", "break")
        with pytest.raises(ActorCrashed, match="low: snapshot raised Boom"):
            await say(system, "top", "save one")
        await say(system, "top", "save two")
        assert {s.actor: s.crashes for s in system.stats()}["low"] == 1
    assert [label for label, _ in sink.written] == ["two"]


async def test_checkpoints_are_taken_one_at_a_time(journal: Journal) -> None:
    """Two handlers at once: two whole files."""
    sink = Sink()
    async with (
        Supervisor(tallymen(journal), settings(), sink=sink) as system,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(say, system, "top", "save one")
        tasks.start_soon(say, system, "low", "save two")
    assert sorted(label for label, _ in sink.written) == ["one", "two"]
    assert all(set(states) == {"low", "top"} for _, states in sink.written)


async def test_without_a_sink_a_checkpoint_is_refused(journal: Journal) -> None:
    """Not silently skipped."""
    async with Supervisor(tallymen(journal), settings()) as system:
        with pytest.raises(ActorCrashed, match=r"WiringError.*no sink"):
            await say(system, "top", "save one")
