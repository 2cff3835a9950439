"""Server-sent events: bytes in, events out, whatever the chunk borders are.

Never decodes text, never looks into the data, never waits. Lines end at CR LF, LF or CR
and at nothing else: U+2028 or U+0085 inside an answer is text (clients.md A2.1, A2.2).
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["DONE", "MAX_EVENT_BYTES", "EventTooLarge", "SseDecoder", "SseEvent"]

DONE = b"[DONE]"
MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Ceiling of one event; lower limits broke real servers, none at all invites a full memory."""

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """A single event grew beyond ``MAX_EVENT_BYTES``."""


class SseEvent(msgspec.Struct, frozen=True):
    """One event that carries data; ``name`` is its ``event`` field, empty when it had none."""

    data: bytes
    name: bytes = b""


class SseDecoder:
    """An incremental decoder; the same bytes in any split give the same events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0
        self._skip_lf = False
        self._at_start = True
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes.

        Raises EventTooLarge.
        """
        if not (self._buffer or self._skip_lf or b"\r" in chunk):
            if chunk.startswith(b"data: ") and not (self._data or self._name):
                end = chunk.find(b"\n")
                if 6 < end == len(chunk) - 2 and chunk.endswith(b"\n"):
                    self._at_start = False
                    return [SseEvent(chunk[6:end])]  # nearly every chunk: one event in one line
            return self._feed_lines(chunk)
        self._buffer += chunk
        events: list[SseEvent] = []
        start = 0
        while (match := _LINE_END.search(self._buffer, max(start, self._scanned))) is not None:
            end = match.start()
            if self._skip_lf and end == start and self._buffer[end] == 0x0A:
                # the second half of a CR LF, whose CR already ended the line
                self._skip_lf = False
            else:
                self._skip_lf = self._buffer[end] == 0x0D
                event = self._line(bytes(self._buffer[start:end]))
                if event is not None:
                    events.append(event)
            start = end + 1
        del self._buffer[:start]
        self._scanned = len(self._buffer)
        if self._scanned:
            self._skip_lf = False
        self._check_size()
        return events

    def _feed_lines(self, chunk: bytes) -> list[SseEvent]:
        """What ``feed`` does, for a chunk that begins with a line and has no CR."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events = [event for line in lines if (event := self._line(line)) is not None]
        if rest:
            self._buffer += rest
            self._scanned = len(rest)
        self._check_size()
        return events

    def _check_size(self) -> None:
        if self._scanned + self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event is larger than {MAX_EVENT_BYTES} bytes")

    def close(self) -> SseEvent | None:
        """The event that the end of the body cut short, if any: the caller judges it."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._scanned = 0
        event = self._line(rest) if rest else None
        return event if event is not None else self._dispatch()

    def _line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if value == DONE and not self._data:
                # the last event may lack its blank line, on a connection that stays open
                self._data.append(value)
                return self._dispatch()
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value
        elif field == b"error":  # llama.cpp until PR#16109 put its errors here
            self._name = b"error"
            self._data.append(value)
            self._size += len(value)
        return None

    def _dispatch(self) -> SseEvent | None:
        parts, name = self._data, self._name
        data = parts[0] if len(parts) == 1 else b"\n".join(parts)
        parts.clear()
        self._size = 0
        self._name = b""
        # no data (id, retry or a bare "data:"): a no-op by the standard
        return SseEvent(data, name) if data else None
