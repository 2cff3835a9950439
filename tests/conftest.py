"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis  # noqa: F401  # else its plugin loads it at the end, with warnings as errors
import pytest
import structlog


@pytest.fixture
def anyio_backend() -> str:
    """Rooms run on asyncio, as in production; the runtime's own tests also use trio."""
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def uncached_loggers() -> Iterator[None]:
    """No logger keeps the configuration under which it was first used.

    A command that runs in this process sets up logging as it does in its own; a logger that
    kept that would be deaf to ``capture_logs`` in every later test.
    """
    with pytest.MonkeyPatch.context() as patch:
        configure = structlog.configure

        def uncached(**options: object) -> None:
            configure(**{**options, "cache_logger_on_first_use": False})  # type: ignore[arg-type]  # passed on

        patch.setattr(structlog, "configure", uncached)
        yield


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """What a test configured ends with it."""
    yield
    structlog.reset_defaults()
