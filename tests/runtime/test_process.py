"""Real signals to a real process, and that nothing keeps it alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@contextmanager
def drill(mode: str, backend: str = "asyncio") -> Iterator[subprocess.Popen[str]]:
    """The process, as far as ``ready``; killed if the test leaves it behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.drill", mode, backend],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line != "ready\n":
            process.kill()
            pytest.fail(f"{line!r}\n{process.communicate()[1]}")
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], within_s: float) -> tuple[int, list[str], str]:
    """Exit code, the lines it said, its log."""
    out, err = process.communicate(timeout=within_s)
    return process.returncode, out.splitlines(), err


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_p13_the_first_signal_drains(signum: signal.Signals, backend: str) -> None:
    """The work in hand is done and answered, then everything is released: exit 0."""
    with drill("drain", backend) as process:
        process.send_signal(signum)
        code, said, log = ended(process, 10)
    assert (code, said) == (0, ["done", "released"]), log
    assert f"reason={signum.name}" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_p13_the_second_signal_stops_at_once(backend: str) -> None:
    """The work is cut short, its ask answered, everything released: no drain of 20 s."""
    with drill("hang", backend) as process:
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "runtime.draining" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, said, log = ended(process, 10)
        took_s = time.monotonic() - begun
    assert (code, said) == (3, ["released"]), log
    assert "Traceback" not in log
    assert took_s < 5


def test_p17_sigusr1_shows_every_task() -> None:
    """Without disturbing the work."""
    with drill("drain") as process:
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        log = ""
        while "in do" not in log:
            log += process.stderr.readline()
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        code, said, _ = ended(process, 10)
    assert "task a#1:Do" in log
    assert (code, said) == (0, ["done", "released"])


def test_p18_nothing_keeps_the_process_alive_after_a_crash() -> None:
    """Two injected crashes, a database thread that is not a daemon: exit within 2 s."""
    with drill("crash") as process:
        begun = time.monotonic()
        code, said, log = ended(process, 10)
        took_s = time.monotonic() - begun
    assert code == 4, log
    assert said[:2] == ["ActorCrashed", "released"] or said[:2] == ["released", "ActorCrashed"]
    assert said[-1].startswith("gave up: a: more than 1 crashes within 60.0 s")
    assert said.count("released") == 2
    assert took_s < 2


def test_p18_an_exit_from_within_a_handler_releases_what_is_held() -> None:
    """The event loop dies and cancels every task by itself; ``on_stop`` still runs."""
    with drill("exit") as process:
        code, said, log = ended(process, 10)  # long before drain_s is over
    assert (code, said) == (5, ["released"]), log
    assert "actor.crashed" not in log
