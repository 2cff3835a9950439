"""What is to be checked: which configuration, and which workspace. Reads only."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from actors.commands.check_line import Line, fail, fine
from actors.commands.run_options import LATEST
from actors.config import ConfigError, changed_keys, load_config
from actors.factorial_config import FIXED, fixed_changes
from actors.launch import DEMO, resume_problems
from actors.places import to_write
from actors.workspace.create import latest_workspace, next_workspace
from actors.workspace.errors import WorkspaceError
from actors.workspace.manifest import read_manifest
from protocol.settings import Config

__all__ = ["Subject", "config_lines", "resume_lines", "subject_of"]

_CONFIG = "config.yaml"
_SHOWN = 6
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""A Redis URL may hold a password."""


class Subject(msgspec.Struct, frozen=True):
    """source: the file that relative paths are beside. workspace: to go on with; None: fresh.

    target: where would be written. done: epochs that are whole.
    """

    config: Config
    source: Path
    assignments: tuple[str, ...]
    workspace: Path | None
    target: Path
    done: int


def subject_of(arguments: argparse.Namespace) -> Subject:
    """What the arguments name. Raises ConfigError with every problem."""
    if arguments.aa is not None:
        raise ConfigError(["--check looks at a training: give --aa without it"])
    if arguments.resume is None:
        return _fresh(arguments)
    if arguments.workspace is not None:
        raise ConfigError(["--workspace is for a fresh run; give the folder to --resume"])
    workspace = _to_resume(arguments)
    source = arguments.config or workspace / _CONFIG
    config = load_config(source, arguments.assignments)
    try:
        done = read_manifest(workspace).epoch
    except WorkspaceError:
        done = 0  # told with the other problems of the workspace
    return Subject(config, source, tuple(arguments.assignments), workspace, workspace, done)


def _fresh(arguments: argparse.Namespace) -> Subject:
    if arguments.accept_change:
        raise ConfigError(["--accept-change goes with --resume"])
    source = arguments.config or DEMO
    config = load_config(source, arguments.assignments)
    target = arguments.workspace or next_workspace(to_write(config.run.workspaces), config.run.name)
    return Subject(config, source, tuple(arguments.assignments), None, target.absolute(), 0)


def _to_resume(arguments: argparse.Namespace) -> Path:
    named: Path = arguments.resume
    if named is LATEST:
        config = load_config(arguments.config or DEMO, arguments.assignments)
        root = to_write(config.run.workspaces)
        found = latest_workspace(root, config.run.name)
        if found is None:
            place = root / f"{config.run.name}-NNN"
            raise ConfigError([f"--resume: there is no {place}; start one with bin/train"])
        named = found
    if not (named / "manifest.json").is_file():
        raise ConfigError([f"--resume {named}: is no workspace (it has no manifest.json)"])
    return named.resolve()


def config_lines(subject: Subject) -> list[Line]:
    """The file, and what it changes."""
    changed = list(_changed(subject.config))
    count = len(changed)
    more = f", and {count - _SHOWN} more" if count > _SHOWN else ""
    differ = "1 setting differs" if count == 1 else f"{count} settings differ"
    what = f"{differ} from the defaults: {', '.join(changed[:_SHOWN])}{more}"
    told = what if count else "as the defaults"
    return [fine("config", f"{_short(subject.source)}: {told}")]


def _short(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _changed(config: Config) -> Iterator[str]:
    """``key=value`` for what differs; endpoints by name, since a line holds no more."""
    default = dict(_leaves(msgspec.to_builtins(load_config(None))))
    for key, value in _leaves(msgspec.to_builtins(config)):
        if value == default.get(key):
            continue
        if key == "llm.endpoints":
            names = ", ".join(endpoint.name for endpoint in config.llm.endpoints)
            yield f"llm.endpoints={names}"
        else:
            yield _USERINFO.sub("***", f"{key}={value}")


def _leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict) and key != "extra_body":
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def resume_lines(subject: Subject, accepted: Sequence[str]) -> list[Line]:
    """Whether ``--resume`` would go on, and with these settings."""
    workspace = subject.workspace
    assert workspace is not None, "asked only of a workspace"
    own, _ = resume_problems(workspace)
    lines = [fail("resume", problem, "do what it says, or begin a fresh run") for problem in own]
    try:
        stored = load_config(workspace / _CONFIG)
    except ConfigError:
        return lines  # told above
    lines += _change_lines(stored, subject.config, accepted)
    if not lines:
        lines.append(fine("resume", f"{workspace.name}: whole epochs: {subject.done}"))
    return lines


def _change_lines(stored: Config, config: Config, accepted: Sequence[str]) -> list[Line]:
    """What a resume would refuse of the settings: as ``launch.resume`` does."""
    changed = changed_keys(stored, config)
    fixed = fixed_changes(stored, config, changed)
    never = FIXED if fixed else ()
    unknown = sorted(set(accepted) - {key for key, _, _ in changed})
    return [
        *(fail("resume", what, "take it back, or begin a fresh run") for what in fixed),
        *(
            fail(
                "resume",
                f"{key} was {old!r}, now {new!r}",
                f"take it back, or add --accept-change {key}",
            )
            for key, old, new in changed
            if key not in accepted and key not in never
        ),
        *(
            fail("resume", f"--accept-change {key}: does not differ", "leave it out")
            for key in unknown
        ),
    ]
