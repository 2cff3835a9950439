"""A client over the transport under test, and servers that it can rely on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from actors.llm.http1 import Http1Transport
from tests.llm.server import Connection, Server, chunked

__all__ = ["CHUNKED", "DONE", "OK", "Client", "echo", "opened"]

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
DONE = OK + b"Content-Length: 4\r\n\r\ndone"


class Client:
    """Posts to a server; ``transport`` is what is tested."""

    def __init__(self, transport: Http1Transport, url: str) -> None:
        self.transport = transport
        self.url = url
        self.http = httpx.AsyncClient(
            transport=transport, timeout=httpx.Timeout(None, connect=5.0), trust_env=False
        )

    async def post(self, body: bytes = b"{}") -> httpx.Response:
        return await self.http.post(self.url, content=body)


@asynccontextmanager
async def opened(server: Server, **options: object) -> AsyncIterator[Client]:
    """A client that is closed at the end, cancelled or not."""
    client = Client(Http1Transport(**options), server.base_url)  # type: ignore[arg-type]  # passed on
    try:
        yield client
    finally:
        await client.transport.aclose()


async def echo(connection: Connection) -> None:
    """Answer every request with its own body, in two chunks."""
    while (request := await connection.request()) is not None:
        _, body = request
        await connection.send(CHUNKED + chunked(body[:1], body[1:]))
