"""What a response can look like, and how it can break: ours and httpx's transport must agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import httpx
import msgspec
import pytest

from actors.llm.http1 import Http1Transport
from tests.llm.server import Connection, chunked, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.parametrize("make", [Http1Transport, httpx.AsyncHTTPTransport]),
]

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = OK + b"Content-Length: 9\r\n"
NO_ANSWER = "Server disconnected without sending a response."
CUT = "peer closed connection without sending complete message body"

Make = Callable[[], httpx.AsyncBaseTransport]


class Case(msgspec.Struct, frozen=True):
    """What a server sends, how it ends, and what must come of it."""

    id: str
    sent: bytes
    then: Literal["stays", "fin", "rst"] = "stays"
    status: int | None = 200
    body: bytes = b""
    error: type[httpx.TransportError] | None = None
    says: str = ""


def _unheard(name: str, sent: bytes) -> Case:
    """Not the head of a response that we can read."""
    return Case(name, sent, status=None, error=PROTOCOL)


PROTOCOL, READ = httpx.RemoteProtocolError, httpx.ReadError
CASES = [
    Case("length", OK + b"Content-Length: 2\r\n\r\nab", body=b"ab"),
    Case("no-body", OK + b"Content-Length: 0\r\n\r\n"),
    Case("chunks", CHUNKED + chunked(b"ab", b"c"), body=b"abc"),
    Case("chunk-extension", CHUNKED + b"1;a=b;c\r\nx\r\n0\r\n\r\n", body=b"x"),
    Case("blank-after-chunk-size", CHUNKED + b"1 \r\nx\r\n0\r\n\r\n", body=b"x"),
    Case("trailers", CHUNKED + b"1\r\nx\r\n0\r\nX: y\r\n\r\n", body=b"x"),
    Case("until-fin", OK + b"\r\nab", "fin", body=b"ab"),
    Case("http-1.0", b"HTTP/1.0 200 OK\r\n\r\nab", "fin", body=b"ab"),
    Case("no-reason", b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", body=b"a"),
    Case("line-feeds", b"HTTP/1.1 200 OK\nContent-Length: 1\n\na", body=b"a"),
    Case("folded-header", OK + b"X: a\r\n b\r\nContent-Length: 1\r\n\r\na", body=b"a"),
    Case("latin-1-header", OK + b"X: \xe9\r\nContent-Length: 1\r\n\r\na", body=b"a"),
    Case("204", b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", status=204),
    Case("304", b"HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n", status=304),
    Case(
        "interim-responses",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\na",
        status=201,
        body=b"a",
    ),
    Case("chunks-and-length", LONG + CHUNKED[17:] + chunked(b"a"), body=b"a"),
    Case("bytes-after-the-end", OK + b"Content-Length: 1\r\n\r\nabc", body=b"a"),
    Case("nothing-fin", b"", "fin", None, error=PROTOCOL, says=NO_ANSWER),
    Case("half-a-head-fin", OK + b"X: y\r\n", "fin", None, error=PROTOCOL, says=NO_ANSWER),
    Case("nothing-rst", b"", "rst", None, error=READ),
    Case("chunks-rst", CHUNKED + chunked(b"a", last=False), "rst", error=READ),
    Case("until-rst", OK + b"\r\na", "rst", error=READ),
    Case("chunks-fin", CHUNKED + chunked(b"a", last=False), "fin", 200, b"a", PROTOCOL, CUT),
    Case("half-a-chunk-fin", CHUNKED + b"5\r\nab", "fin", 200, b"ab", PROTOCOL, CUT),
    Case("no-last-blank-line", CHUNKED + b"1\r\na\r\n0\r\n", "fin", 200, b"a", PROTOCOL, CUT),
    Case("short-of-length", LONG + b"\r\nab", "fin", 200, b"ab", PROTOCOL, CUT),
    Case("bad-chunk-size", CHUNKED + b"1\r\na\r\nzz\r\n", "stays", 200, b"a", PROTOCOL),
    _unheard("no-http", b"SSH-2.0-OpenSSH_9.9\r\n\r\n"),
    _unheard("bad-status", b"HTTP/1.1 2x0 OK\r\n\r\n"),
    _unheard("no-status", b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
    _unheard("bad-header-name", OK + b"A B: c\r\n\r\n"),
    _unheard("nul-in-header", OK + b"A: b\0c\r\nContent-Length: 0\r\n\r\n"),
    _unheard("bad-length", OK + b"Content-Length: x\r\n\r\n"),
    _unheard("two-lengths", OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    _unheard("other-coding", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    _unheard("coding-twice", OK + CHUNKED[17:-2] + CHUNKED[17:]),
    _unheard("endless-header", OK + b"X: " + b"y" * 150_000),
    _unheard("endless-headers", OK + b"X: y\r\n" * 30_000),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_response(case: Case, make: Make) -> None:
    """Status, body up to the break, and the exception."""

    async def handler(connection: Connection) -> None:
        await connection.request()
        await connection.send(case.sent)
        if case.then == "stays":
            await connection.until_gone()
        elif case.then == "rst":
            connection.rst()

    status, body, raised = None, b"", None
    async with serving(handler) as server, httpx.AsyncClient(transport=make()) as client:
        try:
            async with client.stream("POST", server.base_url, content=b"{}") as response:
                status = response.status_code
                async for part in response.aiter_bytes():
                    body += part
        except httpx.TransportError as error:
            raised = error
    assert type(raised) is (case.error or type(None)), raised
    assert case.says in str(raised)
    if case.then != "rst":  # which may overtake what came before it
        assert (status, body) == (case.status, case.body)


async def test_headers(make: Make) -> None:
    """Of the response itself, blanks stripped and repeats kept; names are httpx's to fold."""

    async def handler(connection: Connection) -> None:
        await connection.request()
        fields = b"X-One:  a \t\r\nx-two: b\r\nX-Two: c\r\nContent-Length: 0\r\n\r\n"
        await connection.send(b"HTTP/1.1 103 Early Hints\r\nX-One: z\r\n\r\n" + OK + fields)
        await connection.until_gone()

    async with serving(handler) as server, httpx.AsyncClient(transport=make()) as client:
        response = await client.post(server.base_url, content=b"{}")
    assert response.headers["x-one"] == "a"
    assert response.headers.get_list("X-TWO") == ["b", "c"]
    assert response.http_version == "HTTP/1.1"


