"""What is done already: a file of JSON lines beside the tree, so that nothing is made twice.

A line is appended when a thing is finished: the timeline of a video, or a card. Each is kept
under a hash of everything that it follows from (the video file and the sizes; the model and the
whole question with its picture), so that a changed option makes anew what it concerns and no
more. The last line of a process that died may be half a line: it is left out.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from types import TracebackType

import msgspec

from actors.video.builder.cards import Card
from actors.video.builder.segments import Timeline

__all__ = ["Work", "WorkBusy", "work_key"]


class WorkBusy(RuntimeError):
    """Another process works in the same folder."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    card: Card | None = None
    timeline: Timeline | None = None


def work_key(*parts: object) -> str:
    """A hash of anything that msgspec can encode."""
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()


class Work:
    """The file, read at once and then only appended to. Use as a context manager.

    Raises OSError if it cannot be opened, WorkBusy if another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cards: dict[str, Card] = {}
        self._timeline: tuple[str, Timeline] | None = None
        self._fd = -1

    def __enter__(self) -> Work:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise WorkBusy(f"{self.path}: another process makes this tree") from error
        data = self.path.read_bytes()
        for line in data.split(b"\n"):
            self._read(line)
        if data and not data.endswith(b"\n"):
            os.write(self._fd, b"\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)  # and with it the lock

    def _read(self, raw: bytes) -> None:
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except ValueError:  # half a line, or somebody's edit: made anew
            return
        if line.card is not None:
            self._cards[line.key] = line.card
        if line.timeline is not None:
            self._timeline = (line.key, line.timeline)

    def card(self, key: str) -> Card | None:
        """A finished card; None: there is none."""
        return self._cards.get(key)

    def keep_card(self, key: str, card: Card) -> None:
        """Remember a card. Raises OSError."""
        self._cards[key] = card
        self._append(_Line(key, card=card))

    def timeline(self, key: str) -> Timeline | None:
        """The timeline of this video and these sizes, if it was the last one that was made."""
        if self._timeline is None or self._timeline[0] != key:
            return None
        return self._timeline[1]

    def keep_timeline(self, key: str, timeline: Timeline) -> None:
        """Remember how the time was divided. Raises OSError."""
        self._timeline = (key, timeline)
        self._append(_Line(key, timeline=timeline))

    def _append(self, line: _Line) -> None:
        left = memoryview(msgspec.json.encode(line) + b"\n")
        while left:
            left = left[os.write(self._fd, left) :]
