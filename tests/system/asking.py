"""``bin/trm ask`` in this process and in one of its own, and endpoints to be asked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from actors.config import ROOT
from actors.main import main
from tests.llm.server import Connection, serving

__all__ = [
    "Asker",
    "Endpoint",
    "attempts",
    "ended",
    "endpoint",
    "nobody",
    "started",
    "status",
    "written",
]


class Endpoint:
    """A server in a thread. Answers its nth request with the nth response, then with the last.

    An empty response: none is made, until the client goes. Otherwise the connection is closed
    after it.
    """

    def __init__(self, *responses: bytes) -> None:
        self.base_url = ""
        self.heads: list[bytes] = []
        self.bodies: list[dict[str, object]] = []
        self.asked = threading.Event()
        self._responses = responses

    async def handle(self, connection: Connection) -> None:
        request = await connection.request()
        if request is None:
            return
        head, body = request
        self.heads.append(head)
        self.bodies.append(json.loads(body))
        self.asked.set()
        response = self._responses[min(len(self.bodies), len(self._responses)) - 1]
        if response:
            await connection.send(response)
        else:
            await connection.until_gone()


@contextmanager
def endpoint(*responses: bytes) -> Iterator[Endpoint]:
    """The command runs its own event loop, so the server has one of its own."""
    seen = Endpoint(*responses)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(seen.handle)) as server,
    ):
        seen.base_url = server.base_url
        yield seen


@contextmanager
def nobody() -> Iterator[str]:
    """A base URL that refuses connections: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def status(line: str, body: str = "", *headers: str) -> bytes:
    """A response other than 200."""
    lines = [f"HTTP/1.1 {line}", f"Content-Length: {len(body)}", *headers, "", body]
    return "\r\n".join(lines).encode()


class Asker:
    """Runs the command in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str, expect: int = 0) -> None:
        try:
            code = main(["ask", *arguments])
        except SystemExit as left:  # the parser's way
            code = int(left.code or 0)
        self.out, self.err = self._capture.readouterr()
        assert code == expect, f"exit {code}\n{self.out}\n{self.err}"

    def json(self, base_url: str, *arguments: str, expect: int = 0) -> dict[str, object]:
        """The object that --json prints; nothing else may be said."""
        self("--base-url", base_url, "--model", "m", "--json", *arguments, expect=expect)
        assert self.err == ""
        (line,) = self.out.splitlines()
        told = json.loads(line)
        assert isinstance(told, dict)
        return told

    def refused(self, *arguments: str) -> str:
        """A usage error; returns what it says."""
        self(*arguments, expect=2)
        assert self.out == ""
        assert "Traceback" not in self.err
        return self.err


def attempts(told: dict[str, object]) -> list[tuple[object, object]]:
    """Outcome and kind of every try."""
    tries = told["attempts"]
    assert isinstance(tries, list)
    return [(tried["outcome"], tried["kind"]) for tried in tries]


def written(folder: Path, base_url: str, **clocks: float) -> Path:
    """A configuration whose judge is at the endpoint, and whose editor is the simulator."""
    path = folder / "my.yaml"
    endpoints = [
        {"name": "here", "base_url": base_url, "model": "mine", "roles": ["search", "judge"]},
        {"name": "twin-editor", "base_url": "twin", "model": "t", "roles": ["evolve"]},
        {"name": "keyed", "base_url": base_url, "model": "k", "roles": ["vision"],
         "api_key_env": "A_KEY_THAT_IS_NOT_SET"},
    ]  # fmt: skip
    # an actor that this command does not have must not stop it
    tree = {"llm": {"endpoints": endpoints, **clocks}, "runtime": {"inject_crash": ["gate@1"]}}
    path.write_text(json.dumps(tree))
    return path


@contextmanager
def started(
    *arguments: str, code: str = "pass", folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The command as a process. code: run before it. folder: for temporary files."""
    environ = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    if folder is not None:
        environ["TMPDIR"] = str(folder)
    program = f"import sys; {code}; from actors.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "ask", *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], expect: int) -> tuple[str, str]:
    """What it said on stdout and stderr."""
    out, err = process.communicate()
    assert process.returncode == expect, f"exit {process.returncode}\n{out}\n{err}"
    assert "Traceback" not in err
    return out, err
