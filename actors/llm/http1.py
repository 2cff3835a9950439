"""HTTP/1.1 for many streams at once, under httpx's API and with httpx's exceptions.

httpx's own pool looks at every connection whenever a request begins or ends, and its connection
costs several times what a stream needs. Here a request takes the connection that was freed last
or dials a new one, and a body's bytes pass through one parser in C. What a chat client does not
need is left out: proxies, HTTP/2, bodies of unknown length, and httpx's clocks for reading and
writing, in place of which the caller cancels. How many connections there are is bounded by the
endpoints' limiters.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import anyio
import httpx
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

from actors.llm.http1_parse import ResponseParser, request_head
from actors.llm.poller import Poller
from actors.llm.sockets import TcpStream, dial

__all__ = ["Body", "Http1Transport"]

_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, ssl.SSLError)
_PORTS = {"http": 80, "https": 443}
_READ_BYTES = 64 * 1024
_JOIN_BYTES = 64 * 1024
"""Up to this size a request goes out in one piece, head and body; above it is not copied."""


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class _Connection:
    """One connection. heard: a byte of the current response has come."""

    __slots__ = ("_stream", "_tcp", "_tls", "heard", "idle_since", "origin")

    def __init__(self, origin: _Origin, tcp: TcpStream) -> None:
        self.origin = origin
        self.heard = False
        self.idle_since = 0.0
        self._tcp = tcp
        self._stream: ByteStream = tcp
        self._tls: ssl.SSLObject | None = None

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """The TLS handshake. Raises ConnectError."""
        try:
            stream = await TLSStream.wrap(
                self._tcp,
                hostname=self.origin.host,
                ssl_context=context,
                standard_compatible=False,
            )
        except (*_BROKEN, anyio.EndOfStream) as error:
            raise httpx.ConnectError(_why(error) or "closed during the handshake") from error
        self._stream = stream
        self._tls = stream.extra(TLSAttribute.ssl_object)

    @property
    def closed(self) -> bool:
        """``close`` was called."""
        return self._tcp.closed

    @property
    def quiet(self) -> bool:
        """Nothing has come that was not asked for, its end included."""
        if not self._tcp.quiet:
            return False
        if self._tls is None:
            return True
        try:
            self._tls.read(1)  # a record may have come together with the last one we read
        except ssl.SSLWantReadError:
            return True
        except ssl.SSLError:
            return False
        return False

    async def send(self, data: bytes) -> None:
        """Raises WriteError."""
        try:
            await self._stream.send(data)
        except _BROKEN as error:
            raise httpx.WriteError(_why(error)) from error

    async def receive(self, parser: ResponseParser) -> bytes:
        """Wait for what comes next, its end included; the body's part of it. Raises ReadError."""
        try:
            data = await self._stream.receive(_READ_BYTES)
        except anyio.EndOfStream:
            parser.eof()
            return b""
        except _BROKEN as error:
            raise httpx.ReadError(_why(error)) from error
        self.heard = True
        return parser.feed(data)

    def close(self) -> None:
        """At once, without a word to the peer."""
        self._tcp.close()


