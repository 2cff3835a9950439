"""The last thing of an incarnation: ``on_stop``, whatever becomes of the event loop (P18)."""

from __future__ import annotations

import asyncio  # noqa: TID251  # the loop cancels tasks by itself, and anyio has no word for that
from types import SimpleNamespace
from typing import cast

import anyio
import anyio.lowlevel
import structlog

from actors.runtime.incarnation import Incarnation


class Held:
    """Something to release, which takes a moment."""

    released = False

    async def on_stop(self) -> None:
        """Let go of it."""
        await anyio.lowlevel.checkpoint()
        self.released = True


def test_p18_a_cancellation_of_the_dying_loop_does_not_cut_on_stop_short() -> None:
    """P18: it is due when ``finish`` begins, and no shield of anyio's keeps it out."""
    held = Held()
    bare = SimpleNamespace(actor=held, stop_failure=None, _log=structlog.get_logger())

    async def last() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await Incarnation.finish(cast(Incarnation, bare), 1.0)

    anyio.run(last)
    assert held.released
    assert bare.stop_failure is None
