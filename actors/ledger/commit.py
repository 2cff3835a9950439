"""Group commit: many small writes, one transaction, everybody answered after it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

import anyio

from actors.ledger.sqlite import Database, Operation

__all__ = ["GroupCommit"]

_MAX_GROUP = 256


@dataclass
class _Pending:
    """An operation that waits for its commit."""

    operation: Operation
    done: anyio.Event = field(default_factory=anyio.Event)
    touched: int = 0
    error: Exception | None = None


class GroupCommit:
    """Collects operations while a transaction runs and commits them with the next.

    No timer is needed: under load a group fills while the former one commits; without load
    an operation is committed at once. The queue is as long as the handlers that wait in it.
    """

    def __init__(self, database: Database, waiting: int) -> None:
        self._database = database
        self._send, self._receive = anyio.create_memory_object_stream[_Pending](waiting)

    async def submit(self, operation: Operation) -> int:
        """Return the rows touched, after the commit. Raises what the database raised."""
        pending = _Pending(operation)
        await self._send.send(pending)
        await pending.done.wait()
        if pending.error is not None:
            raise pending.error
        return pending.touched

    async def run(self) -> None:
        """Commit for ever; started in the actor's own task group."""
        async with self._receive:
            while True:
                group = [await self._receive.receive()]
                while len(group) < _MAX_GROUP:
                    try:
                        group.append(self._receive.receive_nowait())
                    except anyio.WouldBlock:
                        break
                await self._commit(group)

    async def _commit(self, group: list[_Pending]) -> None:
        """One transaction for all; if it fails, one each, so that only the culprit fails."""
        try:
            touched = await self._database.apply([pending.operation for pending in group])
        except (sqlite3.Error, UnicodeError) as error:
            if len(group) == 1:
                group[0].error = error
            else:
                for pending in group:
                    await self._commit([pending])
        else:
            for pending, count in zip(group, touched, strict=True):
                pending.touched = count
        for pending in group:
            pending.done.set()

    def close(self) -> None:
        """Release the streams; nobody waits in them any more when the actor stops."""
        self._send.close()
        self._receive.close()
