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
    # The protocol is named because accepted sockets inherit it, and asyncio turns Nagle's
    # algorithm off only where it reads TCP: without that, every streamed reply waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_LOOPBACK, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def base_url_of(listener: socket.socket) -> str:
    """``http://127.0.0.1:PORT/v1``."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}/v1"
