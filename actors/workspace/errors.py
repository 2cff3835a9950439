"""What a folder can be refused for.

    WorkspaceError     path, what, remedy
    ├── BadFile        a file cannot be read as what it should be
    ├── VersionError   a version of the documents is missing, damaged or contradicts itself
    ├── SeedError      a seed is incomplete or its parts do not belong together
    │   └── RowsError  answers cannot become a baseline; every row at fault is named
    ├── SplitExists    another split is frozen there (row P2-1)
    └── WorkspaceInUse another process runs on the workspace

What the operating system refuses (disk full, no permission) stays an OSError.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = [
    "BadFile",
    "RowsError",
    "SeedError",
    "SplitExists",
    "VersionError",
    "WorkspaceError",
    "WorkspaceInUse",
]


class WorkspaceError(Exception):
    """path: the file or folder at fault. what: one sentence. remedy: what to do."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what}; {remedy}")
        self.path = path
        self.what = what
        self.remedy = remedy


class BadFile(WorkspaceError):
    """Missing, not JSON, a wrong key or a wrong hash."""


class VersionError(WorkspaceError):
    """The documents of a version cannot be used."""


class SeedError(WorkspaceError):
    """What a seed says of itself is not so."""


_SHOWN = 10


class RowsError(SeedError):
    """details: one line per row or question, all of them; the text shows the first."""

    def __init__(self, path: Path, what: str, remedy: str, details: Sequence[str]) -> None:
        self.details = tuple(details)
        lines = [f"\n  {detail}" for detail in self.details[:_SHOWN]]
        if len(self.details) > _SHOWN:
            lines.append(f"\n  ... and {len(self.details) - _SHOWN} more")
        super().__init__(path, what, remedy + "".join(lines))


class SplitExists(WorkspaceError):
    """Nothing was overwritten; the message names --force."""


class WorkspaceInUse(WorkspaceError):
    """pid: who holds the lock; None if the holder has not written it."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(
            path, f"{holder} runs on this workspace", "wait for it or stop it, then start again"
        )
        self.pid = pid
