"""The one adapter to HTTP: one try, with five clocks, closed whatever happens.

    connect       httpx's own connect timeout
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
from actors.llm.http1 import Http1Transport
from actors.llm.retry_after import retry_after_s
from actors.llm.sse import EventTooLarge
from actors.llm.stream import Complete, StreamReader
from protocol.llm import Usage
from protocol.settings import LlmSettings

__all__ = ["Exchange", "Transport"]

_DRAIN_S = 0.05
"""How long to read on after the end marker: without it the connection is never reused (A2.6)."""
_CLOSE_S = 1.0
_IDLE_SLACK = 1 / 16
"""How much longer than asked the idle clock may run: moving a deadline is costlier than reading
an event, so that it is moved seldom and too far rather than always and exactly."""
_ERROR_BODY_BYTES = 64 * 1024


class Exchange(msgspec.Struct, frozen=True):
    """One try, over. started: UTC; usage: what was counted, of a failed try too."""

    result: Complete | Failure
    started: datetime
    seconds: float
    first_token_s: float | None
    usage: Usage


class _Progress:
    """How far a try has come; the clocks' verdict depends on it."""

    def __init__(self, silence: anyio.CancelScope, idle_s: float, begun: float) -> None:
        self.reader = StreamReader()
        self.answered = False
        self.first_token_s: float | None = None
        self._silence = silence
        self._idle_s = idle_s
        self._begun = begun
        self._moved = -math.inf

    def heard(self) -> None:
        """Data came: the silence begins anew."""
        now = anyio.current_time()
        if self.first_token_s is None:
            self.first_token_s = now - self._begun
        slack = self._idle_s * _IDLE_SLACK
        if now >= self._moved + slack:
            self._moved = now
            self._silence.deadline = now + self._idle_s + slack

    def ended(self) -> None:
        """Nothing more is needed: silence is no failure any more."""
        self._silence.deadline = math.inf


class Transport:
    """One HTTP client for all endpoints; ``aclose`` it.

    As many connections as requests in flight, all of which are kept alive: the endpoints'
    limiters are the bound.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._client = httpx.AsyncClient(
            headers={
                "Accept": "text/event-stream, application/json",
                "Accept-Encoding": "identity",  # a cut gzip body ends like a whole one (A2.13)
                "Content-Type": "application/json",
                "User-Agent": "video-tree-trm",
            },
            # silence and length are judged by data, not by bytes: only connecting is httpx's
            timeout=httpx.Timeout(None, connect=settings.connect_s),
            transport=Http1Transport(),
            trust_env=False,
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

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
        result: Complete | Failure | None = None
        with (
            anyio.move_on_after(attempt_s) as attempt,
            anyio.move_on_after(first_token_s) as silence,
        ):
            progress = _Progress(silence, idle_s, begun)
            result = await self._guarded(endpoint, body, progress)
        if result is None and isinstance(progress.reader.end, Complete):
            result = progress.reader.end  # a clock ran out after the answer was whole
        if result is None:
            if attempt.cancelled_caught:
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
        key = endpoint.api_key
        request = self._client.build_request(
            "POST",
            endpoint.url,
            content=body,
            headers=None if key is None else {"Authorization": f"Bearer {key}"},
        )
        response = await self._client.send(request, stream=True)
        try:
            progress.answered = True
            if not response.is_success:
                said = await _some(response)
                wait = retry_after_s(response.headers, datetime.now(UTC))
                return failure_of_status(response.status_code, said, wait)
            return await _read(response, progress)
        finally:
            # cancelled or not, the server must see that nobody listens any more
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await response.aclose()


async def _read(response: httpx.Response, progress: _Progress) -> Complete | Failure:
    reader = progress.reader
    chunks = _parts(response)
    async for chunk in chunks:
        if reader.feed(chunk):
            progress.heard()
        if reader.end is not None:
            progress.ended()
            await _drain(chunks)
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


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the body's last bytes, so that the connection can serve the next request."""
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
