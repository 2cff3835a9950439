"""Pictures of key frames: which ones, where their files are, how they are sent.

``<trees>/<video_id>/frames/L3_000.jpg`` (``.png`` and ``.webp`` too) is the picture of the node
``<videoID>_L3_000``. Files are only read. Whatever is wrong with one is a ``FrameError``: a
decoder that meets damaged bytes may raise anything, and none of it may end more than the
question that asked.
"""

from __future__ import annotations

import base64
import io
import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PIL import Image, ImageOps

from actors.video.tree import Node, Tree

__all__ = [
    "SUFFIXES",
    "FrameError",
    "FrameFile",
    "PictureCache",
    "choose_frames",
    "encode_frame",
    "find_frames",
]

MOST_FRAMES = 4
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
_FORMATS = ("JPEG", "PNG", "WEBP")
_NAME = re.compile(r"[\w-][\w.-]{0,199}")  # as video ids: no name leaves the folder
_MOST_PIXELS = 64_000_000  # twice an 8k frame; more is no key frame but an attack on the memory


class FrameError(ValueError):
    """A frame that cannot be shown; the message names its file."""


class FrameFile(msgspec.Struct, frozen=True):
    """A file as it is now: another time or size is another picture."""

    path: str
    modified_ns: int
    size: int


def choose_frames(tree: Tree, node_ids: Sequence[str]) -> tuple[Node, ...] | str:
    """The key frames that are meant, in time order; a text: why the request is refused."""
    wanted = list(dict.fromkeys(node_ids))
    if not wanted:
        return "Give the ids of one to four key frames (level 3), or of one event (level 2)."
    unknown = [node_id for node_id in wanted if node_id not in tree.nodes]
    if unknown:
        return (
            f"There is no node {unknown[0]!r} in this video. Use ids that were shown to you; "
            f"the top level is: {', '.join(tree.roots)}."
        )
    nodes = [tree.nodes[node_id] for node_id in wanted]
    scenes = [node.node_id for node in nodes if node.level == 1]
    if scenes:
        return f"{scenes[0]} is a scene (level 1). View it, then ask for one of its events."
    events = [node for node in nodes if node.level == 2]
    if events and len(nodes) > 1:
        return "Give either key frames (level 3, one to four) or exactly one event (level 2)."
    if events:
        frames = _key_frames(tree, events[0])
        return frames or f"The event {events[0].node_id} has no key frames."
    if len(nodes) > MOST_FRAMES:
        return f"At most {MOST_FRAMES} key frames at a time, not {len(nodes)}."
    return tuple(sorted(nodes, key=lambda node: (node.start_s, node.node_id)))


def _key_frames(tree: Tree, event: Node) -> tuple[Node, ...]:
    """At most four of an event's key frames: the first, the last, and evenly between."""
    children = (tree.nodes[child] for child in event.children)
    frames = sorted(children, key=lambda node: (node.start_s, node.node_id))
    if len(frames) <= MOST_FRAMES:
        return tuple(frames)
    last = len(frames) - 1
    return tuple(frames[round(place * last / (MOST_FRAMES - 1))] for place in range(MOST_FRAMES))


def find_frames(folder: Path, tree: Tree, nodes: Sequence[Node]) -> tuple[FrameFile, ...] | None:
    """The files of key frames; None: the video has no folder of frames. Blocking.

    Raises FrameError if the folder is there and a file is not, or nothing can be seen.
    """
    try:
        if not folder.is_dir():
            return None
    except OSError as error:  # may not be looked into
        raise FrameError(f"{folder}: {error}") from error
    return tuple(_file_of(folder, tree, node) for node in nodes)


def _file_of(folder: Path, tree: Tree, node: Node) -> FrameFile:
    name = node.node_id.removeprefix(f"{tree.video_id}_")
    if not _NAME.fullmatch(name):
        raise FrameError(f"node {node.node_id!a} names no file of frames")
    for suffix in SUFFIXES:
        path = folder / f"{name}{suffix}"
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise FrameError(f"{path}: cannot be read: {error}") from error
        return FrameFile(str(path), status.st_mtime_ns, status.st_size)
    raise FrameError(f"{folder / name}.jpg: no such file (nor {', '.join(SUFFIXES[1:])})")


def encode_frame(file: FrameFile, longest_px: int, quality: int) -> str:
    """The picture as a JPEG data URL, scaled down to a longest side. Blocking.

    Raises FrameError naming the file.
    """
    try:
        with Image.open(file.path, formats=_FORMATS) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise FrameError(f"{file.path}: {image.width}x{image.height} is no key frame")
            if image.format == "JPEG":  # decodes at a fraction of the size where that is enough
                image.draft("RGB", (longest_px, longest_px))
            upright = _opaque(ImageOps.exif_transpose(image))
            upright.thumbnail((longest_px, longest_px), Image.Resampling.LANCZOS)
            buffer = io.BytesIO()
            upright.save(buffer, "JPEG", quality=quality)
    except FrameError:
        raise
    except Exception as error:  # decoders raise anything on damaged bytes
        raise FrameError(f"{file.path}: no readable picture: {error!r}") from error
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _opaque(image: Image.Image) -> Image.Image:
    """In RGB; what was transparent is white."""
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    ground = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(ground, layer).convert("RGB")


class PictureCache:
    """The most recently used pictures, bounded by bytes. Touched from the event loop only."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._urls: OrderedDict[FrameFile, str] = OrderedDict()

    @property
    def bytes(self) -> int:
        """What the kept data URLs take, in ASCII characters."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._urls)

    def get(self, file: FrameFile) -> str | None:
        """The data URL, which becomes the most recent one; None: not kept."""
        url = self._urls.get(file)
        if url is not None:
            self._urls.move_to_end(file)
        return url

    def put(self, file: FrameFile, url: str) -> None:
        """Keep a picture; the least recently used ones go. One that alone is too large is not."""
        if len(url) > self._most:
            return
        self._bytes += len(url) - len(self._urls.pop(file, ""))
        self._urls[file] = url
        while self._bytes > self._most:
            _, gone = self._urls.popitem(last=False)
            self._bytes -= len(gone)
