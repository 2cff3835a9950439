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

    __slots__ = ("closed", "ended", "ready", "sock", "waker")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.ready = False
        self.ended = False
        self.closed = False
        # of anyio's means to wake a task the only one that need not be made anew each time
        self.waker = anyio.Semaphore(0)

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
        self._waiting: dict[Place, None] = {}
        self._leader: Place | None = None
        self._heir: Place | None = None

    def enter(self, sock: socket.socket) -> Place:
        """Watch a socket from now on."""
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
            if place in self._waiting:
                anyio.notify_closing(place.sock)
            return
        self._epoll.unregister(fd)
        if self._leader is place:
            anyio.notify_closing(self._epoll)
        elif place in self._waiting:
            self._wake(place)

    async def wait(self, place: Place) -> None:
        """Until the place is ready or closed."""
        if self._epoll is None:
            await self._wait_alone(place)
            return
        try:
            while not (place.ready or place.closed):
                if self._leader is None:
                    await self._lead(place, self._epoll)
                    continue
                self._waiting[place] = None
                try:
                    await place.waker.acquire()
                finally:
                    self._waiting.pop(place, None)
                    if self._heir is place:
                        self._heir = None
        finally:
            if self._leader is None and self._heir is None and self._waiting:
                self._heir = next(reversed(self._waiting))
                self._wake(self._heir)

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
            if what != select.EPOLLIN:
                found.ended = True
            if found in self._waiting:
                self._wake(found)

    def _wake(self, place: Place) -> None:
        del self._waiting[place]
        place.waker.release()

    async def _wait_alone(self, place: Place) -> None:
        self._waiting[place] = None
        try:
            await anyio.wait_readable(place.sock)
            place.ready = True
        except anyio.ClosedResourceError:
            assert place.closed
        finally:
            del self._waiting[place]
