"""Bytes to a response: the same whatever the borders of the reads are."""

from __future__ import annotations

from itertools import pairwise

import httpx
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.llm.http1_parse import MAX_HEAD_BYTES, ResponseParser, request_head
from tests.llm.server import chunked

STATUS = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 503 No", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No", b"HTTP/1.1 2x"]
)
INTERIM = st.sampled_from(
    [b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 E\r\nA: b\r\n\r\n"]
)
FIELD = st.sampled_from(
    [b"X: y", b"x:z \t", b"Fold: a\r\n\tb", b"Connection: close", b"A B: c", b"N: \0"]
)
FIELDS = st.lists(FIELD, max_size=3)
BODY = st.one_of(
    st.lists(st.binary(min_size=1, max_size=20), max_size=5).map(
        lambda parts: b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*parts)
    ),
    st.binary(max_size=40).map(lambda body: b"Content-Length: %d\r\n\r\n%s" % (len(body), body)),
    st.binary(max_size=40).map(lambda body: b"\r\n" + body),
    st.just(b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n0\r\nTrailer: t\r\n\r\n"),
    st.just(b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nxx\r\n"),
)
AFTER = st.sampled_from(
    [
        b"",
        b"",
        b"x",
        b"HTTP/1.1 200 OK\r\n\r\nxyz",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz",
    ]
)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A response, whole or not, fit or not."""
    lines = [draw(STATUS), *draw(FIELDS)]
    whole = draw(INTERIM) + b"\r\n".join(lines) + b"\r\n" + draw(BODY) + draw(AFTER)
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole


class Read(msgspec.Struct, frozen=True):
    """What came of it. fit: the connection could serve another request."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    complete: bool
    failed: bool
    fit: bool


def read(*reads: bytes) -> Read:
    parser = ResponseParser()
    body = b""
    left = list(reads)
    while left and not parser.complete and parser.error is None:
        if data := left.pop(0):
            body += parser.feed(data)
    fit = parser.complete and parser.reusable and not any(left)
    if not parser.complete:
        parser.eof()
    return Read(
        status=parser.status,
        headers=tuple(parser.headers) if parser.head_done else (),
        body=body,
        complete=parser.complete,
        failed=parser.error is not None,
        fit=fit,
    )


@given(data=responses() | st.binary(max_size=60), cuts=st.lists(st.integers(0, 400), max_size=12))
@example(data=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\n", cuts=[])
@example(data=b"HTTP/1.1 200 OK\r\nN: \0\r\nContent-Length: 1\r\n\r\na", cuts=[])
def test_any_split_reads_the_same(data: bytes, cuts: list[int]) -> None:
    """Neither the head, nor a chunk, nor the end depends on how the bytes arrive."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [data[a:b] for a, b in pairwise(places)]
    whole = read(data)
    for other in (read(*parts), read(*[data[i : i + 1] for i in range(len(data))])):
        if whole.fit and not other.fit:
            # blank lines after the end are skipped when they come with it
            assert data.endswith(b"\n")
            other = msgspec.structs.replace(other, fit=True)
        assert other == whole


@given(parts=st.lists(st.binary(min_size=1, max_size=300), max_size=8))
def test_chunks_are_put_together(parts: list[bytes]) -> None:
    """The body is what was sent, and one read gives one piece."""
    parser = ResponseParser()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert parser.feed(head + chunked(*parts)) == b"".join(parts)
    assert parser.complete
    assert parser.reusable


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 1000),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40),
    ],
    ids=["header", "headers", "interim"],
)
def test_the_head_has_a_ceiling(first: bytes, more: bytes) -> None:
    """Of all that comes before the body, interim responses included."""
    parser = ResponseParser()
    parser.feed(first)
    fed = len(first)
    while parser.error is None:
        assert fed <= MAX_HEAD_BYTES
        parser.feed(more)
        fed += len(more)
    assert fed > MAX_HEAD_BYTES
    assert not parser.head_done


def test_the_head_may_come_with_a_large_body() -> None:
    """The ceiling is not of the body."""
    parser = ResponseParser()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"
    assert len(parser.feed(head + b"x" * 200_000)) == 200_000
    assert parser.error is None


@pytest.mark.parametrize("coding", [b"chunked\t", b"gzip", b"chunked, chunked"])
def test_a_coding_that_would_be_taken_for_none(coding: bytes) -> None:
    """Chunk sizes never pass for text."""
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + b"\r\n\r\n" + chunked(b"a"))
    assert parser.error == "only Transfer-Encoding: chunked is supported"
    assert not parser.head_done


def test_a_body_of_unknown_length_is_not_sent() -> None:
    """It would need chunks, which a chat client has no use for."""
    request = httpx.Request("POST", "http://x/", headers={"Transfer-Encoding": "chunked"})
    with pytest.raises(httpx.LocalProtocolError):
        request_head(request)


def test_a_key_is_not_shown() -> None:
    """What is wrong with a header is said without its value."""
    request = httpx.Request("POST", "http://x/", headers={b"Authorization": b"Bearer se\rsame"})
    with pytest.raises(httpx.LocalProtocolError) as caught:
        request_head(request)
    assert "Authorization" in str(caught.value)
    assert "same" not in str(caught.value)
