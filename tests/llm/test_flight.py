"""Identical work in progress is done once."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from actors.llm.flight import SingleFlight

pytestmark = pytest.mark.anyio


class Work:
    """Counts its runs and ends when it is let go."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = anyio.Event()

    async def __call__(self) -> str:
        self.runs += 1
        await self.go.wait()
        return f"run {self.runs}"


async def test_many_callers_one_run() -> None:
    """All get the one result; only the leader did it itself."""
    flight: SingleFlight[str] = SingleFlight()
    work = Work()
    results: list[tuple[str, bool]] = []

    async def call() -> None:
        results.append(await flight.run("k", work))

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        work.go.set()
    assert sorted(results) == [("run 1", False)] + [("run 1", True)] * 49
    assert len(flight) == 0


async def test_a_cancelled_leader_hands_over() -> None:
    """One more run, and every other caller has its answer (S14)."""
    flight: SingleFlight[str] = SingleFlight()
    work = Work()
    results: list[str] = []
    leader = anyio.CancelScope()

    async def lead() -> None:
        with leader:
            await flight.run("k", work)

    async def follow() -> None:
        results.append((await flight.run("k", work))[0])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        for _ in range(49):
            tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        leader.cancel()
        await anyio.wait_all_tasks_blocked()
        assert work.runs == 2
        work.go.set()
    assert results == ["run 2"] * 49


async def test_an_error_reaches_everyone_and_stays_nowhere() -> None:
    """The next caller starts afresh."""
    flight: SingleFlight[str] = SingleFlight()
    errors = 0

    async def fail() -> str:
        await checkpoint()
        raise LookupError("no")

    async def call() -> None:
        nonlocal errors
        with pytest.raises(LookupError):
            await flight.run("k", fail)
        errors += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call)
    assert errors == 3
    work = Work()
    work.go.set()
    assert await flight.run("k", work) == ("run 1", False)
