"""A real socket: what may be wished, by whom it is said to be, and what is left of it."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.llm.pace import Pace
from actors.monitor.client import NoRun, ask_run
from actors.monitor.control import Controller, listening
from actors.monitor.wishes import NAME, POINTER, Reply, Wish, read_wish, socket_of

pytestmark = pytest.mark.anyio


class House:
    """What can be stopped."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    @property
    def draining(self) -> bool:
        return bool(self.reasons)

    def request_stop(self, reason: str) -> None:
        self.reasons.append(reason)


class Scene:
    """A controller with all that it steers, and somebody who speaks to it."""

    def __init__(self, workspace: Path) -> None:
        workspace.mkdir(parents=True, exist_ok=True)
        self.workspace = workspace
        self.house = House()
        self.pace = Pace()
        self.controller = Controller(self.house, self.pace, ("a", "b"), self.status, "trm resume")

    async def status(self) -> dict[str, object]:
        return {"run_id": "r", "paused_by": self.pace.paused_by or ""}

    async def say(self, wish: Wish) -> Reply:
        return await anyio.to_thread.run_sync(ask_run, self.workspace, wish)


def _files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@asynccontextmanager
async def _scene(workspace: Path) -> AsyncIterator[Scene]:
    scene = Scene(workspace)
    async with listening(workspace, scene.controller) as path:
        assert path is not None
        yield scene


async def test_pause_and_resume_say_who_and_what_next(tmp_path: Path) -> None:
    async with _scene(tmp_path) as scene:
        with capture_logs() as logs:
            reply = await scene.say(Wish(do="pause"))
            again = await scene.say(Wish(do="pause"))
            gone_on = await scene.say(Wish(do="resume"))
            idle = await scene.say(Wish(do="resume"))
        assert (reply.ok, reply.line) == (True, "paused; go on with: trm resume")
        assert f"(process {os.getpid()})" in str(reply.status["paused_by"])
        assert "already" in again.line
        assert (gone_on.line, gone_on.status["paused_by"]) == ("goes on", "")
        assert idle.line == "it was not paused"
    assert [event["event"] for event in logs] == ["control.paused", "control.resumed"]
    assert "trm resume" in logs[0]["next"]
    assert f"process {os.getpid()}" in logs[0]["by"]


async def test_stop_drains_and_stop_now_does_not_wait(tmp_path: Path) -> None:
    """One signal's worth, and two."""
    async with _scene(tmp_path / "one") as scene:
        await scene.say(Wish(do="stop"))
        assert len(scene.house.reasons) == 1
        assert "already" in (await scene.say(Wish(do="stop"))).line
        assert len(scene.house.reasons) == 1
        await scene.say(Wish(do="stop-now"))
        assert len(scene.house.reasons) == 2
    async with _scene(tmp_path / "two") as scene:
        await scene.say(Wish(do="stop-now"))
        assert len(scene.house.reasons) == 2


async def test_another_ceiling_for_all_or_one(tmp_path: Path) -> None:
    async with _scene(tmp_path) as scene:
        assert (await scene.say(Wish(do="concurrency", value=7))).ok
        assert (await scene.say(Wish(do="concurrency", value=3, endpoint="b"))).ok
        assert dict(scene.pace.ceilings) == {"a": 7, "b": 3}
        refused = await scene.say(Wish(do="concurrency", value=3, endpoint="c"))
        assert (refused.ok, refused.line) == (False, "no endpoint 'c'; there are a, b")
        assert not (await scene.say(Wish(do="concurrency", value=0))).ok
        assert (await scene.say(Wish(do="status"))).ok


async def test_only_the_owner_may_speak_and_nothing_is_left(tmp_path: Path) -> None:
    """Mode 0600 while it listens; afterwards there is no socket, and asking says so."""
    async with _scene(tmp_path) as scene:
        mode = (tmp_path / NAME).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert (await scene.say(Wish(do="status"))).ok
    assert _files(tmp_path) == []
    with pytest.raises(NoRun, match="no run is listening"):
        ask_run(tmp_path, Wish(do="status"))


async def test_a_path_that_is_too_long_is_named_by_a_file(tmp_path: Path) -> None:
    """The socket lies elsewhere, in a folder that only its owner may enter."""
    deep = tmp_path / ("long" * 15) / ("name" * 15)
    async with _scene(deep) as scene:
        path = socket_of(deep)
        assert path is not None
        assert path.parent != deep
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        pointer = (deep / POINTER).read_text(encoding="utf-8")
        assert pointer.splitlines() == [str(path), str(deep.resolve())]
        copied = tmp_path / "copy"
        copied.mkdir()
        (copied / POINTER).write_text(pointer, encoding="utf-8")
        assert socket_of(copied) is None  # a copy must not steer, nor sweep away, the original's
        assert (await scene.say(Wish(do="status"))).ok
    assert _files(deep) == []
    assert not path.parent.exists()


async def test_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    """A socket that nobody listens on is told apart from none, and taken over by the next run."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / NAME))
    with pytest.raises(NoRun, match="is gone"):
        ask_run(tmp_path, Wish(do="status"))
    async with _scene(tmp_path) as scene:
        assert (await scene.say(Wish(do="status"))).ok


async def test_nonsense_costs_nobody_else(tmp_path: Path) -> None:
    """Garbage is answered, silence and endless lines are cut off, and the next is served."""
    async with _scene(tmp_path) as scene:
        for garbage in (b"no json\n", b'{"do": "fly"}\n', b'{"do": "pause", "x": 1}\n', b"\xff\n"):
            async with await anyio.connect_unix(tmp_path / NAME) as stream:
                await stream.send(garbage)
                assert b'"ok":false' in await stream.receive()
        async with await anyio.connect_unix(tmp_path / NAME) as stream:
            await stream.send(b"x" * 10_000)
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
        async with await anyio.connect_unix(tmp_path / NAME):
            assert (await scene.say(Wish(do="status"))).ok
        assert (await scene.say(Wish(do="status"))).ok  # it has seen the silent one go
    assert scene.pace.paused_by is None


async def test_a_run_without_a_socket_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To be steered is a comfort: where no socket can be made the log says so."""

    async def refuse(*_: object, **__: object) -> None:
        raise OSError("no sockets here")

    monkeypatch.setattr(anyio, "create_unix_listener", refuse)
    scene = Scene(tmp_path)
    with capture_logs() as logs:
        async with listening(tmp_path, scene.controller) as path:
            assert path is None
    assert [event["event"] for event in logs] == ["control.unavailable"]


def test_a_wish_is_read_or_refused_in_words() -> None:
    assert read_wish(b'{"do":"concurrency","value":4}') == Wish(do="concurrency", value=4)
    assert "at least 1" in str(read_wish(b'{"do":"concurrency"}'))
    assert "cannot be read" in str(read_wish(b"{"))
