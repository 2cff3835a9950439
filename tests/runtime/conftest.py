"""Both backends; trio with a clock that jumps to the next deadline when nothing can run."""

from __future__ import annotations

import pytest
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
