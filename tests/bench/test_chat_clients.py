"""The benchmark itself still runs; what it measures is nobody's test."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.bench import chat_clients
from tests.bench.chat_clients import CLIENTS, Figures, main, measure


@pytest.fixture
def hurried() -> Iterator[str]:
    """The paced server in a hurry; its base URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.paced_server", "--places", "2", "--tick-s", "0.001"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.stdin.close()


@pytest.mark.anyio
@pytest.mark.parametrize("name", CLIENTS)
async def test_every_client_reads_whole_answers(name: str, hurried: str) -> None:
    """Of the clients that are installed; each checks its own answers."""
    needs = CLIENTS[name].needs
    if needs is not None:
        pytest.importorskip(needs)
    figures = await measure(name, hurried, streams=3, rounds=1, tick_s=0.001)
    assert (figures.client, figures.streams) == (name, 3)


def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the line that installs it; the rest is measured all the same."""

    def run(name: str, streams: int, args: object) -> Figures:
        return Figures(client=name, streams=streams, cpu_ms=1.0, wall=1.0, kib=None)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(chat_clients, "_run", run)
    main(["--streams", "2,3", "--clients", "aiohttp,openai,ours"])
    said = capsys.readouterr()
    assert "raw aiohttp: aiohttp is not installed; pip install" in said.err
    assert "requirements/bench.txt" in said.err
    assert said.out.count("ours (Transport.exchange)") == 2
