"""The clocks of one try: never shorter than asked, and longer only where patience is asked for."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.classify import Failure
from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.transport import Transport, _Progress
from tests.llm.server import SSE_HEAD, Connection, chunked, serving, sse
from tests.llm.support import endpoint, settings


@given(gaps=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=60))
def test_the_idle_clock_is_kept(gaps: list[float]) -> None:
    """Whatever the gaps between events: at least ``idle_s``, at most a sixteenth more."""

    async def check() -> None:
        now = 100.0
        silence = anyio.CancelScope()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(anyio, "current_time", lambda: now)
            progress = _Progress(silence, 99.0, float("inf"), 5.0)
            for gap in gaps:
                now += gap
                progress.heard()
                assert 5.0 <= silence.deadline - now <= 5.0 * 17 / 16 + 1e-9
        assert progress.first_token_s == pytest.approx(1.0 + gaps[0])

    anyio.run(check, backend="trio")


@pytest.mark.anyio
async def test_S3_patience_stretches_the_clocks_of_silence() -> None:
    """S3: a second try of a slow server waits longer, but not beyond the attempt's own clock."""

    async def silent(connection: Connection) -> None:
        if await connection.request() is not None and "answers" in modes:
            await connection.send(SSE_HEAD + chunked(sse("x"), last=False))
        await connection.until_gone()

    modes: set[str] = set()
    async with serving(silent) as server:
        target = ResolvedEndpoint(
            name="one", url=f"{server.base_url}/chat/completions", model="m", roles=()
        )

        async def failed(patience: float, **clocks: float) -> str:
            transport = Transport(settings(endpoint(server.base_url), **clocks))
            try:
                exchange = await transport.exchange(target, b"{}", 9.0, patience=patience)
            finally:
                await transport.aclose()
            assert isinstance(exchange.result, Failure)
            return exchange.result.detail

        assert await failed(4.0, first_token_s=0.01) == "first token: nothing within 0.04 s"
        modes.add("answers")
        assert await failed(4.0, idle_s=0.01) == "idle: no data for 0.04 s"
        assert await failed(99.0, idle_s=1.0, attempt_s=0.1) == "attempt: not whole after 0.1 s"
