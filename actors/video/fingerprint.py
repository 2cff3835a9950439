"""What a video's tree is, as bytes that can be compared: its file, and the pictures beside it.

Only reads. A picture counts by its name, its size and both its ends: hundreds of videos have
gigabytes of them, and a picture that was taken again differs in its size or at its end.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from actors.video.frames import SUFFIXES
from actors.video.store import find_tree, frames_folder
from actors.video.tree import TreeError

__all__ = ["tree_fingerprint", "trees_fingerprint"]

_END = 4096  # bytes


def trees_fingerprint(
    folder: Path, video_ids: Iterable[str], *, pictures: bool
) -> tuple[str, list[str]]:
    """One hash for all these videos, and every problem on the way to it. See below. Blocking."""
    digest = hashlib.sha256()
    problems = []
    for video_id in sorted(video_ids):
        try:
            digest.update(tree_fingerprint(folder, video_id, pictures=pictures))
        except TreeError as error:
            problems.append(str(error))
    return digest.hexdigest(), problems


def tree_fingerprint(folder: Path, video_id: str, *, pictures: bool) -> bytes:
    """A hash of one video's tree. pictures: they are shown, so that they count too. Blocking.

    Raises TreeError when there is no tree, or a picture cannot be read.
    """
    path = find_tree(folder, video_id)
    try:
        digest = hashlib.sha256(path.read_bytes())
    except OSError as error:
        raise TreeError(str(path), (f"cannot be read: {error}",)) from error
    if pictures:
        for entry in _pictures(frames_folder(folder, video_id)):
            digest.update(_picture(entry))
    return digest.digest()


def _pictures(folder: Path) -> list[Path]:
    """The pictures of a video in the order of their names; none where it has no folder."""
    try:
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError as error:
        raise TreeError(str(folder), (f"cannot be looked into: {error}",)) from error


def _picture(path: Path) -> bytes:
    digest = hashlib.sha256(os.fsencode(path.name) + b"\0")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{size}\0".encode())
            digest.update(file.read(_END))
            file.seek(max(0, size - _END))
            digest.update(file.read(_END))
    except OSError as error:
        raise TreeError(str(path), (f"cannot be read: {error}",)) from error
    return digest.digest()
