"""A workspace as the commands about its documents see it: versions, ledger. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from actors.commands.seed_options import OptionError, note
from actors.config import ROOT, load_config
from actors.ledger.reader import Reader, open_reader
from actors.places import to_write
from actors.workspace.create import latest_workspace
from actors.workspace.errors import VersionError
from actors.workspace.lock import lock_holder
from actors.workspace.manifest import MANIFEST
from actors.workspace.versions import VersionMeta, read_meta, read_prompts, read_skills
from protocol.slow import SYSTEM

__all__ = [
    "RUN_DB",
    "Kind",
    "chain_of",
    "find_workspace",
    "named_or_latest",
    "texts_of",
    "workspace_ledger",
]

RUN_DB = "run.db"
Kind = Literal["skills", "prompts"]


def find_workspace(given: Path | None) -> Path:
    """The workspace that was named, else the latest of the demo, as ``bin/train --resume`` does.

    Raises OptionError if there is none.
    """
    if given is None:
        config = load_config(ROOT / "config" / "demo.yaml")
        root = to_write(config.run.workspaces)
        given = latest_workspace(root, config.run.name)
        if given is None:
            raise OptionError(
                f"there is no {root / config.run.name}-NNN; name a workspace, or make one with "
                "bin/train"
            )
    if not (given / MANIFEST).is_file():
        raise OptionError(
            f"{given}: is no workspace (it has no {MANIFEST}); name one that a run made"
        )
    return given


def named_or_latest(given: Path | None, command: str) -> Path:
    """The workspace that was named, else the one of any run that was written to last.

    Which one was taken is said in a line on stderr. Raises OptionError if there is none.
    """
    if given is not None:
        return given
    root = to_write(load_config(ROOT / "config" / "demo.yaml").run.workspaces)
    there = list(root.glob(f"*/{MANIFEST}"))
    if not there:
        raise OptionError(
            f"there is no workspace in {root}; make one with bin/train, or name the folder of a run"
        )
    latest = max((path.parent for path in there), key=_written)
    with suppress(ValueError):
        latest = latest.relative_to(Path.cwd())
    note(f"{command}: {latest}, the latest of {root}")
    return latest


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
