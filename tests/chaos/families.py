"""The ways in which an endpoint goes wrong, and those in which it is merely odd.

A content event that comes twice is not among them: nothing in the protocol could tell.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import msgspec

from tests.llm.server import SSE_HEAD, Connection, answer, chunked, sse
from tests.llm.support import status

__all__ = ["FAULTS", "HEALTHY", "ODDITIES", "PROSE", "Answer", "Fault"]


class Answer(msgspec.Struct, frozen=True):
    """What the simulator said: the stream's events, and the same as one JSON object."""

    events: tuple[bytes, ...]
    whole: bytes

    @property
    def half(self) -> bytes:
        """The beginning of the text, no more."""
        return b"".join(self.events[:2])


Play = Callable[[Connection, Answer], Awaitable[None]]
Make = Callable[[Answer], bytes]


class Fault(msgspec.Struct, frozen=True):
    """One way to answer. kind: what the try must be booked as; None: as an answer.

    before_head: nothing of a response comes, so that a kept connection's request is sent again
    without being a try (S2).
    """

    name: str
    kind: str | None
    play: Play
    before_head: bool = False


def _sent(make: Make) -> Play:
    """A response that is whole as far as HTTP goes; the connection lives on."""

    async def play(connection: Connection, answer: Answer) -> None:
        await connection.send(make(answer))

    return play


def _closed(make: Make) -> Play:
    """A response, and the connection is closed."""

    async def play(connection: Connection, answer: Answer) -> None:
        await connection.send(make(answer))
        connection.fin()
        raise ConnectionAbortedError  # nothing more can be read here

    return play


def _reset(make: Make) -> Play:
    """A response, and the connection breaks."""

    async def play(connection: Connection, answer: Answer) -> None:
        await connection.send(make(answer))
        connection.rst()
        raise ConnectionAbortedError

    return play


def _silent(make: Make) -> Play:
    """A response, and then nothing more: the client must lose patience."""

    async def play(connection: Connection, answer: Answer) -> None:
        await connection.send(make(answer))
        await connection.until_gone()

    return play


def _stream(*parts: bytes) -> bytes:
    """A stream that ends in order."""
    return SSE_HEAD + chunked(*parts)


def _begun(*parts: bytes) -> bytes:
    """A stream whose end is still to come."""
    return SSE_HEAD + chunked(*parts, last=False)


def _body(
    data: bytes, *, code: int = 200, mime: bytes = b"application/json", more: int = 0
) -> bytes:
    """A body with a length. more: bytes that are promised and do not come."""
    head = b"HTTP/1.1 %d x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (code, mime, len(data) + more) + data


def _typed(mime: bytes, *parts: bytes) -> bytes:
    return _stream(*parts).replace(b"text/event-stream", mime, 1)


def _zipped(answer: Answer, *, whole: bool = True) -> bytes:
    """As gzip, which was not asked for. whole: else it ends in the middle of the text."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(answer.half) + packer.flush(zlib.Z_SYNC_FLUSH)
    if whole:
        body += packer.compress(b"".join(answer.events[2:])) + packer.flush()
    head = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    return head + chunked(body)


async def _late(connection: Connection, answer: Answer) -> None:
    await anyio.sleep(0.3)
    await connection.send(_stream(*answer.events))


async def _dribbled(connection: Connection, answer: Answer) -> None:
    """Cut where it hurts: inside chunk sizes, JSON and multi-byte characters."""
    data = _stream(*answer.events)
    for at in range(0, len(data), 97):
        await connection.send(data[at : at + 97])
        await anyio.lowlevel.checkpoint()


_PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
_ERROR = b'data: {"error": {"message": "out of memory", "type": "server_error", "code": 500}}\n\n'
_TORN = b'data: {"choices": [{\n\n'
_DONE = b"data: [DONE]\n\n"
_PING = b": ping\n\n"

FAULTS = (
    Fault("reset before the head", "transport", _reset(lambda _: b""), before_head=True),
    Fault("closed before the head", "transport", _closed(lambda _: b""), before_head=True),
    Fault("no HTTP at all", "transport", _closed(lambda _: b"SSH-2.0-OpenSSH_9.2\r\n\r\n")),
    Fault("reset in the text", "truncated", _reset(lambda a: _begun(a.half))),
    Fault("closed in the text", "truncated", _closed(lambda a: _begun(a.half))),
    Fault("ended in the text", "truncated", _sent(lambda a: _stream(a.half))),
    Fault("closed after finish_reason", "truncated", _closed(lambda a: _begun(*a.events[:-2]))),
    Fault("shorter than its length", "truncated", _closed(lambda a: _body(a.whole, more=9))),
    Fault("a chunk that is no JSON", "truncated", _sent(lambda a: _stream(a.half, _TORN))),
    Fault("a gzip body cut short", "truncated", _sent(lambda a: _zipped(a, whole=False))),
    Fault("429", "rate_limit", _sent(lambda _: status(429))),
    Fault("429, retry-after-ms", "rate_limit", _sent(lambda _: status(429, "retry-after-ms: 30"))),
    Fault("429, Retry-After", "rate_limit", _sent(lambda _: status(429, "Retry-After: 0.05"))),
    Fault("500", "server_error", _sent(lambda _: status(500))),
    Fault(
        "502, a page", "server_error", _sent(lambda _: _body(_PAGE, code=502, mime=b"text/html"))
    ),
    Fault("503, Retry-After", "server_error", _sent(lambda _: status(503, "Retry-After: 0.05"))),
    Fault("529", "server_error", _sent(lambda _: status(529))),
    Fault("200, a page", "server_error", _sent(lambda _: _typed(b"text/html", _PAGE))),
    Fault("an error in the stream", "server_error", _sent(lambda a: _stream(a.half, _ERROR))),
    Fault("an empty body", "empty", _sent(lambda _: _stream())),
    Fault("no text", "empty", _sent(lambda _: _stream(sse(None, "stop"), _DONE))),
    Fault("silence", "timeout", _silent(lambda _: b"")),
    Fault("pings, and silence", "timeout", _silent(lambda _: _begun(_PING, _PING))),
    Fault("stalled in the text", "timeout", _silent(lambda a: _begun(a.half))),
)

ODDITIES = (
    Fault("without [DONE]", None, _sent(lambda a: _stream(*a.events[:-1]))),
    Fault("a late first token", None, _late),
    Fault("in small pieces", None, _dribbled),
    Fault("no content type", None, _sent(lambda a: _typed(b"application/octet-stream", *a.events))),
    Fault("one JSON object", None, _sent(lambda a: _body(a.whole))),
    Fault("gzip, which was not asked for", None, _sent(_zipped)),
    Fault("usage and [DONE] twice", None, _sent(lambda a: _stream(*a.events, *a.events[-2:]))),
    Fault(
        "pings between events", None, _sent(lambda a: _stream(_PING, a.half, _PING, *a.events[2:]))
    ),
)
"""Whole answers all the same."""

HEALTHY = Fault("healthy", None, _sent(lambda a: _stream(*a.events)))

PROSE = Fault("prose", None, _sent(lambda _: answer("I am glad that you ask.")))
"""What another model says than the one that was meant: no fault of a connection."""
