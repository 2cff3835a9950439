"""``bin/train``: from arguments to a run, and from its end to an exit code.

Everything that can be wrong is looked at before anything is written; what is written first is
a whole workspace.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
import structlog

from actors.cache.settings import resolve_cache
from actors.config import (
    ROOT,
    ConfigError,
    changed_keys,
    dump_config,
    load_config,
    resolve_path,
    subject_of,
)
from actors.dataset.errors import DataError
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_questions
from actors.llm.endpoints import resolve_endpoints
from actors.logs import configure_logs
from actors.report import final_report, preflight_report
from actors.runtime.errors import AskFailed, StartFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.system import Paths, RunResult, run_system, uses_twin
from actors.workspace.atomic import sweep_tmp, write_atomic
from actors.workspace.create import init_workspace_from_seed, latest_workspace, next_workspace
from actors.workspace.errors import WorkspaceError
from actors.workspace.lock import WorkspaceLock
from actors.workspace.manifest import read_manifest
from actors.workspace.seed import open_seed
from protocol.base import Refused
from protocol.settings import Config
from protocol.trainer import TrainingEnded

__all__ = ["EXIT_CODES", "add_train_parser", "train"]

DONE, FAILED, USAGE, RESUMABLE, INTERRUPTED = 0, 1, 2, 75, 130
EXIT_CODES = """\
exit codes: 0 done (or patience is out), 1 failed, 2 usage or configuration,
75 stopped and resumable, 130 stopped at once by a second signal (resumable too)"""

log = structlog.get_logger("train")


@dataclass(frozen=True)
class _Plan:
    """A run that is ready to start; nothing of it is in doubt any more."""

    config: Config
    paths: Paths
    run_id: str
    resumed: bool


def add_train_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``train`` and its options."""
    parser = commands.add_parser(
        "train",
        help="train the documents; without arguments, the embedded demo",
        description=(
            "Trains skill documents: questions are answered by the agent, wrong answers are\n"
            "diagnosed, edits are proposed, and every edit must pass a sequential test.\n"
            "Without CONFIG the embedded demo runs: no key, no GPU, no server."
        ),
        epilog=(
            "examples:\n"
            "  bin/train                                   the demo, in a new workspace\n"
            "  bin/train my.yaml --set trainer.epochs=5    your own run\n"
            "  bin/train --resume                          go on with the latest demo run\n"
            "  bin/train --resume workspaces/my-001        go on with that one\n\n"
            "A run stops in order on Ctrl-C or SIGTERM: what is in flight may finish within\n"
            "runtime.drain_s, a second signal stops at once. Nothing is lost either way.\n\n"
            + EXIT_CODES
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "config",
        nargs="?",
        type=Path,
        metavar="CONFIG",
        help="YAML with what differs from config/default.yaml (default: config/demo.yaml)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help="override one key, such as trainer.epochs=5; may be given several times",
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="where to write; must not exist (default: the next free number in run.workspaces)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="DIR",
        help="go on with a workspace (default: the latest one of run.name)",
    )
    parser.add_argument(
        "--accept-change",
        action="append",
        default=[],
        metavar="KEY",
        help="resume although this key differs from the workspace's config.yaml",
    )
    parser.set_defaults(run=train)


def train(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    try:
        plan = _resume(arguments) if arguments.resume is not None else _fresh(arguments)
        lock = WorkspaceLock(plan.paths.workspace)
        lock.acquire()
        sweep_tmp(plan.paths.workspace)
    except (ConfigError, WorkspaceError, DataError, OSError) as error:
        _say(f"bin/train: {error}")
        return USAGE
    try:
        return _run(plan)
    finally:
        lock.release()


def _fresh(arguments: argparse.Namespace) -> _Plan:
    if arguments.accept_change:
        raise ConfigError(["--accept-change goes with --resume"])
    config_path: Path = arguments.config or ROOT / "config" / "demo.yaml"
    config = load_config(config_path, arguments.assignments)
    config, places = _with_paths(config, config_path)
    _check_surroundings(config)
    open_seed(places["seed"])
    load_frozen(places["seed"], load_questions(places["questions"]))
    root = _workspaces(config)
    workspace: Path = (arguments.workspace or next_workspace(root, config.run.name)).resolve()
    run_id = _run_id(config)
    init_workspace_from_seed(places["seed"], workspace, run_id)
    (workspace / "logs").mkdir()
    write_atomic(workspace / "config.yaml", dump_config(config).encode())
    return _Plan(config, _paths(workspace, places), run_id, resumed=False)


def _resume(arguments: argparse.Namespace) -> _Plan:
    """The workspace's own configuration, with what was asked to differ, if that may differ."""
    if arguments.workspace is not None:
        raise ConfigError(["--workspace is for a fresh run; give the folder to --resume"])
    workspace = _workspace_to_resume(arguments)
    stored_path = workspace / "config.yaml"
    stored = load_config(stored_path)
    config = load_config(arguments.config or stored_path, arguments.assignments)
    config, places = _with_paths(config, arguments.config or stored_path)
    _check_surroundings(config)
    changed = changed_keys(stored, config)
    refused = [change for change in changed if change[0] not in arguments.accept_change]
    if refused:
        lines = [f"  {key}: {old!r} -> {new!r}" for key, old, new in refused]
        flags = " ".join(f"--accept-change {key}" for key, _, _ in refused)
        raise ConfigError(
            [
                f"{workspace} was begun with other settings:",
                *lines,
                f"Take them back, or accept each of them: {flags}",
            ]
        )
    unknown = sorted(set(arguments.accept_change) - {key for key, _, _ in changed})
    if unknown:
        raise ConfigError([f"--accept-change {key}: does not differ" for key in unknown])
    run_id = read_manifest(workspace).run_id
    (workspace / "logs").mkdir(exist_ok=True)
    write_atomic(stored_path, dump_config(config).encode())
    return _Plan(config, _paths(workspace, places), run_id, resumed=True)


def _workspace_to_resume(arguments: argparse.Namespace) -> Path:
    if arguments.resume != Path():
        found: Path | None = arguments.resume
    else:
        config = load_config(
            arguments.config or ROOT / "config" / "demo.yaml", arguments.assignments
        )
        found = latest_workspace(_workspaces(config), config.run.name)
        if found is None:
            place = _workspaces(config) / f"{config.run.name}-NNN"
            raise ConfigError([f"--resume: there is no {place}; start one with bin/train"])
    assert found is not None
    if not (found / "manifest.json").is_file():
        raise ConfigError([f"--resume {found}: is no workspace (it has no manifest.json)"])
    return found.resolve()


def _workspaces(config: Config) -> Path:
    root = Path(config.run.workspaces).expanduser()
    return root if root.is_absolute() else ROOT / root


def _with_paths(config: Config, config_path: Path) -> tuple[Config, dict[str, Path]]:
    """The configuration with paths that hold from anywhere, and the places themselves."""
    wanted = {
        "seed": config.data.seed,
        "questions": config.data.questions,
        "trees": config.data.trees,
    }
    if uses_twin(config):
        wanted["world"] = config.twin.world
    problems: list[str] = []
    places: dict[str, Path] = {}
    for name, text in wanted.items():
        try:
            places[name] = resolve_path(text, config_path)
        except ConfigError as error:
            key = "twin.world" if name == "world" else f"data.{name}"
            problems += [f"{key}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    texts = {name: _portable(place) for name, place in places.items()}
    data = msgspec.structs.replace(
        config.data, seed=texts["seed"], questions=texts["questions"], trees=texts["trees"]
    )
    twin = msgspec.structs.replace(config.twin, world=texts.get("world", config.twin.world))
    return msgspec.structs.replace(config, data=data, twin=twin), places


def _check_surroundings(config: Config) -> None:
    """What the environment must hold: keys of endpoints, sane cache settings (row P1-1)."""
    problems = []
    checks: tuple[Callable[[], object], ...] = (
        lambda: resolve_endpoints(config.llm.endpoints, os.environ),
        lambda: resolve_cache(config.cache, os.environ),
    )
    for check in checks:
        try:
            check()
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError(problems)


def _portable(place: Path) -> str:
    """Relative inside the checkout, so that it may move; absolute elsewhere."""
    with suppress(ValueError):
        return str(place.relative_to(ROOT))
    return str(place)


def _paths(workspace: Path, places: dict[str, Path]) -> Paths:
    return Paths(
        workspace=workspace,
        questions=places["questions"],
        trees=places["trees"],
        world=places.get("world"),
    )


def _run_id(config: Config) -> str:
    """The run's name and the fingerprint of what makes it this run: pace and place do not."""
    subject = msgspec.json.encode(subject_of(config), order="sorted")
    return f"{config.run.name}-{hashlib.sha256(subject).hexdigest()[:8]}"


def _run(plan: _Plan) -> int:
    """Run the system with logs open; print the table; returns the exit code."""
    workspace = plan.paths.workspace
    file = configure_logs(
        workspace / "logs" / "train.jsonl", plan.config.run.log_level, plan.run_id
    )
    assert file is not None, "a path was given"
    resume = f"bin/train --resume {shlex.quote(_portable_here(workspace))}"
    try:
        log.info("run.resumed" if plan.resumed else "run.started", workspace=str(workspace))
        if uses_twin(plan.config):
            log.warning("run.simulator", note="the endpoint is a simulator, not a language model")
        try:
            result = anyio.run(_train, plan)
        except (SystemFailed, AskFailed) as error:
            return _failed(error, resume)
        return _finish(plan, result, resume)
    finally:
        file.close()


async def _train(plan: _Plan) -> RunResult:
    async def before(system: Supervisor) -> None:
        _say(await preflight_report(system, plan.config))

    return await run_system(plan.config, plan.paths, plan.run_id, before, signals=True)


def _failed(error: SystemFailed | AskFailed, resume: str) -> int:
    _say(f"bin/train: {error}")
    if isinstance(error, StartFailed):
        _say("Mend what the message names, then start again.")
    else:
        _say(f"The last checkpoint is whole. See logs/train.jsonl, then go on with: {resume}")
    return FAILED


def _finish(plan: _Plan, result: RunResult, resume: str) -> int:
    ended = result.ended
    if ended is None:
        _say(f"Stopped at once; the last checkpoint is whole. Go on with: {resume}")
        return INTERRUPTED
    if isinstance(ended, Refused):
        _say(f"The run cannot go on: {ended.what}")
        for detail in ended.details[:20]:
            _say(f"  {detail}")
        _say(f"What to do: {ended.remedy}\nGo on with: {resume}")
        return RESUMABLE if "coverage" in ended.what or "missing" in ended.what else FAILED
    if ended.status == "drained":
        _say(f"Stopped in order after epoch {ended.epochs}. Go on with: {resume}")
        return RESUMABLE
    sys.stdout.write(_final(plan, ended, result, resume))
    sys.stdout.flush()
    return DONE


def _final(plan: _Plan, ended: TrainingEnded, result: RunResult, resume: str) -> str:
    return final_report(plan.config, plan.paths, ended, result, resume)


def _portable_here(workspace: Path) -> str:
    """As short as it may be from where the user stands."""
    with suppress(ValueError):
        return str(workspace.relative_to(Path.cwd()))
    return str(workspace)


def _say(text: str) -> None:
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()
