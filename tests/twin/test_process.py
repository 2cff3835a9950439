"""The child process: its life, its end, its address; and the actor around it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
import structlog
from anyio.abc import TaskGroup

from actors.config import load_config
from actors.twin.__main__ import main, parse_arguments
from actors.twin.actor import TwinActor
from actors.twin.process import TwinDied, TwinProcess, base_url_of, bind_loopback, start_twin
from protocol.settings import TwinSettings
from protocol.twin import TwinHealth
from tests.twin.conversations import DEMO, QUESTIONS, WORLD

ROOT = DEMO.parents[1]
SETTINGS = TwinSettings(
    world=str(WORLD),
    world_seed=7,
    helpful=0.45,
    useless=0.3,
    harmful=0.15,
    malformed=0.1,
    hostile=0.0,
    judge_noise=0.1,
    chunk_delay_s=0.0,
)


class Home:
    """A small ``Context``."""

    name = "twin"
    incarnation = 1
    restored: bytes | None = None
    draining = False

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self.log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("test")

    async def checkpoint(self, label: str) -> None:
        raise AssertionError("the simulator has no state")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """What the composition root owns."""
    with bind_loopback() as found:
        yield found


def twin_actor(listener: socket.socket, log_path: Path, world: Path = WORLD) -> TwinActor:
    return TwinActor(
        SETTINGS, world=world, questions=QUESTIONS, listener=listener, log_path=log_path
    )


async def child_of(listener: socket.socket, log_path: Path) -> TwinProcess:
    return await start_twin(
        SETTINGS, world=WORLD, questions=QUESTIONS, listener=listener, log_path=log_path
    )


def alive(pid: int) -> bool:
    """Whether a process of this id runs; one that waits to be taken in does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.anyio
async def test_actor_serves_and_stops(listener: socket.socket, tmp_path: Path) -> None:
    """Healthy after on_start, gone after on_stop; the socket stays open."""
    async with anyio.create_task_group() as tasks:
        actor = twin_actor(listener, tmp_path / "logs" / "twin.log")
        await actor.on_start(Home(tasks))
        health = await actor.health(TwinHealth())
        assert health.base_url == base_url_of(listener)
        assert health.base_url.startswith("http://127.0.0.1:")
        assert (health.served, alive(health.pid)) == (0, True)
        await actor.on_stop()
        await actor.on_stop()
        assert not alive(health.pid)
    assert listener.fileno() > 0
    with pytest.raises(RuntimeError, match="on_stop"):
        await actor.health(TwinHealth())


@pytest.mark.anyio
async def test_death_of_the_child_crashes_the_actor_and_restart_keeps_the_address(
    listener: socket.socket, tmp_path: Path
) -> None:
    """The task group gets TwinDied; the next incarnation answers at the same URL."""
    first = twin_actor(listener, tmp_path / "twin.log")
    with pytest.RaisesGroup(pytest.RaisesExc(TwinDied, match="status -9")):
        async with anyio.create_task_group() as tasks:
            await first.on_start(Home(tasks))
            before = await first.health(TwinHealth())
            os.kill(before.pid, signal.SIGKILL)
            await anyio.sleep_forever()
    await first.on_stop()
    async with anyio.create_task_group() as tasks:
        second = twin_actor(listener, tmp_path / "twin.log")
        await second.on_start(Home(tasks))
        after = await second.health(TwinHealth())
        assert after.base_url == before.base_url
        assert after.pid != before.pid
        await second.on_stop()


@pytest.mark.anyio
async def test_child_that_cannot_start_says_why(listener: socket.socket, tmp_path: Path) -> None:
    """on_start fails with the child's own words, and leaves nothing behind."""
    async with anyio.create_task_group() as tasks:
        actor = twin_actor(listener, tmp_path / "twin.log", world=tmp_path / "no-world.json")
        with pytest.raises(TwinDied, match=r"no-world\.json"):
            await actor.on_start(Home(tasks))
        await actor.on_stop()


@pytest.mark.anyio
async def test_closed_input_ends_the_child(listener: socket.socket, tmp_path: Path) -> None:
    """No signal is needed, and its status is 0."""
    child = await child_of(listener, tmp_path / "twin.log")
    await child.wait_healthy()
    process = child._process  # the test's own hand on the pipe
    assert process.stdin is not None
    await process.stdin.aclose()
    with anyio.fail_after(20):
        assert await process.wait() == 0
    await child.stop()
    assert (tmp_path / "twin.log").read_text(encoding="utf-8") == ""


@pytest.mark.anyio
async def test_child_dies_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed outright leaves no simulator behind."""
    code = (
        "import anyio, pathlib, sys\n"
        "from tests.twin.test_process import child_of, bind_loopback\n"
        "async def main():\n"
        "    with bind_loopback() as listener:\n"
        "        child = await child_of(listener, pathlib.Path(sys.argv[1]))\n"
        "        await child.wait_healthy()\n"
        "        print(child.pid, flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    parent = await anyio.open_process(
        [sys.executable, "-c", code, str(tmp_path / "twin.log")], cwd=ROOT, stderr=None
    )
    async with parent:
        assert parent.stdout is not None
        pid = int((await parent.stdout.receive()).decode())
        assert alive(pid)
        parent.kill()
        await parent.wait()
        with anyio.fail_after(20):
            while alive(pid):  # noqa: ASYNC110  # a grandchild's end cannot be awaited
                await anyio.sleep(0.01)


def test_listener_says_that_it_is_tcp(listener: socket.socket) -> None:
    """Also as the child sees it; else Nagle's algorithm stays on and a reply takes 40 ms."""
    with socket.socket(fileno=os.dup(listener.fileno())) as seen:
        assert listener.proto == seen.proto == socket.IPPROTO_TCP
        assert seen.family == socket.AF_INET


def test_help_teaches() -> None:
    """It says what this is, what it is for and how to try it."""
    done = subprocess.run(
        [sys.executable, "-m", "actors.twin", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for what in ("not a language model", "twin-judge", "curl", "--judge-noise", "base_url"):
        assert what in done.stdout


def test_defaults_are_the_configuration_s() -> None:
    """By hand the simulator behaves as in a run."""
    options = parse_arguments(["--world", "w", "--questions", "q"])
    twin = load_config(None).twin
    shares = ("helpful", "useless", "harmful", "malformed", "hostile", "judge_noise")
    for name in ("world_seed", *shares):
        assert getattr(options, name) == getattr(twin, name)
    assert options.chunk_delay_s == twin.chunk_delay_s


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--helpful", "0.9"], "must be 1"),
        (["--judge-noise", "2"], "0..1"),
        (["--hostile", "1.5"], "0..1"),
        (["--chunk-delay-s", "-1"], "a time"),
        (["--port", "1", "--fd", "3"], "not allowed"),
    ],
)
def test_wrong_options_are_told(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence on standard error."""
    with pytest.raises(SystemExit):
        parse_arguments(["--world", "w", "--questions", "q", *more])
    assert said in capsys.readouterr().err


def test_missing_world_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its path, and status 1."""
    missing = tmp_path / "nothing.json"
    assert main(["--world", str(missing), "--questions", str(QUESTIONS)]) == 1
    assert str(missing) in capsys.readouterr().err
