"""The simulator's address: a listening socket on loopback and the URL that leads to it."""

from __future__ import annotations

import socket

__all__ = ["base_url_of", "bind_loopback"]

_LOOPBACK = "127.0.0.1"
_BACKLOG = 1024


def bind_loopback(port: int = 0) -> socket.socket:
    """A listening socket on 127.0.0.1, by default on a free port; the caller closes it.

    Raises OSError if the port is taken.
    """
    return socket.create_server((_LOOPBACK, port), backlog=_BACKLOG)


def base_url_of(listener: socket.socket) -> str:
    """``http://127.0.0.1:PORT/v1``."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}/v1"
