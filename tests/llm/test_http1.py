"""Connections of the chat client's transport: which are kept, which are not, how they are made."""

from __future__ import annotations

import socket
from collections.abc import Callable

import anyio
import httpx
import pytest

from actors.llm import sockets
from tests.llm.http1_client import CHUNKED, DONE, OK, echo, opened
from tests.llm.server import Connection, chunked, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.usefixtures("waiting"),
]


async def test_a_connection_is_kept() -> None:
    """One after the other over one connection; at once over as many as there are requests."""
    async with serving(echo) as server, opened(server) as client:
        for number in range(5):
            assert (await client.post(b"q%d" % number)).content == b"q%d" % number
        assert len(server.connections) == 1

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(client.post)
        assert len(server.connections) == 10
        assert client.transport.connections == 10


async def test_the_connection_freed_last_is_taken_first() -> None:
    """So that after a burst the others can grow old."""
    reached, first = anyio.Event(), anyio.Event()
    used: list[int] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            used.append(connection.number)
            if request[1] == b"slow":
                reached.set()
                await first.wait()
            await connection.send(DONE)

    async with serving(handler) as server, opened(server) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, b"slow")
            await reached.wait()
            await client.post(b"quick")
            first.set()
        slow, quick = used
        assert slow != quick
        await client.post()
        await client.post()
        assert used[2:] == [slow, slow]


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: 4\r\n\r\ndone",
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ndone",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"done"),
        DONE + b"x",
        DONE + DONE,
    ],
    ids=["close", "http-1.0", "upgrade", "two-lengths", "extra-byte", "extra-answer"],
)
async def test_a_connection_is_not_kept(answer: bytes) -> None:
    """Whatever leaves its state in doubt: the next request has a new one."""

    async def handler(connection: Connection) -> None:
        while await connection.request() is not None:
            await connection.send(answer)

    async with serving(handler) as server, opened(server) as client:
        for _ in range(2):
            response = await client.post()
            assert response.content == (b"" if response.status_code == 101 else b"done")
        assert len(server.connections) == 2
        assert client.transport.connections == 0


async def test_an_idle_connection_that_ended_is_not_used() -> None:
    """The server's goodbye is noticed before anything is sent."""

    async def once(connection: Connection) -> None:
        await connection.request()
        await connection.send(DONE)

    async with serving(once) as server, opened(server) as client:
        for number in range(1, 4):
            assert (await client.post()).content == b"done"
            await server.connections[-1].gone.wait()
            assert len(server.connections) == number
            assert client.transport.connections == 1


async def test_an_idle_connection_that_speaks_is_not_used() -> None:
    """Bytes that come after the answer, alone, are not the next answer."""
    speak, spoken = anyio.Event(), anyio.Event()

    async def handler(connection: Connection) -> None:
        await connection.request()
        await connection.send(DONE)
        if connection.number == 1:
            await speak.wait()
            await connection.send(OK + b"Content-Length: 5\r\n\r\nwrong")
            spoken.set()
            await connection.until_gone()

    async with serving(handler) as server, opened(server) as client:
        await client.post()
        speak.set()
        await spoken.wait()
        assert (await client.post()).content == b"done"


async def test_old_connections_are_dropped() -> None:
    """One that was idle for too long is not used, and is closed when another is freed."""
    now = 0.0
    async with serving(echo) as server, opened(server, clock=lambda: now, idle_s=60.0) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(client.post)
        now = 60.0
        await client.post()
        assert (len(server.connections), client.transport.connections) == (3, 3)
        now = 61.0
        await client.post()  # over the one that was used a second ago
        assert (len(server.connections), client.transport.connections) == (3, 1)
        now = 200.0
        await client.post()
        assert (len(server.connections), client.transport.connections) == (4, 1)


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("after_ms", range(6))
async def test_S2_keep_alive_race(how: str, after_ms: int) -> None:
    """S2: closed under the next request: it is sent once more, over a new connection."""
    bodies: list[bytes] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            bodies.append(request[1])
            if bodies == [b"first", b"second"]:
                await anyio.sleep(after_ms / 1000)
                return connection.rst() if how == "rst" else connection.fin()
            await connection.send(DONE)
        return None

    async with serving(handler) as server, opened(server) as client:
        await client.post(b"first")
        assert (await client.post(b"second")).content == b"done"
        assert bodies == [b"first", b"second", b"second"]
        assert [connection.number for connection in server.connections] == [1, 2]
        await client.post(b"third")
        assert len(server.connections) == 2


async def test_S2_is_for_kept_connections_only() -> None:
    """S2: a new connection that fails is a failure; so is the second one after a kept one."""
    bodies: list[bytes] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            bodies.append(request[1])
            if request[1] != b"good":
                return
            await connection.send(DONE)

    async with serving(handler) as server, opened(server) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(b"bad")
        assert bodies == [b"bad"]
        await client.post(b"good")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(b"bad")
        assert bodies == [b"bad", b"good", b"bad", b"bad"]
        assert client.transport.connections == 0


@pytest.mark.parametrize("begun", [b"H", CHUNKED, CHUNKED + b"1\r\n"])
async def test_S2_is_over_with_the_first_byte(begun: bytes) -> None:
    """S2: once a byte of a response has come, nothing is sent again."""
    bodies: list[bytes] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            bodies.append(request[1])
            await connection.send(DONE if len(bodies) == 1 else begun)
            if len(bodies) == 2:
                return

    async with serving(handler) as server, opened(server) as client:
        await client.post(b"first")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(b"second")
        assert bodies == [b"first", b"second"]


async def test_an_answer_to_half_a_request() -> None:
    """A server that answers and hangs up before it has read everything is still heard."""

    async def impatient(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        connection.half_close()
        await connection.until_gone()

    async with serving(impatient) as server, opened(server) as client:
        response = await client.post(b"x" * 3_000_000)
        assert (response.status_code, response.content) == (413, b"big")


async def test_an_answer_after_a_failed_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer counts, the connection does not."""

    async def broken(self: sockets.TcpStream, item: bytes) -> None:
        raise anyio.BrokenResourceError from BrokenPipeError(32, "Broken pipe")

    async def handler(connection: Connection) -> None:
        await connection.send(DONE)
        await connection.until_gone()

    monkeypatch.setattr(sockets.TcpStream, "send", broken)
    async with serving(handler) as server, opened(server) as client:
        assert (await client.post()).content == b"done"
        assert client.transport.connections == 0


def _addresses(*ports: int) -> Callable[..., object]:
    async def found(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

    return found


async def test_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address of a name is tried; no address and no name are ConnectError."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    async with serving(echo) as server, opened(server) as client:
        port = int(server.base_url.split(":")[2].split("/")[0])
        client.url = "http://some.name/v1"
        monkeypatch.setattr(anyio, "getaddrinfo", _addresses(closed, port, port))
        assert (await client.post()).status_code == 200
        monkeypatch.setattr(anyio, "getaddrinfo", _addresses(port))
        client.url = "http://other.name/v1"
        assert (await client.post()).status_code == 200
        for ports in ((closed,), (closed, closed)):
            monkeypatch.setattr(anyio, "getaddrinfo", _addresses(*ports))
            client.url = f"http://none{len(ports)}.name/v1"
            with pytest.raises(httpx.ConnectError, match="refused"):
                await client.post()

        async def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(anyio, "getaddrinfo", unknown)
        with pytest.raises(httpx.ConnectError, match="not known"):
            await client.post()
        assert client.transport.connections == 2
