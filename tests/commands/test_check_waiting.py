"""The check does not wait for ever: what it says of silence, and how it is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from actors.commands.console import while_waiting
from tests.commands.check_house import Body, good, refusal, served, written
from tests.commands.house import Trm
from tests.llm.server import Connection, answer, serving
from tests.system.runs import environment

MODELS = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n" + b'{"data":[{"id":"m"}]}'


class Silent:
    """A server that takes requests and answers none, or none but for its models."""

    def __init__(self, *, lists: bool) -> None:
        self.url = ""
        self.asked = threading.Event()
        self._lists = lists

    async def handle(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            if self._lists and request[0].startswith(b"GET "):
                await connection.send(MODELS)
            else:
                self.asked.set()


@contextmanager
def silent(*, lists: bool) -> Iterator[Silent]:
    """It, in a thread."""
    made = Silent(lists=lists)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(made.handle)) as server,
    ):
        made.url = server.base_url
        yield made


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check's own clocks, for a test."""
    monkeypatch.setattr("actors.commands.check_calls._LIST_S", 0.3)
    monkeypatch.setattr("actors.commands.check_calls._FIRST_TOKEN_S", 0.3)


@pytest.mark.usefixtures("hurried")
def test_silence_is_told_once_with_its_length(trm: Trm, tmp_path: Path) -> None:
    """Not tried again, nor call by call; the configured clocks are a run's."""
    with silent(lists=False) as mute, silent(lists=True) as half:
        config = written(
            tmp_path,
            {"base_url": mute.url},
            {"base_url": half.url},
            llm={"first_token_s": 3000.0, "attempt_s": 3000.0, "total_s": 3000.0},
        )
        out = trm("check", config, expect=2).out
    about = [[line for line in out.splitlines() if f" {name} " in line] for name in ("e1", "e2")]
    assert "/models: nothing came within 0.3 s)" in about[0][0]
    assert "takes connections there and says nothing" in about[0][0]
    assert "serves m" in about[1][0]
    for lines in about:
        assert "timeout: first token: nothing within 0.3 s (4 more calls were not" in lines[1]
        assert "look at the server's log" in lines[1]
        assert len(lines) == 2


def test_endpoints_are_asked_side_by_side(trm: Trm, tmp_path: Path) -> None:
    """Each answers its first call only when the other has been asked too."""
    both = threading.Barrier(2)
    met: list[int] = []

    def talk(body: Body) -> bytes:
        if len(met) < 2:
            met.append(both.wait(timeout=20))
        return good(body)

    with served(talk) as first, served(talk) as second:
        roles = {"roles": ["judge"], "json_output": "none"}
        config = written(
            tmp_path,
            {"base_url": first.url, **roles},
            {"base_url": second.url, **roles},
            {"base_url": "twin", "model": "t", "roles": ["search", "evolve"]},
        )
        out = trm("check", config, expect=2).out
    assert sorted(met) == [0, 1]
    assert "timeout" not in out


@pytest.mark.parametrize("lists", [False, True], ids=["models", "chats"])
def test_ctrl_c_ends_it(tmp_path: Path, lists: bool) -> None:
    """At once, whatever it waits for: with 130, and without a traceback."""
    with silent(lists=lists) as mute:
        config = written(tmp_path, {"base_url": mute.url}, llm={"first_token_s": 3000.0})
        process = subprocess.Popen(
            [sys.executable, "-m", "actors.main", "check", str(config)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                assert mute.asked.wait(timeout=50)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate()
            finally:
                process.kill()
    assert (process.returncode, err) == (130, "")
    assert out.splitlines()[-1].startswith("ok files")


def test_a_moment_is_tried_again(trm: Trm, tmp_path: Path) -> None:
    """A failed call may be bad luck; a rate limit is of all calls, and waits."""
    calls: list[int] = []

    def unsteady(body: Body) -> bytes:
        calls.append(1)
        return refusal("500 Oops", "later") if len(calls) == 1 else answer("no action")

    with (
        served(unsteady) as shaky,
        served(lambda _: refusal("429 Too Many Requests", "slowly")) as busy,
    ):
        config = written(
            tmp_path,
            {"base_url": shaky.url, "roles": ["search"], "json_output": "none"},
            {"base_url": busy.url, "roles": ["judge", "evolve"]},
        )
        out = trm("check", config, expect=2).out
    assert "2 tries" in out
    assert "HTTP 429: slowly (2 more calls were not tried)  -> wait, or lower" in out
    assert len(busy.asked) == 1


def test_somebody_who_looks_sees_what_it_waits_for(
    trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal of stderr, gone when it is over; elsewhere not a word."""
    with served() as server:
        config = written(tmp_path, {"base_url": server.url}, llm={"first_token_s": 7.0})
        assert trm("check", config).err == ""
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        told = trm("check", config, "--json").err
    line = "asking 1 endpoint (17 s if one is silent) ..."
    assert told == f"{line}\r{' ' * len(line)}\r"
    with pytest.raises(KeyboardInterrupt), while_waiting("asking ..."):
        raise KeyboardInterrupt
    assert capsys.readouterr().err.endswith("\r          \r")
