"""Requests that are given up, and what must become of their connections (S1, S12)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import httpx
import pytest

from tests.llm.http1_client import CHUNKED, echo, opened
from tests.llm.server import Connection, chunked, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.usefixtures("waiting"),
]


async def test_S1_cancellations_poison_nothing() -> None:
    """S1: 40 callers that give up at any moment; whoever waits gets his own answer."""

    async def slow(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            await anyio.sleep(0.01)
            await connection.send(CHUNKED + chunked(request[1][:1], last=False))
            await connection.send(chunked(request[1][1:]))

    answers = 0
    async with serving(slow) as server, opened(server) as client:

        async def caller(number: int) -> None:
            nonlocal answers
            for turn in range(12):
                body = b"%d-%d" % (number, turn)
                patience = 0.001 * ((number * 7 + turn * 11) % 31) if turn < 11 else None
                with anyio.move_on_after(patience):
                    assert (await client.post(body)).content == body
                    answers += 1

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(caller, number)
        assert answers >= 40
        for _ in range(client.transport.connections + 1):
            assert (await client.post(b"plain")).content == b"plain"
        async with anyio.create_task_group() as tasks:
            for _ in range(client.transport.connections):
                tasks.start_soon(client.post)
        await client.transport.aclose()
        with anyio.fail_after(5):
            for connection in server.connections:
                await connection.gone.wait()
        assert server.live == 0


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200", CHUNKED, CHUNKED + b"1\r\nx"], ids=["-", "line", "head", "body"]
)
async def test_S12_a_cancelled_request_hangs_up(sent: bytes) -> None:
    """S12: wherever the answer was, the server sees the end, and the client goes on."""
    reached, gone = anyio.Event(), anyio.Event()

    async def handler(connection: Connection) -> None:
        if connection.number > 1:
            return await echo(connection)
        await connection.request()
        await connection.send(sent)
        reached.set()
        await connection.until_gone()
        gone.set()
        return None

    async with serving(handler) as server, opened(server) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post)
            await reached.wait()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert client.transport.connections == 0
        with anyio.fail_after(5):
            await gone.wait()
        assert (await client.post(b"next")).content == b"next"


async def test_S12_a_body_closed_half_way_hangs_up() -> None:
    """S12: closing a response is enough; reading on is a mistake."""
    gone = anyio.Event()

    async def handler(connection: Connection) -> None:
        await connection.request()
        await connection.send(CHUNKED + chunked(b"a", last=False))
        await connection.until_gone()
        gone.set()

    async with serving(handler) as server, opened(server) as client:
        async with client.http.stream("POST", client.url, content=b"{}") as response:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            parts = aiter(response.stream)
            assert await anext(parts) == b"a"
        assert client.transport.connections == 0
        with pytest.raises(httpx.StreamClosed):
            await anext(parts)
        with anyio.fail_after(5):
            await gone.wait()


async def test_a_body_that_was_not_read_leaves_its_connection_alone() -> None:
    """Whole when it was closed, so the connection is kept, and no iterator left over ends it."""
    async with serving(echo) as server, opened(server) as client:

        async def ask() -> tuple[httpx.AsyncByteStream, AsyncGenerator[bytes]]:
            request = client.http.build_request("POST", client.url, content=b"abc")
            response = await client.transport.handle_async_request(request)
            assert isinstance(response.stream, httpx.AsyncByteStream)
            parts = aiter(response.stream)
            assert isinstance(parts, AsyncGenerator)
            return response.stream, parts

        body, left_over = await ask()
        await anext(left_over)
        await body.aclose()
        _, parts = await ask()
        await left_over.aclose()
        assert b"".join([part async for part in parts]) == b"abc"
        assert len(server.connections) == 1


async def test_closing_the_transport_ends_what_is_under_way() -> None:
    """Requests fail, tasks that wait for a socket among them; nothing stays open."""
    waiting = anyio.Event()
    errors: list[type[Exception]] = []

    async def handler(connection: Connection) -> None:
        await connection.request()
        if connection.number % 2:
            await connection.send(CHUNKED)
        if len(server.connections) == 6:
            waiting.set()
        await connection.until_gone()

    async with serving(handler) as server, opened(server) as client:

        async def ask() -> None:
            try:
                await client.post()
            except httpx.TransportError as error:
                errors.append(type(error))

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(ask)
            await waiting.wait()
            await anyio.wait_all_tasks_blocked()
            await client.transport.aclose()
        assert errors == [httpx.ReadError] * 6
        with pytest.raises(httpx.ConnectError):
            await client.post()
