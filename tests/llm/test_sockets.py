"""One socket: reads that give way, writes that wait, and addresses that answer together."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest

from actors.llm import sockets
from actors.llm.poller import Poller
from actors.llm.sockets import TcpStream, dial

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


@contextmanager
def connected() -> Iterator[tuple[TcpStream, TcpStream]]:
    """Two ends with small buffers."""
    poller = Poller()
    streams = []
    for sock in socket.socketpair():
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        streams.append(TcpStream(sock, poller))
    try:
        yield streams[0], streams[1]
    finally:
        for stream in streams:
            stream.close()
        poller.close()


async def test_reading_gives_way() -> None:
    """While there is always more to read, others still have their turn."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    with connected() as (near, far):
        await far.send(b"x" * 2000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            for _ in range(20):
                assert await near.receive(100) == b"x" * 100
            tasks.cancel_scope.cancel()
    assert turns >= 15


async def test_writing_waits_for_the_reader() -> None:
    """All of it arrives, however little the kernel takes at a time."""
    sent = bytes(range(256)) * 4000
    with connected() as (near, far):
        read = b""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(near.send, sent)
            while len(read) < len(sent):
                read += await far.receive()
    assert read == sent


async def test_closing_ends_a_wait() -> None:
    """A reader and a writer in other tasks; afterwards nothing works any more."""

    async def reads() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await near.receive()

    async def writes() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await near.send(b"x" * 1_000_000)

    with connected() as (near, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reads)
            tasks.start_soon(writes)
            await anyio.wait_all_tasks_blocked()
            assert near.quiet
            near.close()
        assert near.closed
        assert not near.quiet
        await reads()
        await writes()
        near.close()


async def test_the_other_end() -> None:
    """Its last bytes come before its end; writing to nobody fails."""
    with connected() as (near, far):
        await far.send(b"abc")
        far.close()
        assert not near.quiet
        assert await near.receive() == b"abc"
        with pytest.raises(anyio.EndOfStream):
            await near.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await near.send(b"x")


async def test_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two addresses answer at once: one connection is used, the other closed."""
    both = anyio.Event()
    made: list[socket.socket] = []

    async def answers(_: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
        made.append(socket.socket())
        if address[1] == 1:
            with anyio.CancelScope(shield=True):
                await both.wait()
            return made[0]
        both.set()
        return made[1]

    async def found(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("x", port)) for port in (1, 2)]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    monkeypatch.setattr(sockets, "_connected", answers)
    monkeypatch.setattr(sockets, "_STAGGER_S", 0.0)
    sock = await dial("some.name", 80)
    assert [one.fileno() == -1 for one in made] == [one is not sock for one in made]
    sock.close()
