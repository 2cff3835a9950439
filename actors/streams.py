"""The three standard streams, made safe before a command begins.

One that was closed gets a stand-in on the null device, so that no file which is opened later takes
its number. What a stream's encoding has no sign for is shown as ``\\xNN``. A stdout that takes no
more raises ``StdoutLost`` at the first write and swallows what comes after: who catches it may go
on. Never decides how a command ends.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO

__all__ = ["StdoutLost", "json_text", "ready_streams"]

_FDS = (0, 1, 2)


class StdoutLost(Exception):
    """stdout takes no more: its reader has gone, its disk is full, or it was closed.

    No OSError: whoever expects one from a file of his own would tell of the wrong file.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"stdout cannot be written ({error.strerror or error})")
        self.by_reader = error.errno == errno.EPIPE


class _Stdout(io.FileIO):
    """The file behind stdout: tells its own troubles from those of every other file."""

    def __init__(self, fd: int, *, closed: bool) -> None:
        """closed: it was so when the program began; the number leads to the null device now."""
        super().__init__(fd, "w", closefd=False)
        self._was_closed = closed
        self._lost = False

    def write(self, data: object, /) -> int | None:  # type: ignore[override]  # any buffer
        """Write; what comes after the first failure is dropped."""
        if self._lost:
            return memoryview(data).nbytes  # type: ignore[arg-type]  # a buffer
        if self._was_closed:
            self._lost = True
            raise StdoutLost(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        try:
            return super().write(data)  # type: ignore[arg-type]  # a buffer
        except OSError as error:
            self._lost = True
            raise StdoutLost(error) from error


def ready_streams() -> None:
    """Make them safe. Streams that somebody put in the place of the true ones stay as they are."""
    _fill()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
    elif isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr is sys.__stderr__:
        sys.stderr.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = _whole(_Stdout(1, closed=True), None)
    elif isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout is sys.__stdout__:
        sys.stdout.flush()
        sys.stdout = _whole(_Stdout(sys.stdout.fileno(), closed=False), sys.stdout)


def _fill() -> None:
    """Lead every number that is closed to the null device: the lowest free one is taken next."""
    for fd in _FDS:
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != fd:  # a lower one is left closed by nobody: all before it are open
                os.dup2(opened, fd)
                os.close(opened)
            os.set_inheritable(fd, True)


def _whole(raw: _Stdout, like: io.TextIOWrapper | None) -> TextIO:
    """A text stream on it, with the habits of the one that it replaces."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if like is None else like.encoding,
        errors="backslashreplace",
        line_buffering=like is not None and like.line_buffering,
        write_through=like is not None and like.write_through,
    )


# -- text that no encoding takes --------------------------------------------------------


def json_text(value: object) -> str:
    """The value as JSON. A path whose bytes are no text in this locale has them spelt out."""
    import msgspec  # here: every command waits for this module

    try:
        return msgspec.json.encode(value, enc_hook=repr).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=repr)
        return msgspec.json.encode(_spelt(plain)).decode()


def _spelt(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelt(key): _spelt(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt(inner) for inner in value]
    return value
