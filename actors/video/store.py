"""The tree files on disk: one video, one file, and a folder of frames if it has pictures.

    <trees>/<video_id>.json             or <trees>/<video_id>/tree.json
    <trees>/<video_id>/frames/L3_000.jpg

Only reads, and never leaves the folder that it was given, whatever a video id looks like.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path

from actors.video.search import SearchableTree
from actors.video.tree import TreeError, parse_tree

__all__ = ["TreeCache", "find_tree", "frames_folder", "is_video_id", "read_tree"]

# Video ids come from questions. YouTube's begin with "-" or "_" too; none holds a slash,
# and a leading dot is refused so that no id can name the folder or the one above it.
_VIDEO_ID = re.compile(r"[\w-][\w.-]{0,199}")


def is_video_id(text: str) -> bool:
    """Whether a tree of that id can be found."""
    return _VIDEO_ID.fullmatch(text) is not None


def find_tree(folder: Path, video_id: str) -> Path:
    """The file of a video: ``<video_id>.json``, else ``<video_id>/tree.json``.

    Raises TreeError when the id is not one or neither file exists.
    """
    if not is_video_id(video_id):
        raise TreeError(f"video {video_id!a}", ("not a usable video id",))
    candidates = (folder / f"{video_id}.json", folder / video_id / "tree.json")
    try:
        for path in candidates:
            if path.is_file():
                return path
    except OSError as error:  # a name that is too long for the file system, a folder not to be read
        raise TreeError(f"video {video_id}", (f"cannot be looked for: {error}",)) from error
    places = " or ".join(str(path) for path in candidates)
    raise TreeError(f"video {video_id}", (f"no tree file at {places}",))


def frames_folder(folder: Path, video_id: str) -> Path:
    """Where the pictures of a video are, if it has any: the same place in both layouts.

    Beside a lone ``<video_id>.json`` a folder ``frames`` would be that of all videos.
    """
    return folder / video_id / "frames"


def read_tree(folder: Path, video_id: str) -> SearchableTree:
    """Find, read and check a tree. Blocking. Raises TreeError, also when reading fails."""
    path = find_tree(folder, video_id)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TreeError(str(path), (f"cannot be read: {error}",)) from error
    return SearchableTree(parse_tree(raw, str(path)))


class TreeCache:
    """The most recently used trees. Not thread-safe: touched from the event loop only.

    A tree that cannot be read is not kept, so that a repaired file is seen.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._trees: OrderedDict[str, SearchableTree] = OrderedDict()

    def __len__(self) -> int:
        return len(self._trees)

    def get(self, video_id: str) -> SearchableTree | None:
        """The tree, which becomes the most recent one; None: not kept."""
        tree = self._trees.get(video_id)
        if tree is not None:
            self._trees.move_to_end(video_id)
        return tree

    def put(self, video_id: str, tree: SearchableTree) -> None:
        """Keep a tree; the least recently used one goes when there are too many."""
        self._trees[video_id] = tree
        self._trees.move_to_end(video_id)
        while len(self._trees) > self._size:
            self._trees.popitem(last=False)
