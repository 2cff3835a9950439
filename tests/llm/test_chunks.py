"""One event, read leniently; an error is never a piece."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.chunks import Done, ErrorFrame, Noise, Piece, ToolDelta, Unreadable, read_event
from actors.llm.sse import SseEvent
from protocol.llm import Usage

PIECES: list[tuple[str, bytes, Piece]] = [
    ("choices null", b'{"choices": null}', Piece()),
    ("delta null", b'{"choices": [{"delta": null, "finish_reason": ""}]}', Piece()),
    ("content null", b'{"choices": [{"delta": {"content": null}}]}', Piece()),
    (
        "content parts",
        b'{"choices": [{"delta": {"content": [{"type": "text", "text": "a"}]}}]}',
        Piece(text="a"),
    ),
    ("index as text", b'{"choices": [{"index": "1", "delta": {"content": "b"}}]}', Piece()),
    ("lone surrogate", rb'{"choices": [{"delta": {"content": "\ud83d"}}]}', Piece(text="\ud83d")),
    ("bad utf-8", b'{"choices": [{"delta": {"content": "\xff"}}]}', Piece(text="\ufffd")),
    (
        "NaN beside",
        b'{"p": NaN, "choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 1.0}}',
        Piece(text="a", usage=Usage(prompt_tokens=1)),
    ),
    ("error null", b'{"error": null, "choices": [{"delta": {"content": "a"}}]}', Piece(text="a")),
    (
        "whole message",
        b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}',
        Piece(text="a", finish="stop"),
    ),
    (
        "tool without index",
        b'{"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}}]}',
        Piece(tools=(ToolDelta(None, "", "f", "{}"),)),
    ),
]
ERRORS: list[tuple[str, SseEvent, ErrorFrame]] = [
    ("string", SseEvent(b'{"error": "boom"}'), ErrorFrame(None, "", "boom")),
    (
        "object",
        SseEvent(b'{"error": {"message": "m", "type": "T", "code": "500"}}'),
        ErrorFrame(500, "t", "m"),
    ),
    ("list", SseEvent(b'{"error": ["m"]}'), ErrorFrame(None, "", "['m']")),
    ("flat", SseEvent(b'{"object": "error", "message": "m"}'), ErrorFrame(None, "", "m")),
    ("named", SseEvent(b'{"code": 400, "message": "m"}', b"error"), ErrorFrame(400, "", "m")),
    ("named text", SseEvent(b"boom", b"error"), ErrorFrame(None, "", "boom")),
    (
        "finish",
        SseEvent(b'{"choices": [{"finish_reason": "abort"}]}'),
        ErrorFrame(None, "abort", "finish_reason abort"),
    ),
]


@pytest.mark.parametrize(("data", "piece"), [p[1:] for p in PIECES], ids=[p[0] for p in PIECES])
def test_pieces(data: bytes, piece: Piece) -> None:
    """Odd shapes that mean something harmless."""
    assert read_event(SseEvent(data)) == piece


@pytest.mark.parametrize(("event", "frame"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS])
def test_error_frames(event: SseEvent, frame: ErrorFrame) -> None:
    """All the places where servers put an error under status 200."""
    assert read_event(event) == frame


def test_what_is_no_object() -> None:
    """The end marker, a ping, and JSON that was cut."""
    assert read_event(SseEvent(b"[DONE]")) == Done()
    assert read_event(SseEvent(b"ping")) == Noise()
    assert isinstance(read_event(SseEvent(b'{"choices": [')), Unreadable)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "content",
                        "usage",
                        "error",
                        "tool_calls",
                        "function",
                        "index",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_no_shape_crashes(value: object) -> None:
    """Whatever JSON a server sends, reading it gives one of the five results."""
    read_event(SseEvent(json.dumps({"choices": [value], "usage": value}).encode()))
    read_event(SseEvent(json.dumps({"choices": value, "error": value}).encode()))
