"""The simulator as a child process: started on a listening socket that others own.

The socket outlives the child, so the address stays while the child is replaced, and a request
that comes in between waits in the socket's queue. Must never leave a child behind: the child
ends when its standard input is closed, which the death of this process does too.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import msgspec
from anyio.abc import Process

from actors.twin.sockets import base_url_of, bind_loopback
from actors.twin.written import Health
from protocol.settings import TwinSettings

__all__ = ["TwinDied", "TwinProcess", "base_url_of", "bind_loopback", "start_twin"]

_ROOT = Path(__file__).resolve().parents[2]
_START_S = 60.0
_HEALTH_S = 30.0
_STOP_S = 3.0
_AGAIN_S = 0.05
_TAIL_CHARS = 2000


class TwinDied(RuntimeError):
    """The child ended by itself; the message holds its status and its last words."""


class TwinProcess:
    """A running child and its address."""

    def __init__(self, process: Process, base_url: str, log_path: Path) -> None:
        self.base_url = base_url
        self._process = process
        self._stopping = False
        self._log_path = log_path

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._process.pid

    async def health(self) -> Health:
        """Ask the child. Raises httpx.HTTPError if there is no answer."""
        # No proxy of the environment stands between us and loopback.
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=_HEALTH_S) as client:
            reply = await client.get(f"{self.base_url.removesuffix('/v1')}/health")
            reply.raise_for_status()
            return msgspec.json.decode(reply.content, type=Health)

    async def wait_healthy(self) -> None:
        """Return once this child answers.

        Raises TwinDied if it ends first, TimeoutError after a minute.
        """
        healthy = False

        async def ask() -> None:
            nonlocal healthy
            while not await self._answers():  # noqa: ASYNC110  # another process has no event of ours
                await anyio.sleep(_AGAIN_S)
            healthy = True
            tasks.cancel_scope.cancel()

        with anyio.fail_after(_START_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await self._process.wait()
                tasks.cancel_scope.cancel()
        if not healthy:
            raise await self._death()

    async def wait(self) -> None:
        """Wait for the child's end. Raises TwinDied unless ``stop`` brought it about."""
        await self._process.wait()
        if not self._stopping:
            raise await self._death()

    async def stop(self) -> None:
        """End the child and take it in: closed input and SIGTERM, after a while SIGKILL."""
        self._stopping = True
        if self._process.stdin is not None:
            await self._process.stdin.aclose()
        if self._process.returncode is None:
            self._process.terminate()
            with anyio.move_on_after(_STOP_S) as patience:
                await self._process.wait()
            if patience.cancelled_caught:
                self._process.kill()
        await self._process.aclose()

    async def _answers(self) -> bool:
        """Whether this child answers: a former one may still take from the shared queue."""
        try:
            return (await self.health()).pid == self.pid
        except httpx.TransportError:
            return False

    async def _death(self) -> TwinDied:
        text = await anyio.Path(self._log_path).read_text(encoding="utf-8", errors="replace")
        status = self._process.returncode
        return TwinDied(
            f"the simulator ended with status {status}; {self._log_path} ends with:\n"
            f"{text[-_TAIL_CHARS:].strip() or '(nothing)'}"
        )


async def start_twin(
    settings: TwinSettings,
    *,
    world: Path,
    questions: Path,
    listener: socket.socket,
    log_path: Path,
) -> TwinProcess:
    """Start a child on the listener; it may not answer yet. Raises OSError.

    world, questions: absolute paths, the child has a folder of its own. log_path: the child's
    standard output and error are appended there.
    """
    fd = listener.fileno()
    command = [
        sys.executable,
        "-m",
        "actors.twin",
        f"--world={world}",
        f"--questions={questions}",
        f"--fd={fd}",
        f"--world-seed={settings.world_seed}",
        f"--helpful={settings.helpful!r}",
        f"--useless={settings.useless!r}",
        f"--harmful={settings.harmful!r}",
        f"--malformed={settings.malformed!r}",
        f"--hostile={settings.hostile!r}",
        f"--judge-noise={settings.judge_noise!r}",
        f"--chunk-delay-s={settings.chunk_delay_s!r}",
    ]
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        process = await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is the run's to handle, not the child's
            pass_fds=(fd,),
        )
    return TwinProcess(process, base_url_of(listener), log_path)
