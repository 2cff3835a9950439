"""The ledger's shell: rows in, rows out."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from actors.ledger.commit import GroupCommit
from actors.ledger.sqlite import Database
from actors.runtime.actor import Actor, Context, handles
from protocol.ledger import (
    AskSpent,
    Deleted,
    DeleteRun,
    Flush,
    Flushed,
    Record,
    Recorded,
    Select,
    Selected,
    Spent,
)

__all__ = ["LedgerActor"]


class LedgerActor(Actor):
    """Owns ``run.db``; stateless beyond the file.

    path: the database. concurrency: the handlers that the wiring allows at once.
    """

    def __init__(self, path: Path, concurrency: int) -> None:
        self._path = path
        self._concurrency = concurrency
        self._opened: tuple[Database, GroupCommit] | None = None

    async def on_start(self, context: Context) -> None:
        """Open the file and begin to commit."""
        database = await Database.open(self._path)
        commits = GroupCommit(database, self._concurrency)
        self._opened = (database, commits)
        context.tasks.start_soon(commits.run)
        if context.incarnation == 1:
            context.log.info("ledger.open", path=str(self._path), sqlite=sqlite3.sqlite_version)

    async def on_stop(self) -> None:
        """Close the file."""
        if self._opened is not None:
            database, commits = self._opened
            commits.close()
            await database.close()

    @property
    def _database(self) -> Database:
        assert self._opened is not None, "handlers run only after on_start"
        return self._opened[0]

    @property
    def _commits(self) -> GroupCommit:
        assert self._opened is not None, "handlers run only after on_start"
        return self._opened[1]

    @handles(Record)
    async def record(self, request: Record) -> Recorded:
        """Write rows; the answer means committed."""
        return Recorded(rows=await self._commits.submit(request))

    @handles(DeleteRun)
    async def delete_run(self, request: DeleteRun) -> Deleted:
        """Delete a pass and all below it."""
        return Deleted(rows=await self._commits.submit(request))

    @handles(Select)
    async def select(self, request: Select) -> Selected:
        """Read committed rows."""
        return Selected(rows=await self._database.select(request))

    @handles(AskSpent)
    async def spent(self, _: AskSpent) -> Spent:
        """Add up what the run has cost."""
        return await self._database.spent()

    @handles(Flush)
    async def flush(self, request: Flush) -> Flushed:
        """Commit what waits, then sync. An empty write queues behind what waits."""
        await self._commits.submit(Record(rows=()))
        await self._database.sync()
        return Flushed()
