"""Many tasks wait for their sockets through one of them, and none is forgotten."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from actors.llm.poller import Poller

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.parametrize(
        "shared",
        [
            pytest.param(
                True, marks=pytest.mark.skipif(sys.platform != "linux", reason="needs epoll")
            ),
            False,
        ],
        ids=["together", "alone"],
    ),
]


class Line:
    """A socket under watch, and its other end."""

    def __init__(self, poller: Poller) -> None:
        self.sock, self.far = socket.socketpair()
        self.sock.setblocking(False)
        self.place = poller.enter(self.sock)
        self.scope = anyio.CancelScope()
        self.heard = b""
        self.left = anyio.Event()
        self._news = anyio.Event()

    async def expect(self, heard: bytes) -> None:
        """Wait until exactly that has been heard."""
        with anyio.fail_after(5):
            while len(self.heard) < len(heard):
                await self._news.wait()
        assert self.heard == heard

    async def listen(self, poller: Poller) -> None:
        """Read until the end, as ``TcpStream`` does."""
        try:
            await self._listen(poller)
        finally:
            self.left.set()

    async def _listen(self, poller: Poller) -> None:
        with self.scope:
            while not self.place.closed:
                await poller.wait(self.place)
                if self.place.closed:
                    return
                try:
                    data = self.sock.recv(4)
                except BlockingIOError:
                    self.place.ready = False
                    continue
                if not data:
                    return
                if len(data) < 4:
                    self.place.drained()
                self.heard += data
                self._news.set()
                self._news = anyio.Event()


@contextmanager
def lines(poller: Poller, count: int) -> Iterator[list[Line]]:
    made = [Line(poller) for _ in range(count)]
    try:
        yield made
    finally:
        for line in made:
            if not line.place.closed:
                poller.leave(line.place)
            line.sock.close()
            line.far.close()
        poller.close()


async def test_everyone_hears_his_own(shared: bool) -> None:
    """In any order, one at a time and all at once."""
    poller = Poller(shared=shared)
    with lines(poller, 6) as made:
        async with anyio.create_task_group() as tasks:
            for line in made:
                tasks.start_soon(line.listen, poller)
            await anyio.wait_all_tasks_blocked()
            for turn in range(4):
                for line in made[:: 1 if turn % 2 else -1]:
                    line.far.send(b"%d" % turn)
                    if turn < 2:
                        await line.expect(b"0123"[: turn + 1])
                for line in made:
                    await line.expect(b"0123"[: turn + 1])
            for line in made:
                line.far.send(b"long enough for several reads")
                line.far.close()
        for line in made:
            await line.expect(b"0123long enough for several reads")


@pytest.mark.parametrize("leaver", range(4))
@pytest.mark.parametrize("how", ["cancelled", "served", "closed"])
async def test_whoever_leaves_is_replaced(shared: bool, how: str, leaver: int) -> None:
    """The leader or another, cancelled, done or closed: the rest still hear."""
    poller = Poller(shared=shared)
    with lines(poller, 4) as made:
        gone = made[leaver]
        async with anyio.create_task_group() as tasks:
            for line in made:
                tasks.start_soon(line.listen, poller)
            await anyio.wait_all_tasks_blocked()
            if how == "cancelled":
                gone.scope.cancel()
            elif how == "served":
                gone.far.close()
            else:
                poller.leave(gone.place)
                gone.far.send(b"too late")
            with anyio.fail_after(5):
                await gone.left.wait()
            for line in made:
                if line is not gone:
                    line.far.send(b"x")
                    await line.expect(b"x")
                    line.far.close()


async def test_the_whole_line_of_succession_leaves_at_once(shared: bool) -> None:
    """The leader is cancelled, and so is whoever was just appointed."""
    poller = Poller(shared=shared)
    with lines(poller, 8) as made:
        async with anyio.create_task_group() as tasks:
            for line in made:
                tasks.start_soon(line.listen, poller)
            for leavers in (made[:3], made[6:], made[4:5]):
                await anyio.wait_all_tasks_blocked()
                for line in leavers:
                    line.scope.cancel()
            made[3].far.send(b"x")
            await made[3].expect(b"x")
            made[3].far.close()
            made[5].far.send(b"y")
            await made[5].expect(b"y")
            made[5].far.close()


async def test_an_end_that_came_with_the_last_bytes(shared: bool) -> None:
    """It is not reported twice: the place stays ready until it was read."""
    poller = Poller(shared=shared)
    with lines(poller, 1) as (line,):
        line.far.send(b"abc")
        line.far.close()
        with anyio.fail_after(5):
            await line.listen(poller)
        assert line.heard == b"abc"


async def test_a_number_that_is_used_again(shared: bool) -> None:
    """A new socket with the number of a closed one is watched for itself."""
    poller = Poller(shared=shared)
    with lines(poller, 1) as (line,):
        number = line.sock.fileno()
        poller.leave(line.place)
        line.sock.close()
        line.far.close()
        with lines(poller, 1) as (other,):
            assert other.sock.fileno() == number
            other.far.send(b"x")
            other.far.close()
            with anyio.fail_after(5):
                await other.listen(poller)
            assert other.heard == b"x"
