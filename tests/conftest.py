"""Shared fixtures."""

from __future__ import annotations

import hypothesis  # noqa: F401  # else its plugin loads it at the end, with warnings as errors
import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Rooms run on asyncio, as in production; the runtime's own tests also use trio."""
    return "asyncio"
