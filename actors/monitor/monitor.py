"""Joins the parts to one run: what is heard, what is said, who may steer."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from actors.llm.pace import Pace
from actors.monitor.beside import beside
from actors.monitor.board import Board
from actors.monitor.control import Controller, listening
from actors.monitor.metrics import metrics_text, serve_metrics
from actors.monitor.ticker import endpoint_fields, tick
from actors.runtime.errors import AskFailed
from actors.runtime.supervisor import Supervisor
from protocol.llm import AskEndpoints, EndpointsSeen
from protocol.settings import Config

__all__ = ["Monitor"]

_PATIENCE_S = 5.0


class Monitor:
    """One run's monitor. Give ``hear`` to the logs, ``pace`` to the system, then enter ``watch``.

    control: the command that steers this run, without its last word. metrics_port: of the
    loopback, for Prometheus; None: nobody asks.
    """

    def __init__(
        self,
        config: Config,
        workspace: Path,
        run_id: str,
        control: str,
        *,
        metrics_port: int | None = None,
    ) -> None:
        self.board = Board(config.trainer.epochs)
        self.pace = Pace()
        self._endpoints = tuple(endpoint.name for endpoint in config.llm.endpoints)
        self._workspace = workspace
        self._run_id = run_id
        self._resume = f"{control} resume"
        self._metrics_port = metrics_port
        self._started = datetime.now(UTC)
        self._system: Supervisor | None = None

    def hear(self, event: Mapping[str, object]) -> None:
        """Every event of the process, as it is logged."""
        self.board.take(event, time.monotonic())

    @asynccontextmanager
    async def watch(self, system: Supervisor) -> AsyncIterator[None]:
        """Say how it goes and listen, while the block runs."""
        self._system = system
        controller = Controller(system, self.pace, self._endpoints, self.status, self._resume)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(listening(self._workspace, controller))
            if self._metrics_port is not None:
                await stack.enter_async_context(serve_metrics(self._metrics_port, self._metrics))
            await stack.enter_async_context(beside(self._tick))
            yield

    async def _tick(self) -> None:
        await tick(self.board, self._look, self._resume, time.monotonic)

    async def _look(self) -> EndpointsSeen | None:
        """How the endpoints stand; None while the client is restarted or stops."""
        assert self._system is not None, "asked only while the system is watched"
        try:
            return await self._system.address("llm").ask(AskEndpoints(), timeout_s=_PATIENCE_S)
        except AskFailed:
            return None

    async def _metrics(self) -> str:
        assert self._system is not None, "asked only while the system is watched"
        seen = await self._look()
        return metrics_text(self.board, seen, self._system.stats(), time.monotonic())

    async def status(self) -> dict[str, object]:
        """Everything at this moment, as plain JSON values."""
        assert self._system is not None, "asked only while the system is watched"
        now, board = time.monotonic(), self.board
        progress = board.progress(now)
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for (name, what), n in sorted(board.counts.items()):
            counts[name][what] = n
        return {
            "run_id": self._run_id,
            "workspace": str(self._workspace),
            "pid": os.getpid(),
            "started": self._started.isoformat(timespec="seconds"),
            "draining": self._system.draining,
            "quiet_s": None if board.finished_at is None else round(now - board.finished_at, 1),
            "progress": None if progress is None else msgspec.to_builtins(progress),
            **endpoint_fields(await self._look()),
            "counts": dict(counts),
            "actors": [msgspec.to_builtins(one) for one in self._system.stats()],
        }
