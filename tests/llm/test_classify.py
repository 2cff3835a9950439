"""The table of failures (rows P1-3, P2-6)."""

from __future__ import annotations

import httpx
import pytest

from actors.llm.chunks import ErrorFrame
from actors.llm.classify import (
    FATAL,
    capped,
    failure_of_end,
    failure_of_exception,
    failure_of_status,
    verdict_of,
)
from actors.llm.stream import InBandError


def leaves(kind: type[BaseException]) -> list[type[BaseException]]:
    below = [leaf for child in kind.__subclasses__() for leaf in leaves(child)]
    return below or [kind]


TRANSIENT = [
    leaf
    for leaf in leaves(httpx.TransportError)
    if leaf not in (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
]


@pytest.mark.parametrize("kind", TRANSIENT, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("answered", [False, True])
def test_P1_3_all_timeouts_and_transport_errors_are_transient(
    kind: type[httpx.TransportError], answered: bool
) -> None:
    """P1-3: every leaf of TimeoutException and TransportError, the disconnects included."""
    failure = failure_of_exception(kind(""), answered)
    assert not failure.fatal
    assert verdict_of(failure) == "failure"
    assert kind.__name__ in failure.detail  # the message of a reset connection is empty


def test_P1_3_a_bad_encoding_is_transient() -> None:
    """P1-3: DecodingError is no TransportError, and still the network's doing."""
    assert failure_of_exception(httpx.DecodingError("bad gzip"), True).kind == "truncated"


@pytest.mark.parametrize(
    "error", [httpx.UnsupportedProtocol(""), httpx.LocalProtocolError(""), httpx.InvalidURL("")]
)
def test_our_own_mistakes_are_fatal(error: httpx.TransportError) -> None:
    """The same request would fail again."""
    assert failure_of_exception(error, False).kind == "bad_request"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b"", "bad_request"),
        (400, b'{"error": {"code": "context_length_exceeded"}}', "context"),
        (400, b'{"object":"error","message":"maximum context length is 9","code":400}', "context"),
        (401, b"", "auth"),
        (402, b"", "quota"),
        (403, b"", "auth"),
        (404, b"<html>", "bad_request"),
        (408, b"", "timeout"),
        (409, b"", "server_error"),
        (413, b"", "body"),
        (425, b"", "server_error"),
        (429, b"slow", "rate_limit"),
        (429, b'{"error": {"type": "insufficient_quota"}}', "quota"),
        (500, b"", "server_error"),
        (501, b"", "bad_request"),
        (503, b'{"error": {"type": "invalid_request_error"}}', "server_error"),
        (505, b"", "bad_request"),
        (529, b"", "server_error"),
    ],
)
def test_statuses(status: int, body: bytes, kind: str) -> None:
    """Status and body to kind."""
    failure = failure_of_status(status, body, None)
    assert (failure.kind, failure.fatal) == (kind, kind in FATAL)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (ErrorFrame(429, "", ""), "rate_limit"),
        (ErrorFrame(429, "insufficient_quota", ""), "quota"),
        (ErrorFrame(None, "rate_limit_error", ""), "rate_limit"),
        (ErrorFrame(None, "invalid_request_error", ""), "bad_request"),
        (ErrorFrame(None, "abort", ""), "aborted"),
        (ErrorFrame(7, "", "overloaded"), "server_error"),
        (ErrorFrame(500, "", "Prompt is too long"), "context"),
    ],
)
def test_frames(frame: ErrorFrame, kind: str) -> None:
    """An error inside a stream is judged by its own code."""
    failure = failure_of_end(InBandError(frame))
    assert failure is not None
    assert failure.kind == kind


def test_a_long_retry_after_ends_the_call() -> None:
    """Beyond the cap only; a fatal failure stays what it is."""
    assert capped(failure_of_status(429, b"", 5.0), 10.0).kind == "rate_limit"
    assert capped(failure_of_status(503, b"", 11.0), 10.0).kind == "retry_after_too_long"
    assert capped(failure_of_status(401, b"", 11.0), 10.0).kind == "auth"


def test_P2_6_verdicts() -> None:
    """P2-6: a 429 and a 4xx say nothing about the endpoint's health."""
    assert verdict_of(None) == "success"
    for status in (400, 401, 422, 429):
        assert verdict_of(failure_of_status(status, b"", None)) == "neutral"
    for status in (408, 500, 503):
        assert verdict_of(failure_of_status(status, b"", None)) == "failure"


@pytest.mark.parametrize(
    ("status", "body", "of_endpoint"),
    [
        (400, b"", False),
        (400, b'{"error": {"message": "Model Not Exist"}}', True),
        (400, b'{"error": {"code": "model_not_found"}}', True),
        (400, b'{"error": {"message": "the model cannot see: image not supported"}}', False),
        (400, b'{"error": {"code": "context_length_exceeded"}}', False),
        (301, b"", True),
        (401, b"", True),
        (402, b"", True),
        (403, b"", True),
        (404, b"<html>", True),
        (405, b"", True),
        (413, b"", False),
        (422, b"", False),
        (429, b"", False),
        (429, b'{"error": {"type": "insufficient_quota"}}', True),
        (500, b"", False),
        (501, b"", True),
        (503, b"", False),
    ],
)
def test_what_lies_with_the_endpoint(status: int, body: bytes, of_endpoint: bool) -> None:
    """Such a request may be answered elsewhere; any other fatal one would fail there too."""
    failure = failure_of_status(status, body, None)
    assert failure.of_endpoint is of_endpoint
    assert failure.fatal or not of_endpoint


def test_a_frame_and_an_address_may_lie_with_the_endpoint() -> None:
    """As a status would; a Retry-After beyond the cap does, whatever it came with."""
    gone = failure_of_end(InBandError(ErrorFrame(404, "", "")))
    assert gone is not None
    assert gone.of_endpoint
    assert failure_of_exception(httpx.UnsupportedProtocol(""), False).of_endpoint
    assert capped(failure_of_status(503, b"", 11.0), 10.0).of_endpoint
