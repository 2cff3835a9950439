"""When something is said: every ten seconds while it moves, every thirty while it does not."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors.monitor.beside import beside
from actors.monitor.board import Board
from actors.monitor.ticker import tick
from protocol.llm import EndpointsSeen

pytestmark = pytest.mark.anyio

SEEN = EndpointsSeen(endpoints=(), waiting=0, calls=3, oldest_s=9.0, paused_by="", usd=None)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Seconds are exact and cost nothing."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def _look() -> EndpointsSeen | None:
    return SEEN


async def test_a_line_every_ten_seconds_while_something_finishes() -> None:
    """And heartbeats instead once nothing does; then lines again."""
    board = Board(epochs=1)
    begun = anyio.current_time()

    async def work(seconds: int) -> None:
        for _ in range(seconds):
            await anyio.sleep(1)
            board.take({"event": "llm.call", "outcome": "ok"}, anyio.current_time())

    async def tell() -> None:
        await tick(board, _look, "go on")

    board.take({"event": "pass.start", "run_key": "e0/val/seed", "planned": 9}, begun)
    with capture_logs() as logs:
        async with beside(tell):
            await work(35)
            assert [event["event"] for event in logs] == ["progress"] * 3
            logs.clear()
            await anyio.sleep(3600)
            told = [event["event"] for event in logs]
            assert told[0] == "progress", "the last calls of the work"
            assert set(told[1:]) == {"heartbeat"}
            assert 115 <= len(told) <= 121
            assert all(event["line"] for event in logs)
            logs.clear()
            await work(25)
            assert "progress" in [event["event"] for event in logs]


async def test_before_anything_is_at_work_only_the_heart_beats() -> None:
    """A run that hangs before its first pass is not silent either."""

    async def tell() -> None:
        await tick(Board(), _look, "go on")

    with capture_logs() as logs:
        async with beside(tell):
            await anyio.sleep(100)
    assert [event["event"] for event in logs] == ["heartbeat"] * 3
    assert logs[0]["calls"] == 3


async def test_what_the_block_raises_passes_unchanged() -> None:
    """Not in a group: the caller knows failures of the system by their type."""

    async def for_ever() -> None:
        await anyio.sleep_forever()

    with pytest.raises(LookupError, match="gone"):
        async with beside(for_ever):
            raise LookupError("gone")
