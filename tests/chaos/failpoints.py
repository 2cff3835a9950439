"""Every action that makes something durable, as a point at which the process can die.

    python -m tests.chaos.failpoints REACHED -- train --workspace DIR ...               list them
    python -m tests.chaos.failpoints REACHED --at LABEL --nth N --when before -- ...    die there

A point's label says what becomes durable: ``replace checkpoint.json``, ``commit run.db steps``
(a transaction is named after the tables that it writes). ``before``: the action was about to begin;
``after``: it is done, and nobody knows yet. Death is SIGKILL: no handler, no flush, no exit code
of our own. The labels are appended to the file REACHED as they come.

The points lie outside the product: the program under test is the program.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiosqlite

from actors.main import main as product
from actors.workspace.atomic import FileSystem

__all__ = ["Points", "install", "main"]

_TABLE = re.compile(r"(?:INTO|FROM)\s+\"?(\w+)\"?", re.IGNORECASE)
_VERSION = re.compile(r"^v\d+$")
_TELLING = frozenset(
    {
        "baseline",
        "decisions",
        "diagnoses",
        "documents",
        "edits",
        "epochs",
        "evaluations",
        "factorial_edits",
        "factorial_run",
        "factorial_schedule",
        "outcomes",
        "pairs",
        "redraws",
        "rejected",
        "slow_updates",
        "steps",
    }
)
"""Tables after which a transaction is named; attempts and traces ride along with others."""


class Points:
    """Counts what is reached, and dies where it was told to."""

    def __init__(self, reached: Path, label: str | None, nth: int, when: str) -> None:
        self._reached = os.open(reached, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._fatal = (label, nth, when)
        self._counted: Counter[str] = Counter()

    def before(self, label: str) -> None:
        """The action is about to begin."""
        self._counted[label] += 1
        os.write(self._reached, f"{label}\n".encode())
        self._die(label, "before")

    def after(self, label: str) -> None:
        """The action has returned."""
        self._die(label, "after")

    def _die(self, label: str, when: str) -> None:
        if (label, self._counted[label], when) == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def install(points: Points) -> None:
    """Put the points into the calls that durability rests on."""
    _install_files(points)
    _install_sqlite(points)


def _install_files(points: Points) -> None:
    write, replace = FileSystem.write, FileSystem.replace

    def watched_write(self: FileSystem, fd: int, data: bytes) -> None:
        """``before`` leaves half of the file."""
        half = len(data) // 2
        write(self, fd, data[:half])
        points.before("write a file")
        write(self, fd, data[half:])
        points.after("write a file")

    def watched_replace(self: FileSystem, source: Path, target: Path) -> None:
        name = f"{target.parent.name}/vN" if _VERSION.match(target.name) else target.name
        points.before(f"replace {name}")
        replace(self, source, target)
        points.after(f"replace {name}")

    setattr(FileSystem, "write", watched_write)  # noqa: B010  # mypy knows methods as constants
    setattr(FileSystem, "replace", watched_replace)  # noqa: B010


def _install_sqlite(points: Points) -> None:
    execute, executemany = aiosqlite.Connection.execute, aiosqlite.Connection.executemany
    connect = aiosqlite.connect
    names: dict[int, str] = {}
    written: dict[int, set[str]] = {}

    def watched_connect(database: Any, **options: Any) -> aiosqlite.Connection:
        made = connect(database, **options)
        names[id(made)] = Path(str(database).partition("?")[0]).name
        return made

    def watched_executemany(self: aiosqlite.Connection, sql: str, values: Any) -> Any:
        written.setdefault(id(self), set()).update(_TABLE.findall(sql))
        return executemany(self, sql, values)

    def watched_execute(self: aiosqlite.Connection, sql: str, values: Any = None) -> Any:
        if sql == "COMMIT":
            tables = " ".join(sorted(written.pop(id(self), set()) & _TELLING))
            return commit(self, f"commit {names[id(self)]} {tables}".strip())
        written.setdefault(id(self), set()).update(_TABLE.findall(sql))
        return execute(self, sql, values)

    async def commit(connection: aiosqlite.Connection, label: str) -> None:
        points.before(label)
        await execute(connection, "COMMIT")
        points.after(label)

    setattr(aiosqlite, "connect", watched_connect)  # noqa: B010
    setattr(aiosqlite.Connection, "execute", watched_execute)  # noqa: B010
    setattr(aiosqlite.Connection, "executemany", watched_executemany)  # noqa: B010


def main(arguments: Sequence[str]) -> int:
    """Run the product with points in it; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.failpoints")
    parser.add_argument("reached", type=Path, help="the file that the labels are appended to")
    parser.add_argument("--at", help="the label at which to die")
    parser.add_argument("--nth", type=int, default=1, help="the time it is reached")
    parser.add_argument("--when", choices=("before", "after"), default="before")
    parser.add_argument("command", nargs="+", help="after --: what actors.main is given")
    known = parser.parse_args(arguments)
    install(Points(known.reached, known.at, known.nth, known.when))
    return product(known.command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
