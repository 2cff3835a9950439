"""Vectors as they cross a channel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.embedder.vectors import packed

_numbers = st.floats(-1e30, 1e30, allow_nan=False)


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda size: st.lists(
            st.lists(_numbers, min_size=size, max_size=size), min_size=1, max_size=4
        )
    )
)
def test_rows_have_length_one_or_are_zero(rows: list[list[float]]) -> None:
    for row, vector in zip(rows, packed(rows), strict=True):
        length = np.linalg.norm(np.frombuffer(vector, dtype="<f4"))
        assert length == pytest.approx(1.0, abs=1e-3) or length < 1e-3 >= np.linalg.norm(row)
        assert len(vector) == 4 * len(row)


@pytest.mark.parametrize(
    "rows", [[[1.0], [1.0, 2.0]], [[]], [[float("nan")]], [[float("inf")]], []], ids=str
)
def test_what_are_no_vectors_is_refused(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"vector|inhomogeneous"):
        packed(rows)
