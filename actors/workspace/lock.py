"""One run per workspace: a lock that dies with its process, whatever kills it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from actors.workspace.errors import WorkspaceInUse

__all__ = ["LOCK", "WorkspaceLock"]

LOCK = "lock"


class WorkspaceLock:
    """``flock`` on ``<workspace>/lock``; the file holds the holder's process id.

    The file stays when the lock goes: removing it would let two holders in. As a context
    manager it is acquired on entry. Raises WorkspaceInUse with the holder's id.
    """

    def __init__(self, workspace: Path) -> None:
        self._path = workspace / LOCK
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise WorkspaceInUse; never waits."""
        if self._fd is not None:
            raise RuntimeError(f"{self._path} is held by this object already")
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise WorkspaceInUse(self._path, int(holder) if holder.isdigit() else None) from error
        except BaseException:
            os.close(fd)
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode("ascii"), 0)
        self._fd = fd

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> WorkspaceLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
