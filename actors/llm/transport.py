"""The one adapter to HTTP: one try, with five clocks, closed whatever happens.

    connect       until the connection stands: name, TCP and TLS
    first token   request sent to first data event
    idle          between data events; comments and pings do not count (clients.md A2.4);
                  never shorter than asked, at most 1/16 longer
    attempt       the whole try
    total         the caller's, as the upper bound of the attempt

Never retries, never follows a redirect, never reads proxies from the environment.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio
import httpx
import msgspec

from actors.llm.classify import (
    Failure,
    capped,
    failure_of_end,
    failure_of_exception,
    failure_of_status,
)
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.http1 import Body, Http1Transport
from actors.llm.retry_after import retry_after_s
from actors.llm.sse import EventTooLarge
from actors.llm.stream import Complete, StreamReader
from protocol.llm import Usage
from protocol.settings import LlmSettings

__all__ = ["Exchange", "Transport"]

_DRAIN_S = 0.05
"""How long to read on after the end marker: without it the connection is never reused (A2.6)."""
_IDLE_SLACK = 1 / 16
"""How much longer than asked the idle clock may run: moving a deadline is costlier than reading
an event, so that it is moved seldom and too far rather than always and exactly."""
_ERROR_BODY_BYTES = 64 * 1024
_HEADERS = {
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",  # a cut gzip body ends like a whole one (A2.13)
    "Connection": "keep-alive",
    "Content-Type": "application/json",
    "User-Agent": "video-tree-trm",
}


class Exchange(msgspec.Struct, frozen=True):
    """One try, over. started: UTC; usage: what was counted, of a failed try too."""

    result: Complete | Failure
    started: datetime
    seconds: float
    first_token_s: float | None
    usage: Usage


class _Progress:
    """How far a try has come, and until when it may go on.

    over: when the attempt's clock ends. scope: is cancelled by whichever clock ends first.
    """

    def __init__(self, scope: anyio.CancelScope, begun: float, over: float, idle_s: float) -> None:
        self.reader = StreamReader()
        self.answered = False
        self.first_token_s: float | None = None
        self._scope = scope
        self._begun = begun
        self._over = over
        self._idle_s = idle_s
        self._slack_s = idle_s * _IDLE_SLACK
        self._fresh_until = -math.inf

    def heard(self) -> None:
        """Data came: the silence begins anew."""
        now = anyio.current_time()
        if self.first_token_s is None:
            self.first_token_s = now - self._begun
        if now >= self._fresh_until:
            self._fresh_until = now + self._slack_s
            self._scope.deadline = min(self._over, self._fresh_until + self._idle_s)

    def ended(self) -> None:
        """Nothing more is needed: silence is no failure any more."""
        self._scope.deadline = self._over


class Transport:
    """One HTTP transport for all endpoints; ``aclose`` it.

    As many connections as requests in flight, all of which are kept alive: the endpoints'
    limiters are the bound. What httpx's client would add (redirects, cookies, authentication,
    proxies, its own pool) has no use here and costs more than a request.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._http = Http1Transport()
        self._urls: dict[str, httpx.URL] = {}  # parsed once
        # silence and length are judged by data, not by bytes: only connecting has httpx's clock
        self._clocks = httpx.Timeout(None, connect=settings.connect_s).as_dict()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def exchange(
        self, endpoint: ResolvedEndpoint, body: bytes, limit_s: float, *, patience: float = 1.0
    ) -> Exchange:
        """One try. limit_s: what the call's total clock leaves.

        patience: multiplies the clocks that measure silence: a server that is merely slow
        would fail every try by the same clock (S3).
        """
        settings = self._settings
        first_token_s = settings.first_token_s * patience
        idle_s = settings.idle_s * patience
        started = datetime.now(UTC)
        begun = anyio.current_time()
        attempt_s = min(settings.attempt_s, limit_s)
        over = begun + attempt_s
        result: Complete | Failure | None = None
        with anyio.CancelScope(deadline=min(over, begun + first_token_s)) as scope:
            progress = _Progress(scope, begun, over, idle_s)
            result = await self._guarded(endpoint, body, progress)
        if result is None and isinstance(progress.reader.end, Complete):
            result = progress.reader.end  # a clock ran out after the answer was whole
        if result is None:
            if scope.deadline >= over:
                why = f"attempt: not whole after {attempt_s:g} s"
            elif progress.first_token_s is None:
                why = f"first token: nothing within {first_token_s:g} s"
            else:
                why = f"idle: no data for {idle_s:g} s"
            result = Failure("timeout", why)
        if isinstance(result, Failure):
            result = capped(result, settings.retry_after_cap_s)
        return Exchange(
            result=result,
            started=started,
            seconds=anyio.current_time() - begun,
            first_token_s=progress.first_token_s,
            usage=progress.reader.usage,
        )

    async def _guarded(
        self, endpoint: ResolvedEndpoint, body: bytes, progress: _Progress
    ) -> Complete | Failure:
        try:
            return await self._converse(endpoint, body, progress)
        except EventTooLarge as error:
            return Failure("server_error", str(error))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return failure_of_exception(error, progress.answered)

    async def _converse(
        self, endpoint: ResolvedEndpoint, body: bytes, progress: _Progress
    ) -> Complete | Failure:
        response = await self._http.handle_async_request(self._request(endpoint, body))
        try:
            progress.answered = True
            if not response.is_success:
                said = await _some(response)
                wait = retry_after_s(response.headers, datetime.now(UTC))
                return failure_of_status(response.status_code, said, wait)
            return await _read(response, progress)
        finally:
            # cancelled or not, the server must see that nobody listens any more; never waits
            await response.aclose()

    def _request(self, endpoint: ResolvedEndpoint, body: bytes) -> httpx.Request:
        url = self._urls.get(endpoint.url)
        if url is None:
            url = self._urls[endpoint.url] = httpx.URL(endpoint.url)
        headers = _HEADERS
        if endpoint.api_key is not None:
            headers = {**_HEADERS, "Authorization": f"Bearer {endpoint.api_key}"}
        return httpx.Request(
            "POST", url, headers=headers, content=body, extensions={"timeout": self._clocks}
        )


async def _read(response: httpx.Response, progress: _Progress) -> Complete | Failure:
    reader = progress.reader
    chunks = _parts(response)
    async for chunk in chunks:
        if reader.feed(chunk):
            progress.heard()
        if reader.end is not None:
            progress.ended()
            await _drain(response, chunks)
            break
    end = reader.close()
    if isinstance(end, Complete):
        return end
    failure = failure_of_end(end)
    assert failure is not None, "only a complete stream is no failure"
    return failure


def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes; decoded only where it is encoded, which we asked not to be."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx.AsyncByteStream), "an async client's stream"
    return aiter(response.stream)


async def _drain(response: httpx.Response, chunks: AsyncIterator[bytes]) -> None:
    """Read the body's last bytes, so that the connection can serve the next request."""
    stream = response.stream
    if isinstance(stream, Body) and stream.arrived:
        async for _ in chunks:  # without a clock, for there is nothing to wait for
            pass
        return
    with anyio.move_on_after(_DRAIN_S):
        try:
            async for _ in chunks:
                pass
        except (httpx.TransportError, httpx.DecodingError):
            return  # the answer was whole before; only the connection is lost


async def _some(response: httpx.Response) -> bytes:
    """The beginning of an error's body; what came before a cut is enough."""
    said = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            said += chunk
            if len(said) >= _ERROR_BODY_BYTES:
                break
    except (httpx.TransportError, httpx.DecodingError):
        return bytes(said)  # the status has said what matters
    return bytes(said)
