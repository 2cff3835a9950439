"""A tree's nodes as vectors: which texts are embedded, the file that keeps them, the ranking.

An index file holds the vectors of one video by one model. It is a cache: a file that is
missing, cut off, damaged or made from another tree or with other settings is made anew, and
one that cannot be written costs the next run its embedding calls and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from protocol.settings import EmbeddingSettings

__all__ = [
    "Matrix",
    "NodeVectors",
    "Passages",
    "index_path",
    "passages_key",
    "passages_of",
    "read_index",
    "stacked",
    "write_index",
]

Matrix: TypeAlias = NDArray[np.float32]
_FORMAT = 1
_OVERLAP = 5  # neighbouring parts share a fifth of their characters
_DIGITS = 5  # differences below this are rounding, that is ties
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Passages(msgspec.Struct, frozen=True):
    """Texts to embed. owners: the position of the node that each one belongs to."""

    texts: tuple[str, ...]
    owners: tuple[int, ...]


class NodeVectors:
    """Unit vectors of passages, and whose they are."""

    def __init__(self, matrix: Matrix, owners: Sequence[int], node_ids: Sequence[str]) -> None:
        self._matrix = matrix
        self._owners = tuple(owners)
        self._node_ids = tuple(node_ids)

    @property
    def dimension(self) -> int:
        """Numbers per vector; 0 if there is no passage."""
        return int(self._matrix.shape[1])

    def ranked(self, query: bytes) -> list[int]:
        """All nodes that have a text, the nearest first; a node is as near as its nearest part.

        Raises ValueError if the query's vector has another dimension.
        """
        if not self._owners:
            return []
        wanted = np.frombuffer(query, dtype="<f4")
        if wanted.shape[0] != self.dimension:
            raise ValueError(
                f"the query has {wanted.shape[0]} dimensions, the index {self.dimension}"
            )
        best: dict[int, float] = {}
        for owner, score in zip(self._owners, (self._matrix @ wanted).tolist(), strict=True):
            best[owner] = max(best.get(owner, -2.0), round(score, _DIGITS))
        return sorted(best, key=lambda owner: (-best[owner], self._node_ids[owner]))


def passages_of(texts: Sequence[str], chunk_chars: int) -> Passages:
    """What to embed of each node's text; a long one in overlapping parts, a blank one not."""
    found = [
        (part, owner) for owner, text in enumerate(texts) for part in _parts(text, chunk_chars)
    ]
    return Passages(tuple(part for part, _ in found), tuple(owner for _, owner in found))


def _parts(text: str, chunk_chars: int) -> list[str]:
    text = text.strip()
    if len(text) <= chunk_chars:
        return [text] if text else []
    stride = chunk_chars - chunk_chars // _OVERLAP
    starts = range(0, len(text) - chunk_chars + stride, stride)
    return [part for start in starts if (part := text[start : start + chunk_chars].strip())]


def passages_key(passages: Passages, settings: EmbeddingSettings) -> str:
    """A hash of everything that the vectors follow from."""
    made_of = (_FORMAT, settings.model, settings.document_prefix, passages.texts)
    return hashlib.sha256(msgspec.msgpack.encode(made_of)).hexdigest()


def index_path(folder: Path, settings: EmbeddingSettings, video_id: str, key: str) -> Path:
    """A folder per model, in it a file per video and content."""
    model = settings.model or ""
    name = _UNSAFE.sub("-", Path(model).name)[:60]
    model_key = hashlib.sha256(model.encode()).hexdigest()[:8]
    return folder / f"{name}-{model_key}" / f"{video_id}.{key[:16]}.vectors"


def stacked(vectors: Sequence[bytes]) -> Matrix:
    """One matrix, a row per vector. Raises ValueError if their sizes differ."""
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("vectors of different dimensions for one video")
    rows = len(vectors)
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(rows, -1 if rows else 0)


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    rows: int
    dimension: int
    sha256: str


def read_index(path: Path, key: str, rows: int) -> Matrix | None:
    """The vectors; None: there is no whole file of that content. Blocking, never raises."""
    try:
        head, _, data = path.read_bytes().partition(b"\n")
        header = msgspec.json.decode(head, type=_Header)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    told = (header.key, header.rows, header.sha256)
    if told != (key, rows, hashlib.sha256(data).hexdigest()):
        return None
    if len(data) != 4 * header.rows * header.dimension:
        return None
    return np.frombuffer(data, dtype="<f4").reshape(header.rows, header.dimension)


def write_index(path: Path, key: str, matrix: NDArray[Any]) -> None:
    """Put the file in its place, whole. Blocking. Raises OSError.

    Not synced to disk: after a power cut the checksum tells, and the file is made anew.
    """
    data = np.ascontiguousarray(matrix, dtype="<f4").tobytes()
    rows, dimension = matrix.shape
    header = _Header(key, rows, dimension, hashlib.sha256(data).hexdigest())
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # one writer per process and video
    try:
        aside.write_bytes(msgspec.json.encode(header) + b"\n" + data)
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
