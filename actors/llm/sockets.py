"""TCP for the chat client: dial, then bytes in and out of a plain non-blocking socket.

anyio's own streams start and stop watching their socket around every read, which on asyncio
costs more than all the rest of a streamed event; here the sockets are watched together. Closing
is not asynchronous, so that whoever is cancelled can close at once.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Sequence

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from actors.llm.poller import Poller

__all__ = ["TcpStream", "dial"]

_STAGGER_S = 0.25
"""How long an address of a name is tried before the next one is tried beside it (RFC 8305)."""

_Address = tuple[socket.AddressFamily, tuple[str | int, ...]]


class TcpStream(ByteStream):
    """A connected socket, read and written by one task at a time.

    Raises what anyio's streams raise: EndOfStream, BrokenResourceError (its cause is the OSError)
    and ClosedResourceError.
    """

    def __init__(self, sock: socket.socket, poller: Poller) -> None:
        self._sock = sock
        self._poller = poller
        self._place = poller.enter(sock)
        self._writing = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """What has come, at most ``max_bytes``; waits until something has."""
        place = self._place
        if place.ready:
            await checkpoint()  # there was more than one read takes: others have their turn
        while True:
            if not place.ready:
                await self._poller.wait(place)
            if place.closed:
                raise anyio.ClosedResourceError
            try:
                data = self._sock.recv(max_bytes)
            except BlockingIOError:
                place.ready = False
                continue
            except OSError as error:
                raise anyio.BrokenResourceError from error
            if len(data) < max_bytes:
                if not data:
                    raise anyio.EndOfStream
                place.drained()
            return data

    async def send(self, item: bytes) -> None:
        """Hand all of it to the kernel; waits only while its buffer is full."""
        rest = memoryview(item)
        while True:
            if self._place.closed:
                raise anyio.ClosedResourceError
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                pass
            except OSError as error:
                raise anyio.BrokenResourceError from error
            if not rest:
                return
            self._writing = True
            try:
                await anyio.wait_writable(self._sock)
            finally:
                self._writing = False

    @property
    def closed(self) -> bool:
        """``close`` was called."""
        return self._place.closed

    @property
    def quiet(self) -> bool:
        """Open, and nothing to read: neither an end nor bytes that nobody asked for."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close at once; a task that reads or writes gets ClosedResourceError."""
        if self._place.closed:
            return
        self._poller.leave(self._place)
        if self._writing:
            anyio.notify_closing(self._sock)
        self._sock.close()

    async def aclose(self) -> None:
        """Close at once."""
        self.close()

    async def send_eof(self) -> None:
        """Not needed by a client."""
        raise NotImplementedError


async def dial(host: str, port: int) -> socket.socket:
    """Connect to the first address of ``host`` that answers. Raises OSError."""
    addresses = await _resolved(host, port)
    if len(addresses) == 1:
        return await _connected(*addresses[0])
    return await _first(addresses)


async def _resolved(host: str, port: int) -> Sequence[_Address]:
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys((family, address) for family, _, _, _, address in found))
    family = socket.AF_INET if literal.version == 4 else socket.AF_INET6
    return [(family, (str(literal), port))]


async def _connected(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        failed = sock.connect_ex(address)
        if failed in (errno.EINPROGRESS, errno.EWOULDBLOCK):
            await anyio.wait_writable(sock)
            failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
    except BaseException:
        sock.close()
        raise
    return sock


async def _first(addresses: Sequence[_Address]) -> socket.socket:
    """The first to connect; each gets a head start over the next, unless it fails before."""
    winners: list[socket.socket] = []
    errors: list[OSError] = []

    async def attempt(address: _Address, over: anyio.Event) -> None:
        try:
            sock = await _connected(*address)
        except OSError as error:
            errors.append(error)
        else:
            if winners:
                sock.close()  # a tie
            else:
                winners.append(sock)
                tasks.cancel_scope.cancel()
        finally:
            over.set()

    try:
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                over = anyio.Event()
                tasks.start_soon(attempt, address, over)
                with anyio.move_on_after(_STAGGER_S):
                    await over.wait()
    except BaseException:
        for sock in winners:
            sock.close()
        raise
    if not winners:
        raise OSError("; ".join(str(error) for error in errors))
    return winners[0]
