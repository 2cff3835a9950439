"""Speaks to a run through its socket: one wish, one reply. Synchronous, for commands."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from actors.monitor.wishes import Reply, Wish, fits, socket_of

__all__ = ["NoRun", "ask_run"]

_MOST_BYTES = 4 << 20


class NoRun(Exception):
    """Nobody answers in that workspace; the message says why, in words."""


def ask_run(workspace: Path, wish: Wish, *, timeout_s: float = 10.0) -> Reply:
    """Say a wish to whoever runs in a workspace.

    Raises NoRun if nobody does, or does not answer in time.
    """
    path = socket_of(workspace)
    if path is None:
        raise NoRun("no run is listening there (bin/trm status says how it stands)")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to_run:
            to_run.settimeout(timeout_s)
            to_run.connect(_reachable(path))
            to_run.sendall(msgspec.json.encode(wish) + b"\n")
            return msgspec.json.decode(_line(to_run), type=Reply)
    except (ConnectionRefusedError, FileNotFoundError) as error:
        raise NoRun("the run that listened there is gone (bin/trm status says more)") from error
    except PermissionError as error:
        raise NoRun("only the account that runs it may speak to it") from error
    except TimeoutError as error:
        raise NoRun(f"the run does not answer within {timeout_s:g} s") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise NoRun(f"the run cannot be spoken to: {error}") from error


def _reachable(path: Path) -> str:
    """The shortest name of it: what was made under a short path may be seen by a long one."""
    if fits(path):
        return str(path)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _line(to_run: socket.socket) -> bytes:
    heard = b""
    while not heard.endswith(b"\n"):
        part = to_run.recv(65_536)
        if not part:
            raise ConnectionResetError("the connection was closed before the reply")
        heard += part
        if len(heard) > _MOST_BYTES:
            raise ConnectionResetError("the reply has no end")
    return heard
