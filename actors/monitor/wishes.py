"""What may be said through a run's socket, and where the socket is. Pure but for ``os.stat``.

One line of JSON each way: a ``Wish`` there, a ``Reply`` back.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import msgspec

__all__ = [
    "MOST_BYTES",
    "NAME",
    "POINTER",
    "Reply",
    "Verb",
    "Wish",
    "fits",
    "read_wish",
    "socket_of",
]

NAME = "control.sock"
POINTER = "control.path"
"""Names the socket where it cannot lie in the workspace itself."""
MOST_BYTES = 100
"""Of a socket's path: the kernels take 103 to 107."""

Verb = Literal["pause", "resume", "stop", "stop-now", "status", "concurrency"]


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wanted. value, endpoint: of ``concurrency``; endpoint None: all of them."""

    do: Verb
    value: int | None = None
    endpoint: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """ok: it was done. line: what happened, or why not, in words. status: of every wish."""

    ok: bool
    line: str
    status: dict[str, object] = {}


def read_wish(line: bytes) -> Wish | str:
    """A wish, or what is wrong with it."""
    try:
        wish = msgspec.json.decode(line, type=Wish)
    except msgspec.MsgspecError as error:
        return f"cannot be read: {error}"
    if wish.do == "concurrency" and (wish.value is None or wish.value < 1):
        return "concurrency takes a number of requests, at least 1; to send none, pause"
    return wish


def fits(path: Path) -> bool:
    """Whether a socket may have that path."""
    return len(os.fsencode(path)) <= MOST_BYTES


def socket_of(workspace: Path) -> Path | None:
    """The socket of whoever runs, or ran, in a workspace; None: there is none.

    A pointer says whose it is: in a copy of a workspace it would lead to the original's run.
    """
    own = workspace / NAME
    if _is_socket(own):
        return own
    try:
        lines = (workspace / POINTER).read_text(encoding="utf-8").splitlines()
        named, whose = Path(lines[0]), Path(lines[1])
    except (OSError, UnicodeDecodeError, IndexError):
        return None
    return named if whose == workspace.resolve() and _is_socket(named) else None


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except (OSError, ValueError):
        return False
