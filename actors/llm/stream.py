"""From the body of a response to one of four ends: whole, cut, refused in-band, or nothing.

    Complete      a finish_reason and an end marker: the only end that is an answer (row P1-2)
    Truncated     it stopped before that
    InBandError   the server reported an error inside the stream
    Empty         nothing was said

The end marker is ``[DONE]`` or the orderly end of the body; a cut connection is none. A server
may ignore ``stream`` and send a whole completion: the first byte of the body tells them apart,
since content types lie. Never waits and never retries.
"""

from __future__ import annotations

import msgspec

from actors.llm.chunks import Done, ErrorFrame, Noise, Piece, Unreadable, read_event
from actors.llm.sse import MAX_EVENT_BYTES, EventTooLarge, SseDecoder, SseEvent
from actors.llm.tool_calls import ToolCalls
from protocol.llm import Finish, ToolCall, Usage

__all__ = ["Complete", "Empty", "End", "InBandError", "StreamReader", "Truncated"]


class Complete(msgspec.Struct, frozen=True):
    """A whole answer."""

    text: str
    reasoning: str
    finish: Finish
    usage: Usage
    tool_calls: tuple[ToolCall, ...] = ()


class Truncated(msgspec.Struct, frozen=True):
    """The stream ended before the answer did; what had come is not kept."""

    why: str


class InBandError(msgspec.Struct, frozen=True):
    """An error frame under HTTP status 200."""

    frame: ErrorFrame


class Empty(msgspec.Struct, frozen=True):
    """The stream ended and held neither text nor a tool call."""

    why: str


End = Complete | Truncated | InBandError | Empty

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class StreamReader:
    """Collects one response body. ``end`` is set once no further byte can change the result."""

    def __init__(self) -> None:
        self.end: End | None = None
        self.usage = Usage()
        self._decoder = SseDecoder()
        self._whole: bytearray | None = None
        self._started = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tools = ToolCalls()
        self._finish: str | None = None

    def feed(self, chunk: bytes) -> bool:
        """Read a chunk; true if it held data, which alone re-arms the idle clock (A2.4).

        Raises EventTooLarge.
        """
        if not self._started:
            chunk = chunk.lstrip(b" \t\r\n")
            if not chunk:
                return False
            self._started = True
            if chunk[:1] in (b"{", b"<"):  # no field of an event stream begins like this
                self._whole = bytearray()
        if self._whole is not None:
            self._whole += chunk
            if len(self._whole) > MAX_EVENT_BYTES:
                raise EventTooLarge(f"the body is larger than {MAX_EVENT_BYTES} bytes")
            return True
        heard = False
        for event in self._decoder.feed(chunk):
            heard = self._take(event) or heard
            if self.end is not None:
                break
        return heard

    def close(self, cut: str | None = None) -> End:
        """Judge what came. cut: how the connection broke; None: the body ended in order."""
        if self.end is None and cut is None:
            self._flush()
        if self.end is None:
            self.end = self._conclude(cut)
        return self.end

    def _flush(self) -> None:
        if self._whole is not None:
            last: SseEvent | None = SseEvent(bytes(self._whole))
            if self._whole[:1] == b"<":
                page = bytes(self._whole[:200]).decode("utf-8", "replace")
                # a proxy's page: the server behind it is in trouble, whatever the status says
                self.end = InBandError(ErrorFrame(None, "bad_body", f"not a chat answer: {page}"))
                return
        else:
            last = self._decoder.close()
        if last is not None:
            self._take(last)

    def _take(self, event: SseEvent) -> bool:
        match read_event(event):
            case Piece() as piece:  # first, since nearly every event is one
                self._add(piece)
            case Done():
                self.end = self._conclude(None)
            case ErrorFrame() as frame:
                self.usage = frame.usage or self.usage
                self.end = InBandError(frame)
            case Unreadable(why):
                self.end = Truncated(why)
            case Noise():
                return False
        return True

    def _add(self, piece: Piece) -> None:
        if piece.text:
            self._text.append(piece.text)
        if piece.reasoning:
            self._reasoning.append(piece.reasoning)
        for tool in piece.tools:
            self._tools.add(tool)
        self._finish = piece.finish or self._finish
        self.usage = piece.usage or self.usage

    def _conclude(self, cut: str | None) -> End:
        text = _encodable("".join(self._text))
        reasoning = _encodable("".join(self._reasoning))
        if cut is not None:
            return Truncated(cut)
        if self._finish is None:
            if not (text or reasoning or self._tools):
                return Empty("the stream held no answer")
            return Truncated("the stream ended without a finish_reason")
        finish = _FINISHES.get(self._finish, "unknown")
        calls: tuple[ToolCall, ...] = ()
        if self._tools and finish != "length":
            # vLLM says tool_calls for a call that max_tokens cut: only the JSON tells
            whole = self._tools.whole()
            if whole is None:
                return Truncated("a tool call's arguments are not JSON")
            calls, finish = whole, "tool_calls"
        if not (text or self._tools) and finish in ("stop", "tool_calls", "unknown"):
            return Empty(f"finish_reason {self._finish} without an answer")
        return Complete(text, reasoning, finish, self.usage, calls)


def _encodable(text: str) -> str:
    """The text with escaped surrogate pairs joined and lone halves replaced (A2.12)."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
