"""The one table of failures: status, body, frame or exception to a kind.

Policy lives here and nowhere else: which kinds are worth another try (rows P1-2, P1-3), which of
them speak against the endpoint (row P2-6), and which mean that this endpoint serves nobody while
another one may. Never sleeps, never logs.
"""

from __future__ import annotations

import re
from typing import Literal

import httpx
import msgspec

from actors.llm.chunks import ErrorFrame, read_event
from actors.llm.sse import SseEvent
from actors.llm.stream import Complete, Empty, End, InBandError, Truncated
from protocol.llm import FailureKind

__all__ = [
    "FATAL",
    "TOO_LONG",
    "Failure",
    "Verdict",
    "capped",
    "failure_of_end",
    "failure_of_exception",
    "failure_of_status",
    "verdict_of",
]

Verdict = Literal["success", "failure", "neutral"]

FATAL: frozenset[FailureKind] = frozenset(
    {"bad_request", "auth", "context", "quota", "retry_after_too_long", "body"}
)
TOO_LONG: FailureKind = "retry_after_too_long"
_OF_ENDPOINT: frozenset[FailureKind] = frozenset({"auth", "quota", TOO_LONG})
"""Fatal for whoever asks this endpoint; the request itself may be answered by another one."""
_NOT_THERE = frozenset({404, 405, 410, 501, 505})
"""Statuses of an address or a model that the endpoint does not serve."""
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]?found|\bmodel\b.{0,120}?\bnot (?:found|exist)|(?:no such|unknown) model",
    re.S,
)
_AGAINST_ENDPOINT: frozenset[FailureKind] = frozenset(
    {"truncated", "timeout", "transport", "empty", "server_error", "aborted"}
)
_BY_STATUS: dict[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    409: "server_error",
    413: "body",
    425: "server_error",
    429: "rate_limit",
    501: "bad_request",
    505: "bad_request",
}
_BY_WORDS: tuple[tuple[FailureKind, tuple[str, ...]], ...] = (
    # looked for in this order in an error's type and code
    ("quota", ("insufficient_quota", "quota_exceeded", "billing", "payment_required")),
    ("context", ("context_length_exceeded", "context_window", "string_above_max_length")),
    ("rate_limit", ("rate_limit", "ratelimit", "too_many_requests", "throttl")),
    ("auth", ("invalid_api_key", "authentication", "permission", "unauthorized")),
    ("aborted", ("abort",)),
    ("bad_request", ("invalid_request", "badrequest", "bad_request", "not_found", "notfound")),
)
_CONTEXT_MESSAGES = (
    "maximum context length",
    "context length exceeded",
    "context window",
    "exceeds the available context",
    "exceeds the model's context",
    "prompt is too long",
)
_DETAIL_CHARS = 300


class Failure(msgspec.Struct, frozen=True):
    """Why a try gave no answer. retry_after_s: what the server asked for.

    unserved: there are no chats at this address, or not with this model.
    """

    kind: FailureKind
    detail: str
    retry_after_s: float | None = None
    unserved: bool = False

    @property
    def fatal(self) -> bool:
        """True: the same request would fail again at this endpoint."""
        return self.kind in FATAL

    @property
    def of_endpoint(self) -> bool:
        """True: any request would fail there, and this one may be answered elsewhere."""
        return self.unserved or self.kind in _OF_ENDPOINT


def failure_of_status(status: int, body: bytes, retry_after_s: float | None) -> Failure:
    """A response other than 2xx."""
    frame = read_event(SseEvent(body))
    found = _from_words(frame) if isinstance(frame, ErrorFrame) else None
    kind = _from_status(status)
    # the words refine what the status says, they never turn a 5xx into our own mistake
    if found in ("quota", "context") and status < 500:
        kind = found
    said = frame.message if isinstance(frame, ErrorFrame) else body.decode("utf-8", "replace")
    unserved = kind == "bad_request" and (status in _NOT_THERE or status < 400 or _no_model(frame))
    return Failure(kind, f"HTTP {status}: {said}"[:_DETAIL_CHARS], retry_after_s, unserved)


def failure_of_end(end: End) -> Failure | None:
    """A stream's end under HTTP 200; None for the one that is an answer."""
    match end:
        case Complete():
            return None
        case Truncated(why):
            return Failure("truncated", why[:_DETAIL_CHARS])
        case Empty(why):
            return Failure("empty", why[:_DETAIL_CHARS])
        case InBandError(frame):
            detail = " ".join(part for part in (frame.label, frame.message) if part)
            kind = _from_frame(frame)
            unserved = kind == "bad_request" and (frame.code in _NOT_THERE or _no_model(frame))
            return Failure(kind, f"in-band: {detail}"[:_DETAIL_CHARS], unserved=unserved)


def failure_of_exception(error: httpx.HTTPError | httpx.InvalidURL, answered: bool) -> Failure:
    """What the HTTP client raised. answered: the response's head had come (row P1-3).

    The class name is the detail: a reset connection has an empty message.
    """
    detail = f"{type(error).__name__}: {error}"[:_DETAIL_CHARS]
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
        return Failure("bad_request", detail, unserved=True)  # its base_url, or the key's header
    if isinstance(error, httpx.TimeoutException):
        return Failure("timeout", detail)
    if isinstance(error, httpx.TransportError | httpx.DecodingError):
        return Failure("truncated" if answered else "transport", detail)
    # redirects, which a chat endpoint has no use for
    return Failure("bad_request", detail, unserved=True)


def capped(failure: Failure, cap_s: float) -> Failure:
    """A transient failure whose Retry-After is beyond ``cap_s``: the endpoint is not waited for.

    What becomes of the call is the pool's to say, which knows the other endpoints.
    """
    wait = failure.retry_after_s
    if failure.fatal or wait is None or wait <= cap_s:
        return failure
    detail = f"Retry-After {wait:.0f} s is above {cap_s:.0f} s; {failure.detail}"
    return Failure(TOO_LONG, detail[:_DETAIL_CHARS], wait)


def verdict_of(failure: Failure | None, probe: bool = False) -> Verdict:
    """What a try says about its endpoint: our own mistakes say nothing, and neither does a 429.

    probe: a 429 shows a probe that the server is there again; the limiter does the rest.
    """
    if failure is None or (probe and failure.kind == "rate_limit"):
        return "success"
    return "failure" if failure.kind in _AGAINST_ENDPOINT else "neutral"


def _from_status(status: int) -> FailureKind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server_error" if status >= 500 else "bad_request"


def _from_words(frame: ErrorFrame) -> FailureKind | None:
    for kind, words in _BY_WORDS:
        if any(word in frame.label for word in words):
            return kind
    message = frame.message.lower()
    return "context" if any(part in message for part in _CONTEXT_MESSAGES) else None


def _no_model(frame: object) -> bool:
    """Whether an error says that its model is unknown: many servers do so with a 400."""
    if not isinstance(frame, ErrorFrame):
        return False
    return _NO_MODEL.search(f"{frame.label} {frame.message.lower()}") is not None


def _from_frame(frame: ErrorFrame) -> FailureKind:
    found = _from_words(frame)
    if found in ("quota", "context"):
        return found
    if frame.code is not None and 400 <= frame.code < 600:
        return _from_status(frame.code)
    return found or "server_error"
