"""The same over TLS: the handshake and its clock, records that come together, rude goodbyes."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSAttribute, TLSListener, TLSStream

from actors.llm.http1 import Http1Transport
from tests.llm.http1_client import CHUNKED, DONE
from tests.llm.server import Connection, chunked, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.usefixtures("waiting"),
]

PEM = Path(__file__).parent / "cases" / "loopback.pem"
TRUSTING = ssl.create_default_context(cafile=PEM)

Handler = Callable[[TLSStream], Awaitable[None]]


@asynccontextmanager
async def serving_tls(handler: Handler) -> AsyncIterator[str]:
    """A server whose connections are each given to ``handler``; its base URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(PEM)
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = tcp.listeners[0].extra(SocketAttribute.local_port)
    listener = TLSListener(tcp, context, standard_compatible=False)

    async def handle(stream: TLSStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):  # the client hung up
                await handler(stream)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield f"https://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def opened(
    tls: ssl.SSLContext | None = TRUSTING, connect_s: float = 5.0
) -> AsyncIterator[tuple[httpx.AsyncClient, Http1Transport]]:
    transport = Http1Transport(tls=tls)
    clocks = httpx.Timeout(None, connect=connect_s)
    async with httpx.AsyncClient(transport=transport, timeout=clocks, trust_env=False) as client:
        yield client, transport


async def asked(stream: TLSStream) -> None:
    """Wait for a whole request."""
    read = b""
    while not read.endswith(b"\r\n\r\n{}"):
        read += await stream.receive()


async def test_a_connection_is_kept() -> None:
    """Several requests over one handshake, and a body larger than any buffer."""
    seen: set[int] = set()

    async def handler(stream: TLSStream) -> None:
        seen.add(id(stream))
        while True:
            await asked(stream)
            await stream.send(CHUNKED + chunked(b"ab", last=False))
            await stream.send(chunked(b"c" * 300_000))

    async with serving_tls(handler) as url, opened() as (client, transport):
        for host in ("127.0.0.1", "127.0.0.1", "localhost"):
            response = await client.post(url.replace("127.0.0.1", host), content=b"{}")
            assert response.content == b"ab" + b"c" * 300_000
        assert len(seen) == transport.connections == 2


async def test_a_record_that_came_too_early() -> None:
    """It was read from the socket with the answer: the connection only looks quiet."""

    async def handler(stream: TLSStream) -> None:
        while True:
            await asked(stream)
            stream.extra(TLSAttribute.ssl_object).write(DONE)  # buffered, and sent with the next
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")

    async with serving_tls(handler) as url, opened() as (client, _):
        for _ in range(3):
            assert (await client.post(url, content=b"{}")).content == b"done"


@pytest.mark.parametrize("polite", [True, False])
async def test_a_cut_answer(polite: bool) -> None:
    """TLS's own goodbye does not make half an answer a whole one; nor does its lack matter."""

    async def handler(stream: TLSStream) -> None:
        await asked(stream)
        await stream.send(CHUNKED + chunked(b"a", last=False))
        if polite:
            await stream.unwrap()

    async with serving_tls(handler) as url, opened() as (client, transport):
        with pytest.raises(httpx.RemoteProtocolError, match="peer closed connection"):
            await client.post(url, content=b"{}")
        assert transport.connections == 0


async def test_S2_keep_alive_race() -> None:
    """S2: as without TLS."""
    streams: list[TLSStream] = []

    async def handler(stream: TLSStream) -> None:
        streams.append(stream)
        await asked(stream)
        await stream.send(DONE)
        await asked(stream)
        if len(streams) > 1:
            await stream.send(DONE)

    async with serving_tls(handler) as url, opened() as (client, _):
        for _ in range(3):
            assert (await client.post(url, content=b"{}")).content == b"done"
        assert len(streams) == 2


async def test_bytes_that_are_no_record() -> None:
    """A broken record after the handshake is a ReadError."""

    async def handler(stream: TLSStream) -> None:
        await asked(stream)
        await stream.transport_stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving_tls(handler) as url, opened() as (client, _):
        with pytest.raises(httpx.ReadError):
            await client.post(url, content=b"{}")


async def test_a_certificate_that_nobody_signed() -> None:
    """httpx's own trust store does not know it."""

    async def handler(stream: TLSStream) -> None:
        raise AssertionError(await stream.receive())

    async with serving_tls(handler) as url, opened(tls=None) as (client, transport):
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await client.post(url, content=b"{}")
        assert transport.connections == 0


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["fin", "http"])
async def test_a_server_without_tls(said: bytes) -> None:
    """Whatever it says instead of a handshake."""

    async def handler(connection: Connection) -> None:
        await connection.send(said)
        connection.half_close()
        await connection.until_gone()

    async with serving(handler) as server, opened() as (client, transport):
        with pytest.raises(httpx.ConnectError) as caught:
            await client.post(server.base_url.replace("http:", "https:"), content=b"{}")
        assert str(caught.value)
        assert transport.connections == 0


async def test_the_clock_of_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It covers the handshake and the look-up of the name."""

    async def silent(connection: Connection) -> None:
        await connection.until_gone()

    async def unanswered(*_: object, **__: object) -> None:
        await anyio.sleep_forever()

    async with serving(silent) as server, opened(connect_s=0.05) as (client, transport):
        with pytest.raises(httpx.ConnectTimeout):
            await client.post(server.base_url.replace("http:", "https:"), content=b"{}")
        assert transport.connections == 0
        await server.connections[0].gone.wait()
        monkeypatch.setattr(anyio, "getaddrinfo", unanswered)
        with pytest.raises(httpx.ConnectTimeout):
            await client.post("http://some.name/v1", content=b"{}")


async def test_S1_cancelled_in_the_handshake() -> None:
    """S1: the socket is closed, not left to be found later."""
    connected = anyio.Event()

    async def silent(connection: Connection) -> None:
        connected.set()
        await connection.until_gone()

    async with serving(silent) as server, opened() as (client, transport):
        url = server.base_url.replace("http:", "https:")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, url)
            await connected.wait()
            await anyio.wait_all_tasks_blocked()
            assert transport.connections == 1
            tasks.cancel_scope.cancel()
        assert transport.connections == 0
        await server.connections[0].gone.wait()
