"""Where the picture changes: the difference of colour histograms of neighbouring samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["Cut", "Histogram", "Pixels", "cuts_of", "histogram"]

Pixels: TypeAlias = NDArray[np.uint8]
Histogram: TypeAlias = NDArray[np.float64]
_BINS = 8
_LEAST = 0.2
"""Share of the pixels whose colour must change; a moving camera stays below, a cut is above."""


class Cut(msgspec.Struct, frozen=True):
    """A change of the picture. strength: from 0 to 1, how much of it changed colour."""

    time_s: float
    strength: float


def histogram(pixels: Pixels) -> Histogram:
    """How often each colour occurs in each quarter of a picture (height, width, 3); sums to 1.

    By quarters, because two shots of one room have the same colours at other places.
    """
    coarse = (pixels // (256 // _BINS)).astype(np.intp)
    colours = (coarse[..., 0] * _BINS + coarse[..., 1]) * _BINS + coarse[..., 2]
    rows = np.arange(colours.shape[0])[:, None] * 2 // max(1, colours.shape[0])
    columns = np.arange(colours.shape[1])[None, :] * 2 // max(1, colours.shape[1])
    placed = (rows * 2 + columns) * _BINS**3 + colours
    counts = np.bincount(placed.ravel(), minlength=4 * _BINS**3).astype(np.float64)
    return np.divide(counts, max(1.0, float(counts.sum())))


def cuts_of(samples: Iterable[tuple[float, Histogram]]) -> Iterator[Cut]:
    """The cuts in a series of (time in seconds, histogram), each at the sample that it begins."""
    before: Histogram | None = None
    for time_s, now in samples:
        if before is not None:
            strength = float(np.abs(now - before).sum()) / 2
            if strength >= _LEAST:
                yield Cut(round(time_s, 3), round(strength, 4))
        before = now
