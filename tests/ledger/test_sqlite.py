"""The file itself: transactions, cancellation, group commit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from actors.ledger import schema
from actors.ledger.commit import GroupCommit
from actors.ledger.reader import open_reader
from actors.ledger.sqlite import Database, Operation
from protocol.ledger import DeleteRun, Record, Select, Where
from protocol.rows import EpochRow
from tests.ledger.rows import epoch, outcome, trace

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Database]:
    """An open database, closed whatever happens."""
    database = await Database.open(path)
    try:
        yield database
    finally:
        await database.close()


async def _count(database: Database, table: str = "outcomes") -> int:
    return len(await database.select(Select(table=table)))


async def test_writing_the_same_row_twice_leaves_one(tmp_path: Path) -> None:
    """Keys are unique: a repeated record replaces, it never doubles."""
    async with opened(tmp_path / "run.db") as database:
        await database.apply(
            [Record(rows=(outcome("k", "q1", result),)) for result in ("wrong", "right")]
        )
        (row,) = await database.select(Select(table="outcomes"))
        assert row == outcome("k", "q1", "right")


async def test_P2_3_a_step_that_runs_again_deletes_its_own_rows_only(tmp_path: Path) -> None:
    """P2-3: after the delete nothing of the step is left, and nothing else is gone."""
    async with opened(tmp_path / "run.db") as database:
        rows = tuple(
            outcome(key, "q1") for key in ("e1/a/s1/rollout", "e1/a/s1/gate/b0", "e1/b/s1")
        )
        await database.apply([Record(rows=rows), Record(rows=(epoch(1),))])
        assert await database.apply([DeleteRun(run_key="e1/a/s1")]) == [2]
        left = await database.select(Select(table="outcomes"))
        assert left == (outcome("e1/b/s1", "q1"),)
        assert await _count(database, "epochs") == 1


async def test_a_failing_group_leaves_nothing_behind(tmp_path: Path) -> None:
    """One transaction: all of it or none of it."""
    async with opened(tmp_path / "run.db") as database:
        with pytest.raises(UnicodeEncodeError):
            await database.apply(
                [Record(rows=(outcome("k", "q1"), outcome("k", "q2", submitted="\ud83d")))]
            )
        assert await _count(database) == 0
        await database.apply([Record(rows=(outcome("k", "q3"),))])
        assert await _count(database) == 1


async def test_cancellation_never_tears_a_transaction(tmp_path: Path) -> None:
    """A scope that is cancelled at any point leaves whole groups only, and no lock behind."""
    async with opened(tmp_path / "run.db") as database:
        for index in range(30):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    pair = (outcome(f"k{index}", "q1"), outcome(f"k{index}", "q2"))
                    group.start_soon(database.apply, [Record(rows=pair)])
                    for _ in range(index):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
            rows = await database.select(
                Select(table="outcomes", where=(Where(column="run_key", value=f"k{index}"),))
            )
            assert len(rows) in (0, 2)
        await database.apply([Record(rows=(outcome("after", "q1"),))])


async def test_only_the_culprit_of_a_group_fails(tmp_path: Path) -> None:
    """P0-4: one question that cannot be stored costs nobody else anything."""
    async with opened(tmp_path / "run.db") as database:
        commits = GroupCommit(database, 16)
        results: dict[str, str] = {}

        async def submit(name: str, operation: Operation) -> None:
            try:
                await commits.submit(operation)
                results[name] = "stored"
            except UnicodeEncodeError:
                results[name] = "refused"

        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as callers:
                for index in range(5):
                    bad = {"submitted": "\ud83d"} if index == 2 else {}
                    callers.start_soon(
                        submit, f"q{index}", Record(rows=(outcome("k", f"q{index}", **bad),))
                    )
                await anyio.wait_all_tasks_blocked()
                group.start_soon(commits.run)
            group.cancel_scope.cancel()
        commits.close()
        assert results == {f"q{i}": "refused" if i == 2 else "stored" for i in range(5)}
        assert await _count(database) == 4


async def test_a_file_that_is_not_a_database_is_named(tmp_path: Path) -> None:
    """The operator learns which file is at fault."""
    path = tmp_path / "run.db"
    path.write_bytes(b"not a database, but long enough to be looked at" * 40)
    with pytest.raises(sqlite3.OperationalError, match=r"run\.db"):
        await Database.open(path)


async def test_a_question_answered_again_keeps_no_step_of_the_former_try(tmp_path: Path) -> None:
    """P0-2: a second try with fewer steps replaces the first one whole, and nothing else."""
    async with opened(tmp_path / "run.db") as database:
        first = tuple(trace("k", "q1", step) for step in (1, 2, 3))
        other = (trace("k", "q2", 1), trace("other", "q1", 1))
        await database.apply([Record(rows=(*first, *other))])
        again = trace("k", "q1", 1)
        await database.apply([Record(rows=(again,), instead_of=("k", "q1"))])
        left = await database.select(Select(table="traces"))
        assert set(left) == {again, *other}


@pytest.mark.parametrize("folder", ["a?mode=memory", "50%", "#1"])
async def test_a_path_with_url_characters_is_the_same_file(tmp_path: Path, folder: str) -> None:
    """The read-only connection reads what the writer writes."""
    (tmp_path / folder).mkdir()
    async with opened(tmp_path / folder / "run.db") as database:
        await database.apply([Record(rows=(epoch(1),))])
        assert await database.select(Select(table="epochs")) == (epoch(1),)
    with open_reader(tmp_path / folder / "run.db") as reader:
        assert reader.rows(EpochRow) == [epoch(1)]


async def test_a_cancelled_opening_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop while the actors start: the connections' threads are no daemons and would stay."""
    before = set(threading.enumerate())
    statements = schema.ddl()
    with anyio.CancelScope() as scope:

        def cancelling() -> list[str]:  # asked for between the connection and its first statement
            scope.cancel()
            return statements

        monkeypatch.setattr(schema, "ddl", cancelling)
        database = await Database.open(tmp_path / "run.db")
        await database.close()
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in left)
