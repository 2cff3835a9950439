"""Eyes on a running system: statistics, messages that wait too long, stacks of tasks.

Looks and logs; it must never change what it looks at.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType

import anyio
import msgspec
import structlog

from actors.runtime.cell import Cell
from actors.runtime.envelope import Envelope
from actors.runtime.stats import LoopLag

__all__ = ["dump_tasks", "log_stats", "measure_lag", "report_stats", "watch_blocked"]

_LAG_SAMPLES = 300  # per period of statistics: one every 0.1 s with the default of 30 s

log = structlog.stdlib.get_logger("actors.runtime")


def log_stats(cells: Sequence[Cell], lag: LoopLag) -> None:
    """One ``runtime.stats`` event: the event loop's lag since the one before (``LoopLag``).

    ``actors`` holds the fields of ``ActorStats`` of each.
    """
    actors = [msgspec.to_builtins(cell.stats()) for cell in cells]
    log.info("runtime.stats", **lag.take(), actors=actors)


async def report_stats(cells: Sequence[Cell], lag: LoopLag, every_s: float) -> None:
    """Log the statistics every ``every_s`` seconds, for ever."""
    while True:
        await anyio.sleep(every_s)
        log_stats(cells, lag)


async def measure_lag(lag: LoopLag, every_s: float) -> None:
    """Sample for ever how late a task wakes up. every_s: the period of the statistics."""
    while True:
        due = anyio.current_time() + every_s / _LAG_SAMPLES
        await anyio.sleep_until(due)
        lag.add(max(anyio.current_time() - due, 0.0))


async def watch_blocked(cells: Sequence[Cell], after_s: float) -> None:
    """Log ``runtime.blocked`` once for each message that is the next one for ``after_s``.

    A long queue that moves is back-pressure and no news: with slow endpoints the last of many
    waits for hours. It names who waits and what runs meanwhile; ``runtime.tasks`` follows with
    all stacks.
    """
    heads: dict[str, tuple[Envelope, float]] = {}  # the next message, and since when it is
    reported: dict[str, Envelope] = {}
    while True:
        await anyio.sleep(after_s / 4)
        now = anyio.current_time()
        found = False
        for cell in cells:
            oldest = cell.mailbox.oldest
            if oldest is None:
                heads.pop(cell.name, None)
                reported.pop(cell.name, None)
                continue
            head, since = heads.setdefault(cell.name, (oldest, now))
            if head is not oldest:
                heads[cell.name] = (oldest, now)
                continue
            if now - since <= after_s or reported.get(cell.name) is oldest:
                continue
            reported[cell.name] = oldest
            found = True
            log.warning(
                "runtime.blocked",
                actor=cell.name,
                oldest=oldest.kind,
                oldest_s=now - oldest.sent_at,
                waits=oldest.sender,
                senders_waiting=cell.mailbox.senders,
                running={repr(one): now - begun for one, begun in cell.in_flight.items()},
            )
        if found:
            log.warning("runtime.tasks", stacks=dump_tasks())


def dump_tasks() -> str:
    """The stack of every task of the running event loop, innermost call last."""
    parts: list[str] = []
    for task in sorted(anyio.get_running_tasks(), key=lambda task: task.name or ""):
        lines = traceback.StackSummary.from_list(
            [
                traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name)
                for frame, line in _frames(task.coro)
            ]
        ).format()
        parts.append(f"task {task.name}\n{''.join(lines)}")
    return "\n".join(parts)


def _frames(awaited: object) -> list[tuple[FrameType, int]]:
    """The frames along the chain of awaits, outermost first."""
    frames: list[tuple[FrameType, int]] = []
    while True:
        frame: FrameType | None
        following: object
        match awaited:
            case CoroutineType():
                frame, following = awaited.cr_frame, awaited.cr_await
            case GeneratorType():
                frame, following = awaited.gi_frame, awaited.gi_yieldfrom
            case AsyncGeneratorType():
                frame, following = awaited.ag_frame, awaited.ag_await
            case _:
                return frames
        if frame is not None:
            frames.append((frame, frame.f_lineno))
        awaited = following
