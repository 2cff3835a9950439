"""Vectors as they cross a channel: unit length, float32, little-endian. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["packed"]


def packed(rows: Sequence[ArrayLike]) -> tuple[bytes, ...]:
    """Each row scaled to length 1, as bytes.

    Raises ValueError for rows of different lengths, without numbers, or not finite. A row of
    zeros (a text without a known word) stays what it is: as near to everything as to nothing.
    """
    matrix = np.asarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"vectors of shape {matrix.shape}, not rows of numbers")
    if not np.isfinite(matrix).all():
        raise ValueError("a vector holds a number that is not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return tuple(row.tobytes() for row in unit.astype("<f4"))
