"""What the cache's tests share: keys, answers, settings, a context, a Redis of their own."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import pytest
import structlog
from anyio.abc import Process, TaskGroup
from anyio.streams.text import TextReceiveStream

from actors.cache.actor import CacheActor
from protocol.llm import Attempt, ChatAnswer, Usage
from protocol.settings import CacheSettings

__all__ = [
    "Clock",
    "RedisServer",
    "answer",
    "cache_settings",
    "key",
    "redis_url",
    "running",
]


def key(name: str) -> str:
    """A key as the chat client makes them: 64 hex digits."""
    return hashlib.sha256(name.encode()).hexdigest()


def answer(text: str) -> ChatAnswer:
    """An answer with every field filled."""
    return ChatAnswer(
        text=text,
        finish="stop",
        usage=Usage(prompt_tokens=12, completion_tokens=3),
        endpoint="twin-agent",
        cached=False,
        reasoning="because",
        attempts=(Attempt(endpoint="twin-agent", outcome="ok", seconds=0.25),),
    )


def cache_settings(
    backend: Literal["auto", "sqlite", "redis", "none"] = "sqlite",
    *,
    ttl_s: int = 60,
    redis_url: str | None = None,
) -> CacheSettings:
    """The room's settings."""
    return CacheSettings(backend=backend, ttl_s=ttl_s, redis_url=redis_url)


class Clock:
    """Seconds that move only when a test says so."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class _Context:
    """What the runtime would give an incarnation."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.name = "cache"
        self.incarnation = 1
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger()
        self.restored: bytes | None = None
        self.tasks = tasks
        self.draining = False

    async def checkpoint(self, label: str) -> None:
        raise AssertionError("the cache asks for no checkpoint")


@asynccontextmanager
async def running(actor: CacheActor) -> AsyncIterator[CacheActor]:
    """The actor between its start and its stop."""
    async with anyio.create_task_group() as tasks:
        await actor.on_start(_Context(tasks))
        try:
            yield actor
        finally:
            await actor.on_stop()


def redis_url() -> str:
    """The server that the environment names; skips where it names none."""
    url = os.environ.get("REDIS_URL")
    if not url:
        pytest.skip("REDIS_URL is not set: no Redis to test against (bin/test starts one)")
    return url


class RedisServer:
    """A Redis of the test's own on a free port, which can be killed and started again."""

    def __init__(self, binary: str, port: int, folder: Path) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._command = [
            *(binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no"),
        ]
        self._process: Process | None = None

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path) -> AsyncIterator[RedisServer]:
        """A running server, killed afterwards; skips where redis-server is not on PATH."""
        binary = shutil.which("redis-server")
        if binary is None:
            pytest.skip("redis-server is not on PATH: no server to kill and start again")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = cls(binary, port, folder)
        await server.start()
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.kill()

    async def start(self) -> None:
        """Start it and wait until it says that it accepts connections."""
        process = await anyio.open_process(self._command, stderr=subprocess.STDOUT)
        self._process = process
        assert process.stdout is not None
        said = ""
        async for text in TextReceiveStream(process.stdout):
            said += text
            if "Ready to accept connections" in said:
                return
        raise AssertionError(f"redis-server ended: {said}")

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            await self._process.aclose()
            self._process = None
