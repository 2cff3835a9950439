"""The one way a file or folder of a workspace or seed comes into being (row P1-7).

A file: a new name in the same folder (O_EXCL), written, fsync, ``os.replace``, fsync
of the folder. A folder: built under such a name, everything in it synced, renamed.
Whatever instant the process or the machine dies, the target is the old or the new
one, whole. What a dead process left behind is removed by ``sweep_tmp``.

Blocks for tens of milliseconds: from an actor, call it in a worker thread.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ["OS_FILES", "FileSystem", "folder_aside", "sweep_tmp", "write_atomic"]

_TMP_NAME = re.compile(r"^\..+\.(?P<pid>\d+)\.\d+\.tmp$")
_numbers = itertools.count()  # tells writers of one process apart


class FileSystem:
    """The calls that durability rests on; a test puts a failing or recording one in its place."""

    def create(self, path: Path) -> int:
        """Open a file that must not exist yet. Raises FileExistsError."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)

    def write(self, fd: int, data: bytes) -> None:
        """All of the data; unbuffered, so that there is nothing to flush."""
        left = memoryview(data)
        while left:
            left = left[os.write(fd, left) :]

    def fsync(self, fd: int) -> None:
        """Wait until the file's content is on disk."""
        os.fsync(fd)

    def replace(self, source: Path, target: Path) -> None:
        """Rename; a reader sees the old or the new target, never none."""
        source.replace(target)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in the folder are on disk."""
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


OS_FILES = FileSystem()


def write_atomic(path: Path, data: bytes, *, files: FileSystem = OS_FILES) -> None:
    """Make ``path`` hold ``data``, or leave it as it was.

    Raises OSError; the old content is then untouched and nothing new lies beside it.
    """
    tmp, fd = _create_beside(path, files)
    try:
        try:
            files.write(fd, data)
            files.fsync(fd)
        finally:
            os.close(fd)
        files.replace(tmp, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the first error is the one to tell; a sweep follows
            tmp.unlink()
        _name(error, path)
        raise
    files.sync_folder(path.parent)


@contextlib.contextmanager
def folder_aside(target: Path, *, files: FileSystem = OS_FILES) -> Iterator[Path]:
    """A new folder to fill; it becomes ``target`` when the block ends well, else it vanishes.

    Raises FileExistsError if ``target`` exists, before the block and again after it.
    """
    _refuse_existing(target)
    aside = _tmp_name(target)
    aside.mkdir()
    try:
        yield aside
        for folder, _, names in os.walk(aside, topdown=False):
            for name in names:
                _sync_file(Path(folder) / name, files)
            files.sync_folder(Path(folder))
        _refuse_existing(target)
        files.replace(aside, target)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        _name(error, target)
        raise
    files.sync_folder(target.parent)


def sweep_tmp(folder: Path) -> tuple[Path, ...]:
    """Remove what dead processes left in ``folder`` (not below it); returns what went.

    Our own process id counts as dead: ids are used again, above all in containers. So call
    it before the first write, and for a workspace only while its lock is held.
    """
    swept = []
    for path in sorted(folder.iterdir()):
        match = _TMP_NAME.match(path.name)
        if match is None or _alive(int(match["pid"])):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        swept.append(path)
    return tuple(swept)


def _name(error: BaseException, path: Path) -> None:
    """A write to a full disk does not say by itself where the disk is full."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


def _tmp_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.tmp")


def _create_beside(path: Path, files: FileSystem) -> tuple[Path, int]:
    while True:
        tmp = _tmp_name(path)
        try:
            return tmp, files.create(tmp)
        except FileExistsError:
            continue  # left by an earlier process with our id: the next number


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise FileExistsError(f"{target} exists already")


def _sync_file(path: Path, files: FileSystem) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        files.fsync(fd)
    finally:
        os.close(fd)


def _alive(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's process
    return True