class Http1Transport(httpx.AsyncBaseTransport):
    """Gives each request a connection of its own, kept alive in between.

    Invariant: an open connection is either idle or held by exactly one request, from before its
    first byte is sent until its response has ended; one that does not end in order is closed.

    tls: instead of httpx's trust store. idle_s: a connection idle for longer is dropped.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        idle_s: float = 60.0,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._tls = tls
        self._idle_s = idle_s
        self._clock = clock
        self._idle: dict[_Origin, deque[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._poller = Poller()
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and wait for the response's head.

        A kept connection may have been closed by the server while the request was under way
        (S2): if it ends before any byte of a response, the request is sent once more, over a new
        one. Raises what httpx raises; its only clock is ``connect``.
        """
        origin = _origin(request.url)
        head = request_head(request)
        body = await request.aread()
        kept = self._take(origin)
        if kept is not None:
            try:
                return await self._exchange(kept, head, body)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if kept.heard:
                    raise
        clocks = request.extensions.get("timeout", {})
        return await self._exchange(await self._connect(origin, clocks.get("connect")), head, body)

    async def aclose(self) -> None:
        """Close every connection; requests under way fail with ReadError."""
        self._closed = True
        self._idle.clear()
        while self._open:
            self._open.pop().close()
        self._poller.close()

    @property
    def connections(self) -> int:
        """Open connections, idle ones included."""
        return len(self._open)

    async def _exchange(self, connection: _Connection, head: bytes, body: bytes) -> httpx.Response:
        parser = ResponseParser()
        sent = True
        connection.heard = False
        try:
            try:
                if len(body) <= _JOIN_BYTES:
                    await connection.send(head + body)
                else:
                    await connection.send(head)
                    await connection.send(body)
            except httpx.WriteError:
                sent = False  # the server may have answered before it hung up
            begun = b""
            while not parser.head_done:
                begun = await connection.receive(parser)
                if parser.error is not None and not parser.head_done:
                    raise httpx.RemoteProtocolError(parser.error)
        except BaseException:
            self._drop(connection)
            raise
        if not sent:
            parser.reusable = False
        return httpx.Response(
            parser.status,
            headers=parser.headers,
            stream=Body(self, connection, parser, begun),
        )

    async def _connect(self, origin: _Origin, connect_s: float | None) -> _Connection:
        try:
            with anyio.fail_after(connect_s):
                return await self._dial(origin)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"not connected within {connect_s:g} s") from error

    async def _dial(self, origin: _Origin) -> _Connection:
        try:
            sock = await dial(origin.host, origin.port)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(str(error)) from error
        if self._closed:
            sock.close()
            raise httpx.ConnectError("closed while connecting")
        connection = _Connection(origin, TcpStream(sock, self._poller))
        self._open.add(connection)
        if origin.scheme == "https":
            try:
                await connection.encrypt(self._tls_context())
            except BaseException:
                self._drop(connection)
                raise
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        """One for all connections: it is costly to make."""
        if self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _take(self, origin: _Origin) -> _Connection | None:
        """The idle connection that was freed last, unless it has gone bad."""
        idle = self._idle.get(origin)
        now = self._clock()
        while idle:
            connection = idle.pop()
            if now - connection.idle_since <= self._idle_s and connection.quiet:
                return connection
            self._drop(connection)
        return None

    def _keep(self, connection: _Connection) -> None:
        """Its response has ended in order: the next request may have it."""
        if connection.closed or self._closed:
            self._drop(connection)
            return
        connection.idle_since = now = self._clock()
        idle = self._idle.setdefault(connection.origin, deque())
        idle.append(connection)
        while now - idle[0].idle_since > self._idle_s:
            self._drop(idle.popleft())

    def _drop(self, connection: _Connection) -> None:
        connection.close()
        self._open.discard(connection)


class Body(httpx.AsyncByteStream):
    """The body of a response; settles what becomes of the connection, once."""

    def __init__(
        self,
        owner: Http1Transport,
        connection: _Connection,
        parser: ResponseParser,
        begun: bytes,
    ) -> None:
        self._owner = owner
        self._connection: _Connection | None = connection
        self._parser = parser
        self._begun = begun  # what came with the head

    @property
    def arrived(self) -> bool:
        """Its end has come: what is left can be read without waiting, and will not fail."""
        return self._parser.complete

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parser, connection = self._parser, self._connection
        if connection is None:
            return
        data, self._begun = self._begun, b""
        try:
            while True:
                if data:
                    yield data
                if parser.complete:
                    break
                if parser.error is not None:
                    raise httpx.RemoteProtocolError(parser.error)
                if self._connection is None:
                    raise httpx.StreamClosed  # the connection is somebody else's by now
                data = await connection.receive(parser)
        finally:
            self._settle()

    async def aclose(self) -> None:
        self._settle()

    def _settle(self) -> None:
        connection = self._connection
        if connection is None:
            return  # settled before: by now it may serve another request
        self._connection = None
        if self._parser.complete and self._parser.reusable:
            self._owner._keep(connection)
        else:
            self._owner._drop(connection)


def _origin(url: httpx.URL) -> _Origin:
    scheme = url.scheme
    if scheme not in _PORTS:
        what = f"has an unsupported protocol '{scheme}://'" if scheme else "is missing a protocol"
        raise httpx.UnsupportedProtocol(f"Request URL {what}.")
    return _Origin(scheme, url.raw_host.decode("ascii"), url.port or _PORTS[scheme])


def _why(error: BaseException) -> str:
    """The operating system's words; a reset connection has few."""
    return str(error.__cause__ or error)
