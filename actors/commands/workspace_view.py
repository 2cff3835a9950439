"""A workspace as the commands about its documents see it: versions, ledger. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from actors.commands.seed_options import OptionError, note
from actors.config import ROOT, load_config
from actors.ledger.reader import Reader, open_reader
from actors.places import shown_path, to_write
from actors.workspace.errors import VersionError, WorkspaceError
from actors.workspace.lock import lock_holder
from actors.workspace.manifest import MANIFEST, read_manifest
from actors.workspace.versions import VersionMeta, read_meta, read_prompts, read_skills
from protocol.slow import SYSTEM

__all__ = [
    "RUN_DB",
    "Kind",
    "chain_of",
    "find_workspace",
    "named_or_latest",
    "named_or_live",
    "texts_of",
    "workspace_ledger",
]

RUN_DB = "run.db"
Kind = Literal["skills", "prompts"]


def find_workspace(given: Path | None, command: str) -> Path:
    """The workspace that was named, else the latest, as ``named_or_latest`` finds it.

    Raises OptionError if there is none, or what was named is none.
    """
    found = named_or_latest(given, command)
    if not (found / MANIFEST).is_file():
        raise OptionError(
            f"{found}: is no workspace (it has no {MANIFEST}); name one that a run made"
        )
    return found


def named_or_latest(given: Path | None, command: str) -> Path:
    """The workspace that was named, else the one of any run that was written to last.

    One that cannot be read counts only where there is no other. Which one was taken is said in a
    line on stderr. Raises OptionError if there is none.
    """
    if given is not None:
        return given
    root, there = _all()
    return _latest(root, there, command)


def named_or_live(given: Path | None, command: str, *, alone: bool) -> Path:
    """The workspace that was named, else the one of the run under way, else the latest.

    alone: one of several runs under way is not chosen; else it is the one written to last. What
    was taken is said. Raises OptionError if there is none, and for a choice that is the user's.
    """
    if given is not None:
        return given
    root, there = _all()
    live = [path for path in there if _is_live(path)]
    if not live:
        return _latest(root, there, command)
    if alone and len(live) > 1:
        raise OptionError(
            f"{len(live)} runs are under way in {root}; name one of them: "
            f"{', '.join(shown_path(path) for path in live)}"
        )
    taken = _short(live[0])
    if len(live) == 1:
        note(f"{command}: {taken}, the run under way in {root}")
    else:
        others = ", ".join(path.name for path in live[1:])
        note(f"{command}: {taken}, of the runs under way in {root} the latest (also: {others})")
    return taken


def _all() -> tuple[Path, list[Path]]:
    """Where runs are by default, and all workspaces there, the one written to last first."""
    root = to_write(load_config(ROOT / "config" / "demo.yaml").run.workspaces)
    there = [path.parent for path in root.glob(f"[!.]*/{MANIFEST}")]
    if not there:
        raise OptionError(
            f"there is no workspace in {root}; make one with bin/train, or name the folder of a run"
        )
    return root, sorted(there, key=_written, reverse=True)


def _latest(root: Path, there: Sequence[Path], command: str) -> Path:
    """The first that can be read; what was passed over for it is said, too."""
    at = next((at for at, path in enumerate(there) if _is_readable(path)), 0)
    taken = _short(there[at])
    passed = ", ".join(path.name for path in there[:at])
    only = f" that can be read (not {passed})" if passed else ""
    note(f"{command}: {taken}, the latest of {root}{only}")
    return taken


def _is_readable(workspace: Path) -> bool:
    try:
        read_manifest(workspace)
    except (WorkspaceError, OSError):
        return False
    return True


def _is_live(workspace: Path) -> bool:
    """Whether a process holds its lock, as every run does from its beginning to its end."""
    with suppress(OSError):
        return lock_holder(workspace) is not None
    return False


def _short(workspace: Path) -> Path:
    with suppress(ValueError):
        return workspace.relative_to(Path.cwd())
    return workspace


def _written(workspace: Path) -> tuple[float, str]:
    """When a run last wrote there, and the name: what is newer comes later."""
    times = [0.0]
    for path in (workspace / MANIFEST, workspace / "logs" / "train.jsonl"):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return max(times), workspace.name


def chain_of(workspace: Path, kind: Kind, version: str) -> tuple[VersionMeta, ...]:
    """A version and its ancestors, the seed's version first.

    Raises VersionError naming the versions there are, or a chain that does not end; BadFile.
    """
    folder = workspace / kind
    chain = [read_meta(folder, version)]
    while (parent := chain[-1].parent) is not None:
        if any(meta.version == parent for meta in chain):
            raise VersionError(
                folder / version, f"is its own ancestor by way of {parent}", "restore its meta.json"
            )
        chain.append(read_meta(folder, parent))
    return tuple(reversed(chain))


def texts_of(workspace: Path, kind: Kind, version: str) -> dict[str, str]:
    """The documents of a version by name: a class, ``system``, a tool. Verified by their hashes.

    Raises VersionError if one was changed, is missing or is too many.
    """
    if kind == "skills":
        skills = read_skills(workspace / kind, version)
        return {skill.task_type: skill.text for skill in skills}
    prompts = read_prompts(workspace / kind, version)
    return {SYSTEM: prompts.system} | {tool.name: tool.text for tool in prompts.tools}


@contextmanager
def workspace_ledger(workspace: Path) -> Iterator[Reader]:
    """The workspace's ``run.db``, also while a run writes it.

    Raises OptionError if it is missing, damaged or of another version of this program.
    """
    path = workspace / RUN_DB
    if not path.is_file():
        raise OptionError(f"{path}: is missing; restore it from a copy: what happened stands there")
    log = path.with_name(f"{path.name}-wal")
    unsettled = log.exists() and log.stat().st_size > 0
    held = lock_holder(workspace) is not None
    try:
        with open_reader(path, at_rest=not held and not unsettled) as reader:
            yield reader
    except sqlite3.Error as error:
        raise OptionError(str(error)) from error
