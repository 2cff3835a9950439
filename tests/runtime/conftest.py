"""Both backends; trio with a clock that jumps to the next deadline when nothing can run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from trio.testing import MockClock

from tests.runtime.support import Journal


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str | tuple[str, dict[str, object]]:
    """``asyncio`` or ``trio``; ``@on_trio`` narrows a test whose subject is time."""
    if request.param == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio"


@pytest.fixture
def journal() -> Journal:
    """What the actors of a test did, in order."""
    return Journal()


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Short lines for a failing test's report: the default prints pictures of tracebacks."""
    before = structlog.get_config()
    renderer = structlog.dev.ConsoleRenderer(
        colors=False, exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, renderer])
    yield
    structlog.configure(**before)
