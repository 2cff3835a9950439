"""``bin/train``: from arguments to a run, and from its end to an exit code.

Everything that can be wrong is looked at before anything is written; what is written first is
a whole workspace.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import structlog

from actors.commands.aa import compare_with_itself
from actors.commands.check import add_check_options, check
from actors.config import ConfigError
from actors.dataset.errors import DataError
from actors.launch import Launch, fresh, resume
from actors.logs import configure_logs
from actors.places import as_called, launcher
from actors.report import final_report, preflight_report
from actors.runtime.errors import AskFailed, StartFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.system import RunResult, run_system, simulated_roles, uses_twin
from actors.workspace.errors import WorkspaceError
from protocol.base import Refused
from protocol.trainer import TrainingEnded

__all__ = ["EXIT_CODES", "add_train_parser", "train"]

DONE, FAILED, USAGE, RESUMABLE, INTERRUPTED = 0, 1, 2, 75, 130
EXIT_CODES = """\
exit codes: 0 done (or patience is out), 1 failed, 2 usage or configuration,
75 stopped and resumable, 130 stopped at once by a second signal (resumable too)"""

log = structlog.get_logger("train")


def add_train_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``train`` and its options."""
    parser = commands.add_parser(
        "train",
        prog="bin/train",
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
            "  bin/train --resume workspaces/my-001        go on with that one\n"
            "  bin/train my.yaml --check                   is all there, and what would it cost?\n"
            "  bin/train my.yaml --aa 100                  test the gate's level here\n\n"
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
    parser.add_argument(
        "--aa",
        type=_positive,
        metavar="N",
        help="no training: N tests of the current package against itself (is the level kept?)",
    )
    add_check_options(parser)
    parser.set_defaults(run=train)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)  # argparse makes a sentence of it
    return number


def train(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.check or arguments.json:
        return check(arguments)
    try:
        launch = _launch(arguments)
    except (ConfigError, WorkspaceError, DataError, OSError) as error:
        _say(f"bin/train: {error}")
        return USAGE
    try:
        return _run(launch, arguments.aa)
    finally:
        launch.lock.release()


def _launch(arguments: argparse.Namespace) -> Launch:
    if arguments.resume is None:
        if arguments.accept_change:
            raise ConfigError(["--accept-change goes with --resume"])
        return fresh(arguments.config, arguments.assignments, arguments.workspace)
    if arguments.workspace is not None:
        raise ConfigError(["--workspace is for a fresh run; give the folder to --resume"])
    named: Path | None = None if arguments.resume == Path() else arguments.resume
    return resume(arguments.config, arguments.assignments, named, arguments.accept_change)


def _run(launch: Launch, n_nulls: int | None) -> int:
    """Run the system with logs open; print the table; returns the exit code."""
    workspace = launch.paths.workspace
    file = configure_logs(
        workspace / "logs" / "train.jsonl", launch.config.run.log_level, launch.run_id
    )
    assert file is not None, "a path was given"
    resume = f"{launcher()} --resume {shlex.quote(_portable_here(workspace))}"
    try:
        log.info("run.resumed" if launch.resumed else "run.started", folder=str(workspace))
        for change in launch.accepted:
            log.warning("config.change_accepted", change=change)
        if uses_twin(launch.config):
            played = ", ".join(simulated_roles(launch.config))
            log.warning("run.simulator", roles=played, note="a simulator, not a language model")
        try:
            if n_nulls is not None:
                return compare_with_itself(launch, n_nulls, _say, f"{resume} --aa {n_nulls}")
            result = anyio.run(_train, launch)
        except (SystemFailed, AskFailed) as error:
            return _failed(error, resume)
        except (WorkspaceError, DataError) as error:
            _say(f"bin/train: {error}")
            return USAGE
        return _finish(launch, result, resume)
    finally:
        with suppress(OSError):  # a full disk: what could not be written is lost either way
            file.close()


async def _train(launch: Launch) -> RunResult:
    async def before(system: Supervisor) -> None:
        _say(await preflight_report(system, launch.config, launch.paths))

    return await run_system(launch.config, launch.paths, launch.run_id, before, signals=True)


def _failed(error: SystemFailed | AskFailed, resume: str) -> int:
    _say(f"bin/train: {error}")
    if isinstance(error, StartFailed):
        _say("Mend what the message names, then start again.")
    else:
        _say(f"The last checkpoint is whole. See logs/train.jsonl, then go on with: {resume}")
    return FAILED


def _finish(launch: Launch, result: RunResult, resume: str) -> int:
    ended = result.ended
    if ended is None:
        how = "at once" if result.cut_short else "before what was in flight could finish"
        _say(f"Stopped {how}; the last checkpoint is whole. Go on with: {resume}")
        return INTERRUPTED if result.cut_short else RESUMABLE
    if isinstance(ended, Refused):
        _say(f"The run cannot go on: {ended.what}")
        for detail in ended.details[:20]:
            _say(f"  {detail}")
        _say(f"What to do: {ended.remedy}\nGo on with: {resume}")
        return RESUMABLE if ended.passing else FAILED
    if ended.status == "drained":
        _say(f"Stopped in order after epoch {ended.epochs}. Go on with: {resume}")
        return RESUMABLE
    sys.stdout.write(_final(launch, ended, result, resume))
    sys.stdout.flush()
    return DONE


def _final(launch: Launch, ended: TrainingEnded, result: RunResult, resume: str) -> str:
    return final_report(launch.config, launch.paths, ended, result, resume)


def _portable_here(workspace: Path) -> str:
    """As short as it may be from where the user stands."""
    with suppress(ValueError):
        return str(workspace.relative_to(Path.cwd()))
    return str(workspace)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens any more: the run matters more
        sys.stderr.write(as_called(text).rstrip("\n") + "\n")
        sys.stderr.flush()
