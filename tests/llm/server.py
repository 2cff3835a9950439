"""Raw TCP servers on loopback, so that every byte and every way to hang up is the test's own."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

__all__ = ["Connection", "Handler", "Server", "Step", "answer", "chunked", "play", "serving", "sse"]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a scripted response."""

    send: str | None = None
    send_b64: str | None = None
    sleep: float | None = None
    close: str | None = None


class Connection:
    """One accepted connection."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.number = number
        self.gone = anyio.Event()
        self._sock = sock
        self._unread = bytearray()

    async def _receive(self) -> bytes:
        await anyio.wait_readable(self._sock)
        try:
            return self._sock.recv(65536)
        except ConnectionError:
            return b""

    async def request(self) -> tuple[bytes, bytes] | None:
        """Head and body of the next request; None: the peer hung up."""
        while b"\r\n\r\n" not in self._unread:
            data = await self._receive()
            if not data:
                return None
            self._unread += data
        head, _, rest = bytes(self._unread).partition(b"\r\n\r\n")
        lengths = [h for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        while len(rest) < length:
            data = await self._receive()
            if not data:
                return None
            rest += data
        self._unread = bytearray(rest[length:])
        return head, rest[:length]

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            await anyio.wait_writable(self._sock)
            view = view[self._sock.send(view) :]

    async def until_gone(self) -> None:
        """Wait until the peer closed the connection."""
        while await self._receive():
            pass

    def fin(self) -> None:
        self._sock.close()

    def half_close(self) -> None:
        """Say no more, but listen on."""
        self._sock.shutdown(socket.SHUT_WR)

    def rst(self) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()


Handler = Callable[[Connection], Awaitable[None]]


class Server:
    """Where it listens, and what it saw."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.connections: list[Connection] = []

    @property
    def live(self) -> int:
        """Connections that neither side has closed."""
        return sum(not connection.gone.is_set() for connection in self.connections)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Server]:
    """A server whose connections are each given to ``handler``."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    listener.setblocking(False)
    server = Server(listener.getsockname()[1])

    async def handle(connection: Connection) -> None:
        try:
            await handler(connection)
        except (ConnectionError, OSError):
            pass  # the client hung up, or the script did
        finally:
            connection.fin()
            connection.gone.set()

    async def accept() -> None:
        while True:
            await anyio.wait_readable(listener)
            sock, _ = listener.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, len(server.connections) + 1)
            server.connections.append(connection)
            tasks.start_soon(handle, connection)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            yield server
            tasks.cancel_scope.cancel()
    finally:
        listener.close()


async def play(connection: Connection, steps: Sequence[Step]) -> None:
    """Answer one request with the steps, then wait for the client to go."""
    if await connection.request() is None:
        return None
    for step in steps:
        if step.send is not None:
            await connection.send(step.send.encode())
        elif step.send_b64 is not None:
            await connection.send(base64.b64decode(step.send_b64))
        elif step.sleep is not None:
            await anyio.sleep(step.sleep)
        elif step.close == "rst":
            return connection.rst()
        else:
            return connection.fin()
    await connection.until_gone()
    return None


def chunked(*parts: bytes, last: bool = True) -> bytes:
    """Parts as HTTP chunks."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return body + (b"0\r\n\r\n" if last else b"")


SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def sse(text: str | None = None, finish: str | None = None) -> bytes:
    """One chat event."""
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n"


def answer(text: str, finish: str = "stop", usage: tuple[int, int] = (3, 2)) -> bytes:
    """A whole, healthy response."""
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    last = b"data: " + msgspec.json.encode({"choices": [], "usage": counted}) + b"\n\n"
    return SSE_HEAD + chunked(sse(text), sse(None, finish), last, b"data: [DONE]\n\n")
