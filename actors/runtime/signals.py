"""The operator's wish to stop.

The first SIGINT or SIGTERM drains, the second stops at once; SIGUSR1 logs every task's stack.
"""

from __future__ import annotations

import signal
from typing import Protocol

import anyio
import structlog
from anyio.abc import TaskStatus

from actors.runtime.watch import dump_tasks

__all__ = ["Stoppable", "watch_signals"]

log = structlog.stdlib.get_logger("actors.runtime")


class Stoppable(Protocol):
    """What can be drained, and stopped at once when asked again."""

    def request_stop(self, reason: str) -> None:
        """Drain; the second time: stop at once."""
        ...


async def watch_signals(
    system: Stoppable, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Pass signals on until cancelled; needs the main thread. Started once it listens."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGUSR1) as received:
        task_status.started()
        async for signum in received:
            if signum == signal.SIGUSR1:
                log.warning("runtime.tasks", stacks=dump_tasks())
            else:
                system.request_stop(signal.Signals(signum).name)
