"""How a stream ends: only one of the ends is an answer (row P1-2)."""

from __future__ import annotations

import json

import pytest

from actors.llm.chunks import ErrorFrame
from actors.llm.stream import Complete, Empty, End, InBandError, StreamReader, Truncated
from protocol.llm import Usage
from tests.llm.server import sse

DONE = b"data: [DONE]\n\n"


def ended(*parts: bytes, cut: str | None = None) -> End:
    reader = StreamReader()
    for part in parts:
        if reader.end is None:
            reader.feed(part)
    return reader.close(cut)


@pytest.mark.parametrize(
    ("parts", "cut"),
    [
        ((sse("Hel"),), None),
        ((sse("Hel"), DONE), None),
        ((sse("Hel"),), "ReadError"),
        ((sse("Hel"), sse(None, "stop")), "ReadError"),
        ((sse("Hel"), b'data: {"choi'), None),
        ((sse("Hel"), b'data: {"choi\n\n', DONE), None),
    ],
    ids=["no end", "marker only", "cut", "finish, then cut", "half an event", "broken event"],
)
def test_P1_2_incomplete_streams_are_no_answer(parts: tuple[bytes, ...], cut: str | None) -> None:
    """P1-2: finish_reason and end marker, both; anything less is Truncated."""
    assert isinstance(ended(*parts, cut=cut), Truncated)


def test_P1_2_finish_and_marker_are_an_answer() -> None:
    """P1-2: ``[DONE]`` or the orderly end of the body is the marker."""
    whole = Complete("Hello", "", "stop", Usage())
    parts = (sse("Hel"), sse("lo"), sse(None, "stop"))
    assert ended(*parts, DONE) == whole
    assert ended(*parts) == whole


def test_nothing_after_the_marker_counts() -> None:
    """What a server sends after ``[DONE]``, even in the same chunk."""
    end = ended(sse("a", "stop") + DONE + sse("b"))
    assert isinstance(end, Complete)
    assert end.text == "a"


def test_nothing_said_is_empty() -> None:
    """No bytes, blank lines, a finish without text; but a refusal is an answer."""
    assert isinstance(ended(), Empty)
    assert isinstance(ended(b"\n\n\n"), Empty)
    assert isinstance(ended(sse(None, "stop"), DONE), Empty)
    assert isinstance(ended(sse(None, "content_filter"), DONE), Complete)


def test_an_error_ends_the_stream_at_once() -> None:
    """Text that came before it goes nowhere."""
    frame = ErrorFrame(None, "", "boom")
    assert ended(sse("a"), b'data: {"error": "boom"}\n\n', sse("b", "stop")) == InBandError(frame)


def test_only_data_is_progress() -> None:
    """Comments prove the TCP path alone (clients.md A2.4)."""
    reader = StreamReader()
    assert not reader.feed(b"\n\n: ping\n\n")
    assert not reader.feed(b"retry: 3\n\n")
    assert not reader.feed(b"data: ping\n\n")
    assert reader.feed(sse("a"))


def test_a_whole_completion_is_read_too() -> None:
    """A server that ignores ``stream``, after blank lines."""
    body = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    assert ended(b"\n\n", body[:9], body[9:]) == Complete("Hi", "", "stop", Usage())
    assert isinstance(ended(body[:-4]), Truncated)
    assert isinstance(ended(b"<html>Bad gateway"), InBandError)


def _tool(**fields: object) -> bytes:
    return (
        b"data: "
        + json.dumps({"choices": [{"delta": {"tool_calls": [fields]}}]}).encode()
        + b"\n\n"
    )


def test_tool_calls_are_put_together_by_id_or_number() -> None:
    """Two calls both numbered 0, and one call in parts."""
    two = (
        _tool(index=0, id="a", function={"name": "f", "arguments": '{"x"'}),
        _tool(index=0, function={"arguments": ": 1}"}),
        _tool(index=0, id="b", function={"name": "g", "arguments": "{}"}),
    )
    end = ended(*two, sse(None, "stop"), DONE)
    assert isinstance(end, Complete)
    assert end.finish == "tool_calls"
    assert isinstance(ended(two[0], sse(None, "tool_calls"), DONE), Truncated)
