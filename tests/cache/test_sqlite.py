"""The file itself: time to live, transactions, cancellation, damage."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors.cache.sqlite import SqliteStore
from actors.cache.store import StoreUnavailable
from tests.cache.support import Clock, key

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(
    path: Path, clock: Clock | None = None, ttl_s: int = 60
) -> AsyncIterator[SqliteStore]:
    """An open store, closed whatever happens."""
    store = await SqliteStore.open(path, ttl_s=ttl_s, now=clock or Clock())
    try:
        yield store
    finally:
        await store.close()


def _rows(path: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, entry FROM entries").fetchall())


async def test_an_entry_lives_exactly_its_time(tmp_path: Path) -> None:
    """There at the last moment, gone at the next; and a put renews it."""
    clock = Clock()
    async with opened(tmp_path / "cache.db", clock) as store:
        assert await store.get(key("a")) == "absent"
        await store.put(key("a"), b"one")
        clock.at += 59.999
        assert await store.get(key("a")) == b"one"
        clock.at += 0.001
        assert await store.get(key("a")) == "expired"
        await store.put(key("a"), b"two")
        assert await store.get(key("a")) == b"two"


async def test_the_time_to_live_belongs_to_the_entry(tmp_path: Path) -> None:
    """What was written for an hour lives an hour, whatever the setting is now."""
    clock = Clock()
    async with opened(tmp_path / "cache.db", clock, ttl_s=3600) as store:
        await store.put(key("long"), b"long")
    async with opened(tmp_path / "cache.db", clock, ttl_s=60) as store:
        await store.put(key("short"), b"short")
        clock.at += 100
        assert await store.get(key("long")) == b"long"
        assert await store.get(key("short")) == "expired"


async def test_opening_drops_what_has_expired(tmp_path: Path) -> None:
    """The file does not grow for ever."""
    clock = Clock()
    async with opened(tmp_path / "cache.db", clock) as store:
        await store.put(key("old"), b"old")
        clock.at += 30
        await store.put(key("new"), b"new")
    clock.at += 30
    async with opened(tmp_path / "cache.db", clock):
        assert _rows(tmp_path / "cache.db") == {key("new"): b"new"}


async def test_puts_that_wait_are_committed_together(tmp_path: Path) -> None:
    """A wide rollout costs a few transactions, not one per chat; each put is answered after it."""
    async with opened(tmp_path / "cache.db") as store:
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(store.put, key(str(number)), str(number).encode())
        assert store.transactions <= 3
        assert len(_rows(tmp_path / "cache.db")) == 100


async def test_keys_never_collide(tmp_path: Path) -> None:
    """Keys that differ in one digit, in case or in length are different keys."""
    names = [key("a"), key("a")[:-1], key("a")[:-1] + "x", key("a").upper(), "", " ", "%", "é", "e"]
    async with opened(tmp_path / "cache.db") as store:
        for name in names:
            await store.put(name, name.encode())
        assert [await store.get(name) for name in names] == [name.encode() for name in names]


async def test_remove_takes_only_the_entry_it_saw(tmp_path: Path) -> None:
    """One that was renewed meanwhile stays."""
    async with opened(tmp_path / "cache.db") as store:
        await store.put(key("a"), b"new")
        await store.remove(key("a"), b"old")
        assert await store.get(key("a")) == b"new"
        await store.remove(key("a"), b"new")
        assert await store.get(key("a")) == "absent"


async def test_cancellation_never_tears(tmp_path: Path) -> None:
    """Cancelled at any moment: each entry is whole or absent, and no transaction stays open."""
    path = tmp_path / "cache.db"
    big = {f"{turn}/{part}": bytes([part]) * 50_000 for turn in range(40) for part in range(3)}
    async with opened(path) as store:
        for turn in range(40):
            async with anyio.create_task_group() as tasks:
                for part in range(3):
                    name = f"{turn}/{part}"
                    tasks.start_soon(store.put, key(name), big[name])
                for _ in range(turn):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # raises while anybody's transaction is open
                other.execute("ROLLBACK")
        await store.put(key("after"), b"after")
        assert await store.get(key("after")) == b"after"
    whole = {key(name): entry for name, entry in big.items()} | {key("after"): b"after"}
    assert _rows(path).items() <= whole.items()


async def test_a_put_that_was_cancelled_while_it_waited_is_not_written(tmp_path: Path) -> None:
    """Nothing is left behind for the next transaction to pick up."""
    async with opened(tmp_path / "cache.db") as store:
        async with store._turn, anyio.create_task_group() as tasks:
            tasks.start_soon(store.put, key("a"), b"a")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        await store.put(key("b"), b"b")
        assert set(_rows(tmp_path / "cache.db")) == {key("b")}


@pytest.mark.parametrize("kept", [0, 100], ids=["no database", "cut short"])
async def test_a_damaged_file_is_set_aside(tmp_path: Path, kept: int) -> None:
    """A cache may be lost, a run may not."""
    path = tmp_path / "cache.db"
    async with opened(path) as store:
        await store.put(key("a"), b"a" * 10_000)
    damaged = path.read_bytes()[:kept] + b"not a database" * 500
    path.write_bytes(damaged)
    async with opened(path) as store:
        assert await store.get(key("a")) == "absent"
        await store.put(key("a"), b"again")
        assert await store.get(key("a")) == b"again"
    assert (tmp_path / "cache.db.damaged").read_bytes() == damaged


async def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """Not damage: nothing is moved, and the operator reads which path it was."""
    with pytest.raises(sqlite3.OperationalError, match=r"nowhere.cache\.db: unable to open"):
        await SqliteStore.open(tmp_path / "nowhere" / "cache.db", ttl_s=60, now=Clock())


async def test_a_path_with_signs_of_its_own(tmp_path: Path) -> None:
    """``?``, ``#`` and ``%`` are part of the name, not of a URI."""
    folder = tmp_path / "a?b#c%20d"
    folder.mkdir()
    async with opened(folder / "cache.db") as store:
        await store.put(key("a"), b"a")
        assert await store.get(key("a")) == b"a"


async def test_a_failure_is_an_outage_and_ends(tmp_path: Path) -> None:
    """All puts of a failed group are told; afterwards the same store works again."""
    path = tmp_path / "cache.db"
    async with opened(path) as store:
        with closing(sqlite3.connect(path)) as other:
            other.execute("ALTER TABLE entries RENAME TO elsewhere")
        with pytest.raises(StoreUnavailable, match="no such table"):
            await store.get(key("a"))
        failed = []

        async def put(name: str) -> None:
            with pytest.raises(StoreUnavailable, match="no such table"):
                await store.put(key(name), b"x")
            failed.append(name)

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(put, name)
        assert sorted(failed) == ["a", "b", "c"]
        with closing(sqlite3.connect(path)) as other:
            other.execute("ALTER TABLE elsewhere RENAME TO entries")
        await store.put(key("a"), b"x")
        assert await store.get(key("a")) == b"x"
