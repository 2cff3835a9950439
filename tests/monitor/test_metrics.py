"""The numbers for Prometheus: the format, and that only the loopback hears them."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.monitor.board import Board
from actors.monitor.metrics import metrics_text, serve_metrics
from protocol.llm import EndpointSeen, EndpointsSeen

pytestmark = pytest.mark.anyio

_LINE = re.compile(r'^[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"\})? [-+0-9.e]+$')


def _board() -> Board:
    board = Board(epochs=3)
    board.take({"event": "epoch.start", "epoch": 2}, 0.0)
    board.take({"event": "pass.start", "run_key": "e2/val/fast", "planned": 9}, 0.0)
    told = {"event": "rollout.done", "run_key": "e2/val/fast", "question_id": "q"}
    board.take({**told, "outcome": "right"}, 1.0)
    board.take({"event": "llm.call", "outcome": "ok", "first_token_s": 0.5}, 1.0)
    board.take({"event": "llm.attempt_failed", "kind": "timeout"}, 1.0)
    return board


def test_every_line_is_in_the_format_and_labels_are_escaped() -> None:
    name = 'a"b\\c\nd'
    seen = EndpointsSeen(
        endpoints=(
            EndpointSeen(
                name=name, roles=("search",), in_flight=3, limit=8, ceiling=32, breaker="open",
                opens_in_s=1.0, last_error="x",
            ),
            EndpointSeen(
                name="b", roles=("search",), in_flight=0, limit=8, ceiling=32, breaker="out",
                opens_in_s=60.0, last_error="auth: HTTP 401",
            ),
        ),
        waiting=2, calls=5, oldest_s=7.5, paused_by="me", usd=1.25,
    )  # fmt: skip
    text = metrics_text(_board(), seen, (), 2.0)
    numbers = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(_LINE.match(line) for line in numbers), numbers
    assert 'trm_breaker_state{endpoint="a\\"b\\\\c\\nd"} 2' in numbers
    for line in (
        'trm_breaker_state{endpoint="b"} 3',
        'trm_chats_total{outcome="ok"} 1',
        'trm_tries_failed_total{kind="timeout"} 1',
        'trm_rollouts_total{outcome="right"} 1',
        "trm_epoch 2",
        "trm_phase_done 1",
        "trm_phase_planned 9",
        "trm_paused 1",
        "trm_cost_usd_total 1.25",
    ):
        assert line in numbers
    told = re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.MULTILINE)
    assert len(told) == len(set(told))


async def test_served_on_the_loopback_and_nowhere_else() -> None:
    async def text() -> str:
        return "trm_epoch 1\n"

    def get(url: str) -> str:
        with urllib.request.urlopen(url, timeout=5) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return str(answer.read().decode())

    async with serve_metrics(0, text) as port:
        url = f"http://127.0.0.1:{port}"
        assert await anyio.to_thread.run_sync(get, f"{url}/metrics") == "trm_epoch 1\n"
        with pytest.raises(urllib.error.HTTPError) as refused:
            await anyio.to_thread.run_sync(get, f"{url}/")
        refused.value.close()
        assert port is not None
        with capture_logs() as logs:
            async with serve_metrics(port, text) as second:
                assert second is None
    assert [event["event"] for event in logs] == ["metrics.unavailable"]
