"""A video that a test makes: shots of one colour each, with a white square that moves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.video.stream import VideoStream

__all__ = ["COLOURS", "SHOT_S", "movie"]

SHOT_S = 7
COLOURS = ((200, 30, 30), (30, 160, 40), (40, 50, 200), (210, 200, 40), (20, 20, 20))
RATE = 10


def movie(
    path: Path, seconds: float, *, codec: str = "mpeg4", shots: Sequence[int] = range(1000)
) -> Path:
    """Write ``seconds`` of video; the n-th shot has colour ``shots[n]``, modulo the colours."""
    with av.open(str(path), "w") as container:
        stream = cast("VideoStream", container.add_stream(codec, rate=RATE))
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        for number in range(round(seconds * RATE)):
            pixels = np.zeros((90, 160, 3), dtype=np.uint8)
            pixels[...] = COLOURS[shots[int(number / RATE / SHOT_S)] % len(COLOURS)]
            left = number * 3 % 140
            pixels[20:40, left : left + 20] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
