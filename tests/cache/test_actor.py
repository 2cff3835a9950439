"""Hits and misses as the chat client sees them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from actors.cache.actor import CacheActor
from protocol.cache import CacheGet, CacheHit, CacheMiss, CachePut, CacheStored
from tests.cache.support import Clock, RedisServer, answer, cache_settings, key, running

pytestmark = pytest.mark.anyio


def _put(name: str, text: str) -> CachePut:
    return CachePut(key=key(name), answer=answer(text))


def _get(name: str) -> CacheGet:
    return CacheGet(key=key(name))


def _sqlite(path: Path, clock: Clock | None = None) -> CacheActor:
    return CacheActor(cache_settings(), path, environ={}, now=clock or Clock())


@pytest.mark.parametrize("ttl", ["0", "-1", "", "forever"])
def test_P1_1_no_actor_is_built_with_an_endless_ttl(tmp_path: Path, ttl: str) -> None:
    """P1-1: refused before anything runs."""
    with pytest.raises(ValueError, match="REDIS_CACHE_TTL"):
        CacheActor(cache_settings(), tmp_path / "cache.db", environ={"REDIS_CACHE_TTL": ttl})


async def test_an_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    """In this incarnation and in the next, under its own key only."""
    async with running(_sqlite(tmp_path / "cache.db")) as cache:
        assert await cache.get(_get("a")) == CacheMiss(why="absent")
        assert await cache.put(_put("a", "Zoë: B")) == CacheStored(stored=True)
    async with running(_sqlite(tmp_path / "cache.db")) as cache:
        assert await cache.get(_get("a")) == CacheHit(answer=answer("Zoë: B"))
        assert await cache.get(_get("b")) == CacheMiss(why="absent")
        assert (cache.counts.hits, cache.counts.absent) == (1, 1)


async def test_P1_1_an_entry_expires(tmp_path: Path) -> None:
    """P1-1: a time to live ends."""
    clock = Clock()
    async with running(_sqlite(tmp_path / "cache.db", clock)) as cache:
        await cache.put(_put("a", "B"))
        clock.at += 60
        assert await cache.get(_get("a")) == CacheMiss(why="expired")


async def test_the_default_clock_is_the_wall(tmp_path: Path) -> None:
    """Without an injected clock an entry of now is alive."""
    actor = CacheActor(cache_settings(), tmp_path / "cache.db", environ={})
    async with running(actor) as cache:
        await cache.put(_put("a", "B"))
        assert await cache.get(_get("a")) == CacheHit(answer=answer("B"))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET entry = substr(entry, 1, length(entry) - 5)",
        "UPDATE entries SET entry = CAST(replace(entry, 'B', 'C') AS BLOB)",
        "UPDATE entries SET entry = x''",
        "UPDATE entries SET entry = 'text, not bytes'",
        "UPDATE entries SET entry = 7",
    ],
    ids=["cut", "other answer", "empty", "text", "number"],
)
async def test_a_corrupt_entry_is_a_miss_once(tmp_path: Path, damage: str) -> None:
    """Counted, logged and removed; the key can be used again."""
    path = tmp_path / "cache.db"
    async with running(_sqlite(path)) as cache:
        await cache.put(_put("a", "the answer is B"))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        with capture_logs() as logs:
            assert await cache.get(_get("a")) == CacheMiss(why="corrupt")
        assert [line["event"] for line in logs] == ["cache.corrupt"]
        assert await cache.get(_get("a")) == CacheMiss(why="absent")
        assert cache.counts.corrupt == 1
        await cache.put(_put("a", "B"))
        assert await cache.get(_get("a")) == CacheHit(answer=answer("B"))


async def test_two_entries_that_changed_places_are_corrupt(tmp_path: Path) -> None:
    """A key never gets the answer of another."""
    path = tmp_path / "cache.db"
    async with running(_sqlite(path)) as cache:
        await cache.put(_put("a", "A"))
        await cache.put(_put("b", "B"))
        with closing(sqlite3.connect(path)) as connection, connection:
            rows = connection.execute("SELECT key, entry FROM entries").fetchall()
            (one, first), (two, second) = rows
            connection.execute("UPDATE entries SET entry = ? WHERE key = ?", (second, one))
            connection.execute("UPDATE entries SET entry = ? WHERE key = ?", (first, two))
        assert await cache.get(_get("a")) == CacheMiss(why="corrupt")
        assert await cache.get(_get("b")) == CacheMiss(why="corrupt")


async def test_a_store_that_fails_is_a_miss_and_comes_back(tmp_path: Path) -> None:
    """Logged when it begins and when it ends, not at every chat."""
    path = tmp_path / "cache.db"
    async with running(_sqlite(path)) as cache:
        with capture_logs() as logs:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("ALTER TABLE entries RENAME TO elsewhere")
            for _ in range(3):
                assert await cache.get(_get("a")) == CacheMiss(why="unavailable")
                assert await cache.put(_put("a", "B")) == CacheStored(stored=False)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("ALTER TABLE elsewhere RENAME TO entries")
            assert await cache.put(_put("a", "B")) == CacheStored(stored=True)
        events = [line["event"] for line in logs]
        assert events == ["cache.unavailable", "cache.available_again"]
        assert cache.counts.unavailable == 6


async def test_a_store_that_can_only_be_read_is_told_once(tmp_path: Path) -> None:
    """A full disk: reading still works, which is no sign that writing does."""
    path = tmp_path / "cache.db"
    async with running(_sqlite(path)) as cache:
        with capture_logs() as logs, closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON entries"
                " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
            for _ in range(3):
                assert await cache.put(_put("a", "B")) == CacheStored(stored=False)
                assert await cache.get(_get("a")) == CacheMiss(why="absent")
            assert [line["event"] for line in logs] == ["cache.unavailable"]
            connection.execute("DROP TRIGGER full")
            assert await cache.put(_put("a", "B")) == CacheStored(stored=True)
            assert [line["event"] for line in logs] == [
                "cache.unavailable",
                "cache.available_again",
            ]


async def test_an_answer_without_utf8_is_not_stored(tmp_path: Path) -> None:
    """Half a surrogate pair: said, not crashed over."""
    async with running(_sqlite(tmp_path / "cache.db")) as cache:
        assert await cache.put(_put("a", "\ud83d")) == CacheStored(stored=False)
        assert await cache.get(_get("a")) == CacheMiss(why="absent")
        assert cache.counts.unstorable == 1


async def test_no_backend_is_always_absent(tmp_path: Path) -> None:
    """And makes no file."""
    actor = CacheActor(cache_settings("none"), tmp_path / "cache.db", environ={})
    async with running(actor) as cache:
        assert await cache.put(_put("a", "B")) == CacheStored(stored=False)
        assert await cache.get(_get("a")) == CacheMiss(why="absent")
    assert not (tmp_path / "cache.db").exists()


@pytest.mark.redis
async def test_redis_through_the_actor(tmp_path: Path) -> None:
    """A hit, an outage that is a miss, and a corrupt entry that is removed."""
    async with RedisServer.started(tmp_path) as server:
        environ = {"REDIS_URL": server.url, "REDIS_CACHE_TTL": "60"}
        actor = CacheActor(cache_settings("redis"), tmp_path / "unused.db", environ=environ)
        async with running(actor) as cache:
            assert await cache.put(_put("a", "B")) == CacheStored(stored=True)
            assert await cache.get(_get("a")) == CacheHit(answer=answer("B"))
            async with Redis.from_url(server.url) as client:
                (stored,) = await client.keys("*")
                await client.append(stored, b"!")
                assert await cache.get(_get("a")) == CacheMiss(why="corrupt")
                assert await client.keys("*") == []
            await server.kill()
            assert await cache.get(_get("a")) == CacheMiss(why="unavailable")
            assert await cache.put(_put("a", "B")) == CacheStored(stored=False)
    assert not (tmp_path / "unused.db").exists()
