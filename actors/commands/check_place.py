"""Whether this machine can carry a run: workspace, disk, cache, versions, files, clock.

Reads only. What a test must be able to bend (free bytes, limits, versions, time) is an argument.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from actors.cache.settings import resolve_cache
from actors.commands.check_line import Line, fail, fine, warn
from actors.config import ROOT
from actors.workspace.errors import WorkspaceError
from actors.workspace.lock import lock_holder
from protocol.settings import Config

__all__ = [
    "MB_PER_1000",
    "Machine",
    "cache_line",
    "clock_line",
    "disk_line",
    "files_line",
    "target_line",
    "versions_lines",
]

MB_PER_1000 = 6.3
"""Megabytes of run.db and cache.db per 1,000 outcomes of the demo (2,433 outcomes, 15.4 MB)."""
_DEMO_TOKENS = 2500.0  # of the demo's prompts: traces and cached answers grow with what is read
_SPARE_MB = 200.0  # logs, side files of the databases, versions of the documents
_OTHER_FILES = 200  # databases, logs, trees, a Redis pool; as the run itself wants them
_PYTHON = (3, 11)
_SQLITE = (3, 24, 0)  # upserts
_REDIS_S = 3.0
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[ \t]*(;[^\\]*)?")
_FAR_S = 60.0


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine says of itself. limit: soft and hard, of open files."""

    free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
    limit: Callable[[], tuple[int, int]] = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)
    installed: Callable[[str], str] = metadata.version
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    python: tuple[int, int] = sys.version_info[:2]
    sqlite: tuple[int, int, int] = sqlite3.sqlite_version_info
    environ: Mapping[str, str] = os.environ


def target_line(workspace: Path, *, resumed: bool) -> Line:
    """Whether the workspace can be written, without writing. resumed: it is there."""
    if resumed:
        try:
            holder = lock_holder(workspace)
        except OSError as error:
            return fail("workspace", f"{workspace}/lock: {error.strerror}", "mend its permissions")
        if isinstance(holder, WorkspaceError):
            return fail("workspace", f"{holder.path}: {holder.what}", holder.remedy)
        if not os.access(workspace, os.W_OK | os.X_OK):
            return fail("workspace", f"{workspace} cannot be written", "mend its permissions")
        return fine("workspace", f"{workspace}: nobody runs on it")
    if workspace.exists():
        return fail(
            "workspace",
            f"{workspace} exists already",
            "go on with it by --resume, or name one that does not exist",
        )
    above = _nearest(workspace)
    if not above.is_dir():
        return fail("workspace", f"{above} is no folder", "name another --workspace")
    if not os.access(above, os.W_OK | os.X_OK):
        return fail(
            "workspace", f"{above} cannot be written", "mend its permissions, or give --workspace"
        )
    return fine("workspace", f"{workspace} would be made")


def _nearest(path: Path) -> Path:
    """The path itself or what is there above it."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def disk_line(
    workspace: Path, outcomes: float, prompt_tokens: float, free: Callable[[Path], int]
) -> Line:
    """Whether the disk has room. outcomes: at most; prompt_tokens: of an average call."""
    needed = MB_PER_1000 * max(1.0, prompt_tokens / _DEMO_TOKENS) * outcomes / 1000 + _SPARE_MB
    try:
        there = free(_nearest(workspace)) / 1e6
    except OSError as error:
        return fail("disk", f"{workspace}: {error}", "name another --workspace")
    told = f"{_size(there)} free, about {_size(needed)} needed for {outcomes:,.0f} outcomes"
    if there < needed:
        remedy = "make room, or put the workspace elsewhere (--workspace, run.workspaces)"
        return fail("disk", told, remedy)
    return fine("disk", told)


def _size(megabytes: float) -> str:
    return f"{megabytes / 1000:,.1f} GB" if megabytes >= 1000 else f"{megabytes:,.0f} MB"


def cache_line(config: Config, environ: Mapping[str, str]) -> Line:
    """Where answers are kept, and whether that can be reached. Never shows a Redis URL's key."""
    try:
        choice = resolve_cache(config.cache, environ)
    except ValueError as error:
        return fail("cache", str(error), "mend the variable or the key that it names")
    kept = f"entries live {choice.ttl_s / 86400:.3g} days"
    if choice.backend == "none":
        return warn("cache", "none", "set cache.backend to sqlite: a resumed run asks all anew")
    if choice.redis_url is None:
        return fine("cache", f"SQLite in the workspace, {kept}")
    try:
        where = _redis_place(choice.redis_url)
        client = Redis.from_url(
            choice.redis_url,
            socket_timeout=_REDIS_S,
            socket_connect_timeout=_REDIS_S,
            retry=Retry(NoBackoff(), 0),
        )
        with client:
            client.ping()
    except (RedisError, OSError, ValueError) as error:
        return warn(
            "cache",
            f"Redis at {where} does not answer ({type(error).__name__})",
            "start it or mend REDIS_URL; a run goes on without it, and a resumed one asks all anew",
        )
    return fine("cache", f"Redis at {where} answers, {kept}")


