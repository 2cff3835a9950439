"""Waits for many sockets at the price of one.

Waiting for a socket costs the loop two changes of its list, before and after, whatever comes:
for a stream that is more than reading and decoding the event. Here every socket is entered once
into an epoll of our own, and of all tasks that wait one, the leader, waits for that epoll; it
wakes those whose sockets have become readable. Whoever leaves while others wait appoints the next
leader. Where there is no epoll (not Linux), every task waits for its own socket.
"""

from __future__ import annotations

import select
import socket
import sys

import anyio

__all__ = ["Place", "Poller"]


class Place:
    """A socket under watch. ready: reading may find something. ended: the peer will send no more.

    closed: nobody waits for it any more.
    """

    __slots__ = ("closed", "ended", "ready", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.ready = False
        self.ended = False
        self.closed = False

    def drained(self) -> None:
        """Reading found less than it asked for: what comes next will be reported.

        Not so an end that was reported along with the last bytes.
        """
        self.ready = self.ended


class Poller:
    """The sockets of one client, in one event loop.

    shared: wait for all of them together, which needs epoll.

    Invariant: while any task waits here, one of them is the leader or has been appointed.
    """

    def __init__(self, *, shared: bool = sys.platform == "linux") -> None:
        self._epoll = select.epoll() if shared else None
        self._places: dict[int, Place] = {}
        self._waiting: dict[int, anyio.Event] = {}
        self._leader: Place | None = None
        self._heir: anyio.Event | None = None

    def enter(self, sock: socket.socket) -> Place:
        """Poller a socket from now on."""
        place = Place(sock)
        self._places[sock.fileno()] = place
        if self._epoll is not None:
            # edges, not levels: a socket that nobody reads at the moment must not wake the leader
            self._epoll.register(sock, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
        return place

    def leave(self, place: Place) -> None:
        """Before the socket is closed. A task that waits for it returns."""
        place.closed = True
        fd = place.sock.fileno()
        del self._places[fd]
        if self._epoll is None:
            if fd in self._waiting:
                anyio.notify_closing(place.sock)
            return
        self._epoll.unregister(fd)
        if self._leader is place:
            anyio.notify_closing(self._epoll)
        elif fd in self._waiting:
            self._waiting.pop(fd).set()

    async def wait(self, place: Place) -> None:
        """Until the place is ready or closed."""
        if self._epoll is None:
            await self._wait_alone(place)
            return
        try:
            while not (place.ready or place.closed):
                if self._leader is None:
                    await self._lead(place, self._epoll)
                else:
                    await self._follow(place)
        finally:
            if self._leader is None and self._heir is None and self._waiting:
                _, self._heir = self._waiting.popitem()
                self._heir.set()

    def close(self) -> None:
        """After all sockets have left."""
        if self._epoll is not None:
            self._epoll.close()

    async def _lead(self, place: Place, epoll: select.epoll) -> None:
        self._leader = place
        try:
            await anyio.wait_readable(epoll)
        except anyio.ClosedResourceError:
            return  # the leader's own place was closed
        finally:
            self._leader = None
        for fd, what in epoll.poll(0):
            found = self._places[fd]
            found.ready = True
            found.ended = found.ended or what != select.EPOLLIN
            waker = self._waiting.pop(fd, None)
            if waker is not None:
                waker.set()

    async def _follow(self, place: Place) -> None:
        waker = anyio.Event()
        fd = place.sock.fileno()
        self._waiting[fd] = waker
        try:
            await waker.wait()
        finally:
            if self._waiting.get(fd) is waker:
                del self._waiting[fd]
            if self._heir is waker:
                self._heir = None

    async def _wait_alone(self, place: Place) -> None:
        fd = place.sock.fileno()
        self._waiting[fd] = anyio.Event()  # nobody sets it: it says that someone waits
        try:
            await anyio.wait_readable(place.sock)
            place.ready = True
        except anyio.ClosedResourceError:
            assert place.closed
        finally:
            self._waiting.pop(fd, None)
