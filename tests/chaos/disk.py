"""A disk that is full, or may only be read, at the start or in the middle of a run.

    python -m tests.chaos.disk                 every scenario
    python -m tests.chaos.disk full read       those whose name holds one of the words

A run that cannot go on must stop in order, say what is wrong with which file, and go on to the
undisturbed end once that is mended; one that can must end the same. Needs root for its small
file systems. Prints a table; exit 1 if any is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.chaos.comparing import TINY, differing, undisturbed
from tests.chaos.invariants import broken
from tests.system.runs import Running, command, environment, result_of, settings

__all__ = [
    "SCENARIOS",
    "CannotMount",
    "filled",
    "full_disk",
    "main",
    "read_only_start",
    "small_disk",
]

STOPPED = 75
_STOP_EARLY = "limits.max_calls=250"
_BLOCK = b"\0" * 4096
_WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override")
"""So that root, too, may not write where the mode says so."""


class CannotMount(Exception):
    """This machine, or this container, lets nobody mount; the message is mount's."""


@contextmanager
def small_disk(folder: Path, mb: int) -> Iterator[Path]:
    """A file system of so many megabytes. Raises CannotMount."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={mb}m", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise CannotMount(str(error)) from error
    if done.returncode != 0:
        raise CannotMount(done.stderr.strip())


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Not a byte is left on it, for as long."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(_BLOCK)
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def _running(*arguments: str, prefix: Sequence[str] = ()) -> Iterator[Running]:
    process = subprocess.Popen(
        [*prefix, *command(*arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()


def _ended(*arguments: str, prefix: Sequence[str] = ()) -> tuple[int, str]:
    """The exit code, and all that was said on standard error."""
    done = subprocess.run(
        [*prefix, *command(*arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def _last_words(stderr: str) -> str:
    """What stands after the last line of the log."""
    return stderr.rpartition("runtime.stopped")[2]


def _gone_on(workspace: Path, expected: dict[str, object], *settings_: str) -> list[str]:
    code, said = _ended("--resume", str(workspace), *settings(settings_))
    if code != 0:
        return [f"resumed: exit {code}: {said[-2000:]}"]
    return [*differing(result_of(workspace), expected), *broken(workspace)]


def _told(code: int, said: str, expect: int, *words: str) -> list[str]:
    """Problems with an exit code, or with a message that lacks words."""
    found = [] if code == expect else [f"exit {code}, expected {expect}: {said[-2000:]}"]
    return found + [f"{word!r} is not in: {said[-2000:]}" for word in words if word not in said]


def full_disk(folder: Path, expected: dict[str, object], when: str = "step.done") -> list[str]:
    """It fills up in the middle: stopped in order, said, and gone on with once there is room."""
    with small_disk(folder / "disk", 24) as disk:
        workspace = disk / "run"
        with _running(*settings(TINY), "--workspace", str(workspace)) as run:
            run.wait_for(when)
            with filled(disk):
                _, rest = run.process.communicate()
                code = run.process.returncode
        full = "disk is full" if "disk is full" in _last_words(rest) else "No space left on device"
        again = f"--resume {workspace}"
        return [
            *_told(code, _last_words(rest), 1, full, again),
            *_gone_on(workspace, expected),
        ]


def full_before_steps(folder: Path, expected: dict[str, object]) -> list[str]:
    """The same, while the very first pass is answered."""
    return full_disk(folder, expected, "epoch.start")


def full_at_start(folder: Path, expected: dict[str, object]) -> list[str]:
    """Refused, and nothing half-made is left."""
    with small_disk(folder / "disk", 24) as disk:
        with filled(disk):
            code, said = _ended(*settings(TINY), "--workspace", str(disk / "run"))
        left = [f"left: {path}" for path in disk.iterdir()]
    return [*_told(code, said, 2, "No space left on device", str(disk)), *left]


def full_cache(folder: Path, expected: dict[str, object]) -> list[str]:
    """The cache alone has no room: said once, and every chat is asked."""
    workspace = folder / "run"
    code, said = _ended(*settings((*TINY, _STOP_EARLY)), "--workspace", str(workspace))
    found = _told(code, said, STOPPED)
    with small_disk(folder / "disk", 4) as disk:
        cache = workspace / "cache.db"
        shutil.move(cache, disk / "cache.db")
        cache.symlink_to(disk / "cache.db")
        more = settings(("limits.max_calls=null",))
        with _running("--resume", str(workspace), *more) as run:
            run.wait_for("epoch.start")  # the cache is open by then
            with filled(disk):
                _, rest = run.process.communicate()
                found += _told(run.process.returncode, rest, 0, "cache.unavailable")
        if (times := rest.count("cache.unavailable")) != 1:
            found.append(f"said {times} times")
        return [*found, *differing(result_of(workspace), expected), *broken(workspace)]


def full_log(folder: Path, expected: dict[str, object]) -> list[str]:
    """The log alone has no room: said once, and the run goes on."""
    workspace = folder / "run"
    code, said = _ended(*settings((*TINY, _STOP_EARLY)), "--workspace", str(workspace))
    found = _told(code, said, STOPPED)
    log = workspace / "logs" / "train.jsonl"
    log.unlink()
    log.symlink_to("/dev/full")
    code, said = _ended("--resume", str(workspace), *settings(("limits.max_calls=null",)))
    found += _told(code, said, 0, "the log cannot be written, lines are lost")
    if said.count("lines are lost") != 1:
        found.append(f"said {said.count('lines are lost')} times")
    return [*found, *differing(result_of(workspace), expected), *broken(workspace)]


def read_only_start(folder: Path, _: dict[str, object]) -> list[str]:
    """A fresh run where nothing may be written: refused with the reason."""
    with small_disk(folder / "disk", 4) as disk:
        _mount("-o", "remount,ro", str(disk))
        code, said = _ended(*settings(TINY), "--workspace", str(disk / "run"))
        left = [f"left: {path}" for path in disk.iterdir()]
    return [*_told(code, said, 2, "Read-only file system", str(disk)), *left]


def read_only_resume(folder: Path, expected: dict[str, object]) -> list[str]:
    """A workspace that may only be read: refused, not a byte changed; mended, it goes on."""
    with small_disk(folder / "disk", 24) as disk:
        workspace = disk / "run"
        code, said = _ended(*settings((*TINY, _STOP_EARLY)), "--workspace", str(workspace))
        found = _told(code, said, STOPPED)
        before = _contents(disk)
        _mount("-o", "remount,ro", str(disk))
        code, said = _ended("--resume", str(workspace), *settings(("limits.max_calls=null",)))
        found += _told(code, said, 2, "Read-only file system", str(workspace))
        if _contents(disk) != before:
            found.append("something was written")
        _mount("-o", "remount,rw", str(disk))
        return found + _gone_on(workspace, expected, "limits.max_calls=null")


def read_only_midway(folder: Path, expected: dict[str, object]) -> list[str]:
    """Folders lose their write permission in the middle: stopped, said, gone on with."""
    prefix = _WITHOUT_PRIVILEGE if os.geteuid() == 0 else ()
    found = []
    for name in ("skills", "."):
        workspace = folder / f"run{name.strip('.')}"
        with _running(*settings(TINY), "--workspace", str(workspace), prefix=prefix) as run:
            run.wait_for("epoch.start")
            (workspace / name).chmod(0o555)
            _, rest = run.process.communicate()
            code = run.process.returncode
        (workspace / name).chmod(0o755)
        found += _told(code, _last_words(rest), 1, "Permission denied", "--resume")
        found += _gone_on(workspace, expected)
    return found


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SCENARIOS: tuple[Callable[[Path, dict[str, object]], list[str]], ...] = (
    full_disk,
    full_before_steps,
    full_at_start,
    full_cache,
    full_log,
    read_only_start,
    read_only_resume,
    read_only_midway,
)


def main(arguments: Sequence[str]) -> int:
    """Run the scenarios; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.disk", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names; none: every scenario")
    words = parser.parse_args(arguments).words
    bad = 0
    with tempfile.TemporaryDirectory() as made:
        expected = undisturbed(Path(made) / "whole", TINY)
        for scenario in SCENARIOS:
            name = scenario.__name__
            if words and not any(word in name for word in words):
                continue
            folder = Path(made) / name
            folder.mkdir()
            problems = scenario(folder, expected)
            bad += bool(problems)
            sys.stdout.write(f"{name:<20} {'; '.join(problems) or 'as it should be'}\n")
            sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
