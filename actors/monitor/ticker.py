"""Says how far the run is, in time: a line every ten seconds, a heartbeat when nothing ends.

A task of its own beside the actors. It asks the chat client how its endpoints stand and never
waits long for that: a client that is being restarted costs a field of a line, not the line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import anyio
import msgspec
import structlog

from actors.monitor.board import Board
from actors.monitor.words import heartbeat_line, progress_line
from protocol.llm import EndpointsSeen

__all__ = ["EVERY_S", "QUIET_S", "Look", "endpoint_fields", "tick"]

EVERY_S = 10.0
QUIET_S = 30.0
_LOOK_S = 1.0

log = structlog.get_logger("monitor")

Look = Callable[[], Awaitable[EndpointsSeen | None]]


async def tick(
    board: Board, look: Look, resume: str, clock: Callable[[], float] = anyio.current_time
) -> None:
    """For ever. look: how the endpoints stand, None if that cannot be known now.

    resume: the command that ends a pause, for whoever reads that there is one. clock: the one
    whose times the board was given.
    """
    begun = said_at = clock()
    said = board.finished
    while True:
        await anyio.sleep(_LOOK_S)
        now = clock()
        moved = begun if board.finished_at is None else board.finished_at
        if board.finished != said and now - said_at >= EVERY_S:
            progress = board.progress(now)
            if progress is None:
                continue
            said, said_at = board.finished, now
            seen = await look()
            told = msgspec.to_builtins(progress)
            log.info(
                "progress",
                **told,
                **endpoint_fields(seen),
                line=progress_line(progress, seen),
            )
        elif now - moved >= QUIET_S and now - said_at >= QUIET_S:
            said_at = now
            seen = await look()
            log.info(
                "heartbeat",
                quiet_s=round(now - moved, 1),
                **endpoint_fields(seen),
                line=heartbeat_line(now - moved, seen, datetime.now(UTC), resume),
            )


def endpoint_fields(seen: EndpointsSeen | None) -> dict[str, object]:
    """The client's part of an event, without the tags of the protocol."""
    if seen is None:
        return {"endpoints": None}
    endpoints = []
    for one in seen.endpoints:
        plain = msgspec.to_builtins(one)
        plain.pop("type")
        endpoints.append(plain)
    return {
        "endpoints": endpoints,
        "waiting": seen.waiting,
        "calls": seen.calls,
        "oldest_s": round(seen.oldest_s, 1),
        "paused_by": seen.paused_by,
        "usd": None if seen.usd is None else round(seen.usd, 4),
    }
