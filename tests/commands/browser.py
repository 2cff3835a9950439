"""A headless Chromium that loads a file, over the pipe of its debugging protocol. No network."""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Browser", "find_chromium", "open_browser"]

_FLAGS = (
    "--headless",
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_WAIT_S = 40.0


def find_chromium() -> str | None:
    """The browser's program, where there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One tab. said: everything that came to its console or its log, errors first of all."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._held = b""
        self._number = 0
        self._session = ""
        self.said: list[str] = []
        self.events: list[str] = []
        self.requested: list[str] = []

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Ask and wait for the answer. Raises RuntimeError if it is an error."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, msgspec.json.encode(message) + b"\0")
        while True:
            told = self._read()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result

    def _read(self) -> dict[str, Any]:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._back, selectors.EVENT_READ)
            ends = time.monotonic() + _WAIT_S
            while b"\0" not in self._held:
                if not waiting.select(max(0.0, ends - time.monotonic())):
                    raise TimeoutError(f"the browser said nothing for {_WAIT_S:g} s")
                piece = os.read(self._back, 1 << 20)
                if not piece:
                    raise RuntimeError("the browser ended")
                self._held += piece
        message, _, self._held = self._held.partition(b"\0")
        told: dict[str, Any] = msgspec.json.decode(message)
        self._note(told)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        method, what = told.get("method", ""), told.get("params", {})
        self.events.append(method)
        if method == "Runtime.consoleAPICalled":
            self.said.append(str([one.get("value", one) for one in what["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(what["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(what["request"]["url"])

    def attach(self) -> None:
        """Take the first tab."""
        made = self.call("Target.createTarget", url="about:blank")
        session = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def size(self, width: int, height: int) -> None:
        """The size of the window, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def load(self, url: str) -> None:
        """Go there and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._read()

    def js(self, expression: str) -> Any:  # whatever the page has
        """The value of an expression; a promise is waited for. Raises RuntimeError."""
        told = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(str(told["exceptionDetails"]))
        return told["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait, by the page's own frames, until an expression holds. Raises RuntimeError."""
        self.js(
            "new Promise((done, failed) => { const ends = performance.now() + 20000;"
            f"const look = () => {{ if ({expression}) done(true);"
            "else if (performance.now() > ends) failed(new Error('it never came to hold'));"
            "else setTimeout(look, 10); }; look(); })"
        )

    def picture(self, path: Path) -> None:
        """What the window shows, as PNG."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def open_browser(program: str, folder: Path) -> Iterator[Browser]:
    """Start it with a profile of its own in ``folder``; ended with the block."""
    low, to = os.pipe()
    back, lower = os.pipe()
    there, here = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (low, lower))  # clear of 3 and 4
    os.close(low)
    os.close(lower)
    command = ["bash", "-c", f'exec "$@" 3<&{there} 4>&{here}', "bash", program, *_FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={folder}"],
        pass_fds=(there, here),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    os.close(here)
    try:
        browser = Browser(to, back)
        browser.attach()
        yield browser
    finally:
        os.close(to)
        os.close(back)
        process.terminate()
        process.wait(timeout=_WAIT_S)