def _redis_place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path


def versions_lines(machine: Machine, lock: Path = ROOT / "requirements" / "run.txt") -> list[Line]:
    """Python, SQLite, and every package against the lock file."""
    python = ".".join(map(str, machine.python))
    sqlite = ".".join(map(str, machine.sqlite))
    lines = []
    if machine.python < _PYTHON:
        lines.append(
            fail("versions", f"Python {python}", "use 3.11 or newer (TRM_PYTHON=... bin/train)")
        )
    if machine.sqlite < _SQLITE:
        lines.append(fail("versions", f"SQLite {sqlite}", "use a Python with SQLite 3.24 or newer"))
    if not lock.is_file():
        lines.append(fine("versions", f"Python {python}, SQLite {sqlite}; no lock file to compare"))
        return lines
    absent, other, count = _against(lock, machine.installed)
    if absent:
        what = f"not installed: {', '.join(absent)}"
        lines.append(fail("versions", what, "remove .venv and start bin/train again"))
    if other:
        what = f"not as locked: {', '.join(other)}"
        lines.append(warn("versions", what, "remove .venv; bin/train installs what is locked"))
    if not lines:
        told = f"Python {python}, SQLite {sqlite}, {count} packages as locked"
        lines.append(fine("versions", told))
    return lines


def _against(lock: Path, installed: Callable[[str], str]) -> tuple[list[str], list[str], int]:
    """Packages that lack, that differ, and how many are right. A marker's may lack."""
    pins: dict[str, list[tuple[str, bool]]] = {}
    for text in lock.read_text(encoding="utf-8").splitlines():
        found = _PINNED.match(text)
        if found is not None:  # of several lines, each for other Pythons, one holds here
            pins.setdefault(found[1], []).append((found[2], found[3] is None))
    absent, other, right = [], [], 0
    for name, wanted in pins.items():
        try:
            version = installed(name)
        except metadata.PackageNotFoundError:
            absent += [name] if any(always for _, always in wanted) else []
            continue
        if version in {pinned for pinned, _ in wanted}:
            right += 1
        else:
            locked = " or ".join(pinned for pinned, _ in wanted)
            other.append(f"{name} {version} (locked: {locked})")
    return absent, other, right


def files_line(config: Config, limit: Callable[[], tuple[int, int]]) -> Line:
    """Every request in flight is a connection, hence a file."""
    ceilings = [e.concurrency or config.llm.concurrency for e in config.llm.endpoints]
    wanted = sum(ceilings) + _OTHER_FILES
    soft, hard = limit()
    if soft in (-1, resource.RLIM_INFINITY) or soft >= wanted:
        return fine("files", f"{wanted} open files wanted, {soft} allowed")
    if hard in (-1, resource.RLIM_INFINITY) or hard >= wanted:
        return fine("files", f"{wanted} open files wanted, {soft} allowed; the run raises that")
    return fail(
        "files",
        f"{sum(ceilings)} connections and {_OTHER_FILES} files wanted, {hard} allowed",
        "raise `ulimit -Hn`, or lower llm.concurrency",
    )


def clock_line(machine: Machine, servers: Mapping[str, datetime]) -> Line:
    """This machine's clock against what servers say and the age of our own files."""
    now = machine.now()
    said = f"{now:%Y-%m-%d %H:%M:%S} UTC"
    far = {
        name: (there - now).total_seconds()
        for name, there in servers.items()
        if abs((there - now).total_seconds()) > _FAR_S
    }
    if far:
        shown = ", ".join(f"{name} is {seconds:+.0f} s" for name, seconds in far.items())
        return warn(
            "clock", f"{said}; {shown}", "set the clock: cached answers and logs rest on it"
        )
    made = datetime.fromtimestamp((ROOT / "config" / "default.yaml").stat().st_mtime, UTC)
    if made.timestamp() - now.timestamp() > _FAR_S:
        return warn("clock", f"{said}, but our own files are younger", "set the clock")
    told = f", as {len(servers)} servers say" if servers else ""
    return fine("clock", f"{said}{told}")
