"""Decoding a video file with PyAV: how long it is, how its colours change, single frames.

PyAV (the extra ``video``, 36 MB with its own FFmpeg) is imported when a file is opened and not
before. Everything here blocks: call it in a worker thread. ``alive`` is called now and then with
the time reached, in seconds; what it raises ends the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from PIL import Image

from actors.video.builder.cuts import Histogram, Pixels, histogram

if TYPE_CHECKING:
    import av
    from av.container import InputContainer
    from av.video.stream import VideoStream

__all__ = ["MediaError", "Probe", "frames_at", "histograms", "probe"]

Alive = Callable[[float], None]
_SAMPLE_S = 0.25
_SMALL = (64, 36)
_SEEK_S = 10.0
"""A jump at least this long is a seek; below it decoding on is as quick as finding a key frame."""
_INSTALL = (
    "bin/trm tree needs PyAV ({error}). Install it: uv pip install --python {python} 'av>=16' "
    "(or {python} -m pip install 'av>=16'; it is the extra named video)"
)


class MediaError(ValueError):
    """A file that cannot be decoded as a video; the message says why."""


class Probe(msgspec.Struct, frozen=True):
    """What a file says about itself."""

    duration_s: float
    width: int
    height: int


def probe(path: Path, alive: Alive) -> Probe:
    """Look at a video. A file that does not say how long it is is decoded to its end.

    Raises MediaError, also if PyAV is not there.
    """
    with _opened(path) as (container, stream):
        duration = 0.0
        if container.duration is not None:
            duration = container.duration / 1_000_000
        elif stream.duration is not None and stream.time_base is not None:
            duration = float(stream.duration * stream.time_base)
        found = Probe(duration, stream.width, stream.height)
    if found.duration_s > 0:
        return found
    last = 0.0
    for time_s, _ in _frames(path, alive):
        last = time_s
    return Probe(last, found.width, found.height)


def histograms(path: Path, alive: Alive) -> Iterator[tuple[float, Histogram]]:
    """A colour histogram for every quarter of a second, with its time. Raises MediaError."""
    following = 0.0
    for time_s, frame in _frames(path, alive, skip="NONREF"):
        if time_s + 1e-6 < following:
            continue
        following = time_s + _SAMPLE_S
        small = frame.reformat(width=_SMALL[0], height=_SMALL[1], format="rgb24")
        yield time_s, histogram(cast("Pixels", small.to_ndarray()))


def frames_at(
    path: Path, times_s: Sequence[float], alive: Alive
) -> Iterator[tuple[int, Image.Image]]:
    """The picture at each time (they ascend), upright, with the time's place in the list.

    Past the last frame it is the last one. Raises MediaError if there is no frame at all.
    """
    with _opened(path) as (container, stream):
        origin = _origin(container)
        reader = _Reader(container, stream, origin, alive)
        for place, time_s in enumerate(times_s):
            yield place, reader.at(time_s)


class _Reader:
    """Walks forward through a video, with seeks where the way is long."""

    def __init__(
        self, container: InputContainer, stream: VideoStream, origin: float, alive: Alive
    ) -> None:
        self._container = container
        self._stream = stream
        self._origin = origin
        self._alive = alive
        self._decoding = _decoded(container, stream, origin)
        self._last: tuple[float, av.VideoFrame] | None = None

    def at(self, time_s: float) -> Image.Image:
        reached = self._last[0] if self._last is not None else 0.0
        if time_s - reached >= _SEEK_S:
            self._seek(time_s)
        best = self._last
        while best is None or best[0] < time_s - 1e-3:
            following = next(self._decoding, None)
            if following is None:
                break
            self._alive(following[0])
            self._last = best = following
        if best is None:
            raise MediaError("no frame can be decoded")
        image: Image.Image = cast("Any", best[1]).to_image()
        turn = best[1].rotation  # degrees counter-clockwise, as a phone notes them
        return image.rotate(turn, expand=True) if turn else image

    def _seek(self, time_s: float) -> None:
        offset = int((time_s + self._origin) * 1_000_000)
        try:
            self._container.seek(offset)
        except OSError:
            return  # not every format can: then the way is walked
        self._decoding = _decoded(self._container, self._stream, self._origin)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    try:
        import av
    except ImportError as error:
        raise MediaError(_INSTALL.format(error=error, python=sys.executable)) from error
    try:
        # The protocol is named: a file called "http:x" is a file.
        with av.open(f"file:{path.resolve()}") as container:
            if not container.streams.video:
                raise MediaError(f"{path}: holds no video")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            yield container, stream
    except (av.FFmpegError, OSError) as error:
        raise MediaError(f"{path}: {error}") from error


def _frames(
    path: Path, alive: Alive, skip: str | None = None
) -> Iterator[tuple[float, av.VideoFrame]]:
    with _opened(path) as (container, stream):
        if skip is not None:
            cast("Any", stream.codec_context).skip_frame = skip
        for time_s, frame in _decoded(container, stream, _origin(container)):
            alive(time_s)
            yield time_s, frame


def _origin(container: InputContainer) -> float:
    """When the file's clock begins: its times are counted from there."""
    start: int | None = container.start_time
    return start / 1_000_000 if start else 0.0


def _decoded(
    container: InputContainer, stream: VideoStream, origin: float
) -> Iterator[tuple[float, av.VideoFrame]]:
    """Frames with their times in seconds from the beginning; damaged packets are passed over."""
    import av

    last = 0.0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.error.InvalidDataError:
            continue
        for frame in frames:
            known: float | None = frame.time
            last = max(0.0, known - origin) if known is not None else last
            yield last, frame
