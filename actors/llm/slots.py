"""Connections for many streams at once: a pool of one connection for every request in flight.

httpx's own pool looks at every connection whenever a request begins or ends, which at dozens
of streams costs more than the streams themselves. This keeps httpx's parts (TLS, HTTP/1.1, its
exceptions) and takes only the choice of a connection away from it: the last one freed for the
same origin, or a new one. How many are in flight is the endpoints' limiters' business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx

__all__ = ["SlotTransport"]

_Origin = tuple[str, str, int | None]
_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


class SlotTransport(httpx.AsyncBaseTransport):
    """Gives each request a connection of its own.

    Invariant: a slot is either free or held by exactly one request, from ``handle`` until that
    response is closed; one whose closing fails is never handed out again.
    """

    def __init__(self) -> None:
        self._tls = httpx.create_ssl_context(trust_env=False)  # costly: one for all slots
        self._free: dict[_Origin, list[httpx.AsyncHTTPTransport]] = {}
        self._all: set[httpx.AsyncHTTPTransport] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send over a free or a new connection. Raises what httpx raises."""
        origin = (request.url.scheme, request.url.host, request.url.port)
        free = self._free.setdefault(origin, [])
        slot = free.pop() if free else self._new()
        try:
            response = await slot.handle_async_request(request)
        except BaseException:
            # httpx has closed the connection by now, cancelled or not; the slot is good
            free.append(slot)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream), "an async transport's stream"
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_HeldStream(
                response.stream, lambda: free.append(slot), lambda: self._all.discard(slot)
            ),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for slot in self._all:
            await slot.aclose()
        self._all.clear()
        self._free.clear()

    def _new(self) -> httpx.AsyncHTTPTransport:
        slot = httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=_ONE)
        self._all.add(slot)
        return slot


class _HeldStream(httpx.AsyncByteStream):
    """A response body that frees its slot when it is closed."""

    def __init__(
        self, inner: httpx.AsyncByteStream, free: Callable[[], None], lose: Callable[[], None]
    ) -> None:
        self._inner = inner
        self._free = free
        self._lose = lose
        self._held = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part

    async def aclose(self) -> None:
        if not self._held:
            return
        self._held = False
        try:
            await self._inner.aclose()
        except BaseException:
            self._lose()  # its connection is in an unknown state
            raise
        self._free()
