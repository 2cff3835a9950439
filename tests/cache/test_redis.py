"""Redis, with a real server: time to live, outage and return, cancellation."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream
from redis.asyncio import Redis

from actors.cache.redis import RedisStore
from actors.cache.store import StoreUnavailable
from tests.cache.support import Clock, RedisServer, key, redis_url

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(url: str, clock: Clock | None = None) -> AsyncIterator[RedisStore]:
    """An open store, closed whatever happens."""
    store = RedisStore(url, ttl_s=60, clock=clock or Clock())
    try:
        yield store
    finally:
        await store.close()


def _fresh(name: str = "") -> str:
    """A key that no other test uses: the server may be shared."""
    return key(f"{uuid.uuid4()}/{name}")


@pytest.mark.redis
async def test_an_entry_comes_back_and_has_a_time_to_live() -> None:
    """P1-1: no key is ever without one."""
    name = _fresh()
    async with opened(redis_url()) as store, Redis.from_url(redis_url()) as client:
        assert await store.get(name) == "absent"
        await store.put(name, b"\xff\x00 bytes")
        assert await store.get(name) == b"\xff\x00 bytes"
        (stored,) = [found async for found in client.scan_iter(match=f"*{name}")]
        assert 0 < await client.ttl(stored) <= 60
        await client.pexpire(stored, 1)
        while await client.exists(stored):
            await anyio.lowlevel.checkpoint()
        assert await store.get(name) == "absent"


@pytest.mark.redis
async def test_remove_takes_only_the_entry_it_saw() -> None:
    """One that was renewed meanwhile stays."""
    name = _fresh()
    async with opened(redis_url()) as store:
        await store.put(name, b"new")
        await store.remove(name, b"old")
        assert await store.get(name) == b"new"
        await store.remove(name, b"new")
        assert await store.get(name) == "absent"


@pytest.mark.redis
async def test_keys_never_collide_under_cancellation() -> None:
    """A call that is cancelled half way never leaves its reply to the next caller."""
    names = [_fresh(str(number)) for number in range(8)]
    async with opened(redis_url()) as store:
        for name in names:
            await store.put(name, name.encode())
        for turn in range(60):
            async with anyio.create_task_group() as tasks:
                for name in names[:4]:
                    tasks.start_soon(store.get, name)
                for _ in range(turn % 20):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            name = names[4 + turn % 4]
            assert await store.get(name) == name.encode()


@pytest.mark.redis
async def test_a_killed_server_is_an_outage_and_comes_back(tmp_path: Path) -> None:
    """Unavailable at once, left alone for a moment, then asked again."""
    clock = Clock()
    async with RedisServer.started(tmp_path) as server, opened(server.url, clock) as store:
        await store.put(key("a"), b"a")
        await server.kill()
        with pytest.raises(StoreUnavailable, match="ConnectionError"):
            await store.get(key("a"))
        await server.start()
        with pytest.raises(StoreUnavailable, match="a moment ago"):
            await store.get(key("a"))
        clock.at += 1.0
        assert await store.get(key("a")) == "absent"  # this server keeps nothing on disk
        await store.put(key("a"), b"again")
        assert await store.get(key("a")) == b"again"


async def test_a_dead_server_is_asked_ever_more_seldom(free_tcp_port: int) -> None:
    """The pause doubles up to its cap."""
    clock = Clock()
    pauses = []
    async with opened(f"redis://127.0.0.1:{free_tcp_port}/0", clock) as store:
        for _ in range(7):
            with pytest.raises(StoreUnavailable, match="ConnectionError"):
                await store.put(key("a"), b"a")
            began = clock.at
            while True:
                clock.at += 0.5
                try:
                    await store.get(key("a"))
                except StoreUnavailable as error:
                    if "moment ago" not in str(error):
                        break
            pauses.append(clock.at - began)
            clock.at += 40
    assert pauses == [1.0, 4.0, 16.0, 30.0, 30.0, 30.0, 30.0]


async def test_a_silent_server_costs_a_second_and_not_more() -> None:
    """It accepts and never answers: the socket's clock ends it."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        async def silent(stream: SocketStream) -> None:
            async with stream:
                async for _ in stream:
                    pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, silent)
            async with opened(f"redis://127.0.0.1:{port}/0") as store:
                with anyio.fail_after(10), pytest.raises(StoreUnavailable, match="TimeoutError"):
                    await store.get(key("a"))
            tasks.cancel_scope.cancel()
