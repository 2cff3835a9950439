"""Bytes to events: the same whatever the chunk borders are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm import sse
from actors.llm.sse import EventTooLarge, SseDecoder, SseEvent

LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data: \xe2\x80\xa8x\xc2\x85\x0b\x0c\x1c",
        b"data: [DONE]",
        b": ping",
        b"event: error",
        b"error: boom",
        b"id: 7",
        b"retry: 1",
        b"",
        b"",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
BODIES = st.lists(st.tuples(LINES, ENDS), max_size=20).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


def read(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    last = decoder.close()
    return events if last is None else [*events, last]


@given(body=BODIES | st.binary(max_size=60), cuts=st.lists(st.integers(0, 300), max_size=12))
def test_any_split_gives_the_same_events(body: bytes, cuts: list[int]) -> None:
    """Chunk borders carry no meaning, not even inside a CR LF."""
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    parts = [body[a:b] for a, b in pairwise(places)]
    whole = read(body)
    assert read(*parts) == whole
    assert read(*[body[i : i + 1] for i in range(len(body))]) == whole


@given(lines=st.lists(st.tuples(LINES, ENDS), max_size=20), borders=st.sets(st.integers(0, 20)))
def test_borders_between_lines_carry_no_meaning_either(
    lines: list[tuple[bytes, bytes]], borders: set[int]
) -> None:
    """Where most of them are; an event may be open across one."""
    chunks = [b""]
    for number, (line, end) in enumerate(lines):
        if number in borders:
            chunks.append(b"")
        chunks[-1] += line + end
    assert read(*chunks) == read(b"".join(chunks))


def test_one_chunk_is_one_event_unless_one_is_open() -> None:
    """The usual chunk, after a chunk that was none, and after the place of a byte order mark."""
    assert read(b"data: 1\n\n", b"data: 2\n\n") == [SseEvent(b"1"), SseEvent(b"2")]
    assert read(b"event: error\n", b"data: 1\n\n") == [SseEvent(b"1", b"error")]
    assert read(b"data: 1\n", b"data: 2\n\n") == [SseEvent(b"1\n2")]
    assert read(b"data: \n\n", b"data:  1\n\n") == [SseEvent(b" 1")]
    assert read(b"data: 1\n\n", b"\xef\xbb\xbfdata: 2\n\n") == [SseEvent(b"1")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends(end: bytes) -> None:
    """Three line ends, and several data lines make one event."""
    lines = (b"event: x", b"data: 1", b"data: 2", b"", b"data: 3", b"", b"")
    body = end.join(lines)
    assert read(body) == [SseEvent(b"1\n2", b"x"), SseEvent(b"3")]


def test_done_needs_no_blank_line() -> None:
    """The end marker is seen while the connection stays open."""
    assert SseDecoder().feed(b"data: [DONE]\n") == [SseEvent(b"[DONE]")]


def test_events_without_data_are_nothing() -> None:
    """``retry:``, ``id:``, comments and a bare ``data:``."""
    assert read(b"retry: 3000\n\nid: 7\n\n: ping\n\ndata:\n\nevent: x\n\n") == []


def test_a_byte_order_mark_is_no_field() -> None:
    """Only at the very beginning."""
    assert read(b"\xef\xbb\xbfdata: 1\n\n") == [SseEvent(b"1")]


def test_one_event_has_a_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one line, and as many."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(EventTooLarge):
        SseDecoder().feed(b"data: " + b"x" * 200)
    with pytest.raises(EventTooLarge):
        SseDecoder().feed(b"data: 12345678\n" * 20)
