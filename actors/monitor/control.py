"""The run's ear: a Unix socket in its workspace that only its owner may speak to.

    pause         no new call begins; what is in flight finishes
    resume        go on
    stop          finish what is in hand, then stop, resumable (as SIGTERM does)
    stop-now      stop at once, resumable too
    concurrency   another ceiling of requests in flight, of one endpoint or of all
    status        how everything stands

Everything that changes the run leaves a line in the log that names who asked. A run whose socket
cannot be made says so and goes on: to be steered is a comfort.
"""

from __future__ import annotations

import pwd
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.monitor.beside import beside
from actors.monitor.wishes import NAME, POINTER, Reply, Wish, fits, read_wish, socket_of

__all__ = ["Controller", "Steered", "Throttle", "listening"]

_LINE_BYTES = 4096
_PATIENCE_S = 10.0
_FOLDER = "trm-control-"

log = structlog.get_logger("control")


class Steered(Protocol):
    """The system, as far as it can be stopped."""

    @property
    def draining(self) -> bool:
        """It stops already."""
        ...

    def request_stop(self, reason: str) -> None:
        """Drain; the second time: stop at once."""
        ...


class Throttle(Protocol):
    """The chat client's ``Pace``."""

    @property
    def paused_by(self) -> str | None: ...

    def pause(self, by: str) -> bool: ...

    def resume(self) -> bool: ...

    def allow(self, endpoint: str, ceiling: int) -> None: ...


class Controller:
    """Does what is wished.

    endpoints: their names. status: how everything stands. resume: the command that ends a pause.
    """

    def __init__(
        self,
        system: Steered,
        pace: Throttle,
        endpoints: Sequence[str],
        status: Callable[[], Awaitable[dict[str, object]]],
        resume: str,
    ) -> None:
        self._system = system
        self._pace = pace
        self._endpoints = tuple(endpoints)
        self._status = status
        self._resume = resume

    async def obey(self, wish: Wish, by: str) -> Reply:
        """One wish; ``by``: whose, in words."""
        ok, line = self._do(wish, by)
        return Reply(ok=ok, line=line, status=await self._status())

    def _do(self, wish: Wish, by: str) -> tuple[bool, str]:
        match wish.do:
            case "pause":
                return self._pause(by)
            case "resume":
                if not self._pace.resume():
                    return True, "it was not paused"
                log.info("control.resumed", by=by, next="the calls that waited are sent")
                return True, "goes on"
            case "stop" | "stop-now":
                return self._stop(by, at_once=wish.do == "stop-now")
            case "concurrency":
                return self._allow(wish, by)
        return True, "status"

    def _pause(self, by: str) -> tuple[bool, str]:
        if not self._pace.pause(by):
            return True, f"it is paused already, by {self._pace.paused_by}"
        log.warning(
            "control.paused",
            by=by,
            next=f"no new call begins, what is in flight finishes; go on with: {self._resume}",
        )
        return True, f"paused; go on with: {self._resume}"

    def _stop(self, by: str, *, at_once: bool) -> tuple[bool, str]:
        how = "at once" if at_once else "in order"
        log.warning("control.stop", by=by, how=how, next="resumable with --resume")
        if not self._system.draining:
            self._system.request_stop(f"stop asked for by {by}")
        elif not at_once:
            return True, "it is stopping already"
        if at_once:
            self._system.request_stop(f"stop at once asked for by {by}")
        return True, f"stops {how}; what is finished is kept"

    def _allow(self, wish: Wish, by: str) -> tuple[bool, str]:
        assert wish.value is not None, "read_wish refuses it"
        if wish.endpoint is not None and wish.endpoint not in self._endpoints:
            return False, f"no endpoint {wish.endpoint!r}; there are {', '.join(self._endpoints)}"
        names = self._endpoints if wish.endpoint is None else (wish.endpoint,)
        for name in names:
            self._pace.allow(name, wish.value)
        log.info(
            "control.concurrency",
            by=by,
            endpoints=list(names),
            ceiling=wish.value,
            next="a lower one holds at once, a higher one is grown into; a resumed run has its own",
        )
        return True, f"at most {wish.value} requests in flight at {', '.join(names)}"


@asynccontextmanager
async def listening(workspace: Path, controller: Controller) -> AsyncIterator[Path | None]:
    """Listen while the block runs; yields the socket's path, None if there is none.

    Only the workspace's lock holder may call this: what lies at the socket's place is stale.
    """
    opened = await _open(workspace)
    if opened is None:
        yield None
        return
    path, listener = opened

    async def serve(stream: SocketStream) -> None:
        await _serve(stream, controller)

    async def accept() -> None:
        await listener.serve(serve)

    try:
        async with listener, beside(accept):
            yield path
    finally:
        _remove(path, workspace)


async def _open(workspace: Path) -> tuple[Path, SocketListener] | None:
    """A listening socket in the workspace or, where it cannot lie there, in a folder of its own.

    It cannot where the path is too long, or the file system has no sockets.
    """
    _sweep(workspace)
    own = workspace / NAME
    why = "the path is too long" if not fits(own) else ""
    if not why:
        try:
            return own, await anyio.create_unix_listener(own, mode=0o600)
        except OSError as error:
            why = str(error)
            with suppress(OSError):
                own.unlink()
    try:
        path = Path(tempfile.mkdtemp(prefix=_FOLDER)) / NAME  # a folder that only we may enter
        listener = await anyio.create_unix_listener(path, mode=0o600)
        _point(workspace, path)
    except OSError as error:
        log.warning(
            "control.unavailable",
            why=f"{why}; {error}",
            effect="bin/trm control cannot reach this run; signals do",
        )
        return None
    return path, listener


def _point(workspace: Path, path: Path) -> None:
    """Say where the socket is, and whose: a copy of the workspace must not take it for its own."""
    (workspace / POINTER).write_text(f"{path}\n{workspace.resolve()}\n", encoding="utf-8")


def _sweep(workspace: Path) -> None:
    """Take away what a killed run left: we hold the workspace's lock, so nobody listens there."""
    found = socket_of(workspace)
    if found is not None:
        _remove(found, workspace)


def _remove(path: Path, workspace: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        (workspace / POINTER).unlink(missing_ok=True)
    if path.parent != workspace and path.parent.name.startswith(_FOLDER):
        with suppress(OSError):
            path.parent.rmdir()


async def _serve(stream: SocketStream, controller: Controller) -> None:
    """One wish, one reply. Whoever goes away, says nothing or talks nonsense costs nobody else."""
    with anyio.move_on_after(_PATIENCE_S), suppress(*_GONE):
        async with stream:
            line = await BufferedByteReceiveStream(stream).receive_until(b"\n", _LINE_BYTES)
            wish = read_wish(line)
            if isinstance(wish, Wish):
                reply = await controller.obey(wish, _who(stream))
            else:
                reply = Reply(ok=False, line=wish)
            await stream.send(msgspec.json.encode(reply, enc_hook=str) + b"\n")


_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    anyio.EndOfStream,
    anyio.IncompleteRead,
)


def _who(stream: SocketStream) -> str:
    """The account and the process at the other end, as the kernel knows them."""
    if not hasattr(socket, "SO_PEERCRED"):
        return "the owner of the workspace"
    raw = stream.extra(SocketAttribute.raw_socket)
    told = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", told)
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"user {uid}"
    return f"{name} (process {pid})"
