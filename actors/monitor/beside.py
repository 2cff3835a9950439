"""Tasks beside a block: they run while it runs and are gone when it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio

__all__ = ["beside"]


@asynccontextmanager
async def beside(*tasks: Callable[[], Coroutine[object, object, None]]) -> AsyncIterator[None]:
    """Run them until the block is left, however it is left.

    What the block raises passes unchanged, not in a group: its caller knows it by its type.
    """
    error: Exception | None = None
    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(task)
        try:
            yield
        except Exception as exc:  # noqa: BLE001  # raised again below, outside the group
            error = exc
        group.cancel_scope.cancel()
    if error is not None:
        raise error
