"""One run per workspace: a lock that dies with its process, whatever kills it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from actors.workspace.errors import WorkspaceInUse

__all__ = ["LOCK", "WorkspaceLock", "lock_holder"]

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
            pid = _pid_in(fd)
            os.close(fd)
            raise WorkspaceInUse(self._path, pid) from error
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


def lock_holder(workspace: Path) -> WorkspaceInUse | None:
    """What taking the lock would raise now; None: nobody holds it. Makes and changes nothing.

    Raises OSError if there is a lock that cannot be looked at.
    """
    path = workspace / LOCK
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who look do not see each other, and given back at once.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return WorkspaceInUse(path, _pid_in(fd))
    finally:
        os.close(fd)
    return None


def _pid_in(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