@pytest.mark.parametrize(
    "header",
    [
        ("X", b"a\r\nY: b"),
        ("X", b"a\nb"),
        ("X", b"a\0b"),
        ("X", b" a"),
        (b"X Y", b"a"),
        (b"X:", b"a"),
        (b"X\r\nY", b"a"),
        (b"", b"a"),
    ],
    ids=repr,
)
async def test_a_header_says_one_thing_only(make: Make, header: tuple[bytes, bytes]) -> None:
    """No header smuggles another one, and nothing of it is sent."""

    async def handler(connection: Connection) -> None:
        assert await connection.request() is None

    async with serving(handler) as server, httpx.AsyncClient(transport=make()) as client:
        with pytest.raises(httpx.LocalProtocolError):
            await client.post(server.base_url, content=b"{}", headers=[header])


async def test_other_schemes(make: Make) -> None:
    """Only http and https."""
    async with httpx.AsyncClient(transport=make()) as client:
        for url in ("ftp://127.0.0.1/x", "//127.0.0.1/x", "x"):
            with pytest.raises(httpx.UnsupportedProtocol):
                await client.post(url, content=b"{}")


async def test_what_is_sent(make: Make) -> None:
    """The head as httpx made it, the body in one piece or many."""
    heads: list[bytes] = []
    bodies: list[int] = []

    async def handler(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            heads.append(request[0])
            bodies.append(len(request[1]))
            await connection.send(OK + b"Content-Length: 0\r\n\r\n")

    async with serving(handler) as server, httpx.AsyncClient(transport=make()) as client:
        for size in (0, 1, 64 * 1024, 64 * 1024 + 1, 3_000_000):
            url = f"{server.base_url}/chat?x=%20y#z"
            await client.post(url, content=b"x" * size, headers={"X-Case": "Kept"})
        host = server.base_url.split("/")[2].encode()
        assert len(server.connections) == 1
    assert bodies == [0, 1, 64 * 1024, 64 * 1024 + 1, 3_000_000]
    for head, size in zip(heads, bodies, strict=True):
        line, *fields = head.split(b"\r\n")
        assert line == b"POST /v1/chat?x=%20y HTTP/1.1"
        assert {b"Host: " + host, b"X-Case: Kept", b"Content-Length: %d" % size} <= set(fields)
