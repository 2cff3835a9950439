"""``bin/train``: from arguments to a run, and from its end to an exit code.

Everything that can be wrong is looked at before anything is written; what is written first is
a whole workspace.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog

from actors.commands import train_json
from actors.commands.aa import compare_with_itself
from actors.commands.check import add_check_options, check
from actors.commands.run_options import LATEST, add_run_options
from actors.commands.so_far import disk_full, so_far
from actors.config import ConfigError
from actors.dataset.errors import DataError
from actors.launch import Launch, fresh, resume
from actors.logs import configure_logs
from actors.monitor.monitor import Monitor
from actors.places import as_called, launcher, shown_path
from actors.report import final_report, preflight_report
from actors.runtime.errors import AskFailed, StartFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.streams import StdoutLost
from actors.system import RunResult, run_system, simulated_roles, uses_twin
from actors.workspace.errors import WorkspaceError
from protocol.base import Refused
from protocol.trainer import TrainingEnded

__all__ = ["EXIT_CODES", "add_train_parser", "ended_by", "train"]

DONE, FAILED, USAGE, VOID, RESUMABLE, INTERRUPTED = 0, 1, 2, 3, 75, 130
EXIT_CODES = """\
exit codes: 0 done (or patience is out), 1 failed, 2 usage or configuration,
3 done, but its claims are void: the factorial gate's sentinels do not look like coins,
75 stopped and resumable, 130 stopped at once by a second signal (resumable too)"""

_ROOM = "\nThe disk is full: make room, then start again."

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
            "  bin/train my.yaml --aa 100                  test the gate's level here\n"
            "  bin/train my.yaml --json 2>/dev/null        for programs: JSON lines on stdout\n\n"
            "bin/trm watch WORKSPACE shows a run from another terminal, bin/trm control WORKSPACE\n"
            "pauses it, lets it go on, stops it or changes its pace.\n"
            "A run stops in order on Ctrl-C or SIGTERM: what is in flight may finish within\n"
            "runtime.drain_s, a second signal stops at once. Nothing is lost either way.\n\n"
            + EXIT_CODES
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run_options(parser)
    parser.add_argument(
        "--aa",
        type=_positive,
        metavar="N",
        help="no training: N tests of the current package against itself (is the level kept?)",
    )
    parser.add_argument(
        "--metrics-port",
        type=_port,
        metavar="N",
        help="serve numbers for Prometheus at http://127.0.0.1:N/metrics (0: any free port)",
    )
    add_check_options(parser)
    parser.set_defaults(run=train)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)  # argparse makes a sentence of it
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise ValueError(text)
    return number


def train(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.check:
        return check(arguments)
    try:
        if arguments.json and arguments.aa:
            raise ConfigError(["--json does not go with --aa"])
        launch = _launch(arguments)
    except (ConfigError, WorkspaceError, DataError, OSError) as error:
        _say(f"bin/train: {error}{_ROOM if disk_full(error) else ''}")
        if arguments.json:
            train_json.tell(train_json.done_record("refused", USAGE, error=str(error)))
        return USAGE
    try:
        return _run(launch, arguments)
    finally:
        launch.lock.release()


def _launch(arguments: argparse.Namespace) -> Launch:
    if arguments.resume is None:
        if arguments.accept_change:
            raise ConfigError(["--accept-change goes with --resume"])
        return fresh(arguments.config, arguments.assignments, arguments.workspace)
    if arguments.workspace is not None:
        raise ConfigError(["--workspace is for a fresh run; give the folder to --resume"])
    named: Path | None = None if arguments.resume is LATEST else arguments.resume
    return resume(arguments.config, arguments.assignments, named, arguments.accept_change)


def _run(launch: Launch, arguments: argparse.Namespace) -> int:
    """Run the system with logs open; print the table; returns the exit code."""
    workspace = launch.paths.workspace
    here = shown_path(workspace)
    resume = f"{launcher()} --resume {here}"
    monitor = Monitor(
        launch.config,
        workspace,
        launch.run_id,
        f"{launcher('control')} {here}",
        metrics_port=arguments.metrics_port,
    )

    def hear(event: Mapping[str, object]) -> None:
        monitor.hear(event)
        if arguments.json:
            train_json.hear(event)

    file = configure_logs(
        workspace / "logs" / "train.jsonl", launch.config.run.log_level, launch.run_id, hear=hear
    )
    assert file is not None, "a path was given"
    try:
        if arguments.json:
            train_json.tell(train_json.launch_record(launch))
        _first_lines(launch)
        if arguments.aa is not None:
            return _compare(launch, arguments.aa, resume)
        end = _ended(launch, monitor, resume)
        if arguments.json:
            done = train_json.done_record(
                end.status,
                end.code,
                launch=launch,
                result=end.result,
                resume=None if end.code in (DONE, VOID) else resume,
                error=end.error,
            )
            train_json.tell(done)
            _say(end.words)
        elif end.code in (DONE, VOID):
            _print(end.words, here, resume)
        else:
            _say(end.words)
        return end.code
    finally:
        with suppress(OSError):  # a full disk: what could not be written is lost either way
            file.close()


def _print(words: str, here: str, resume: str) -> None:
    """The result on stdout. Where that takes nothing the run has ended all the same."""
    try:
        sys.stdout.write(words)
        sys.stdout.flush()
    except StdoutLost as lost:
        page = f"{launcher('report')} {here}"
        again = f"{page} makes a page of it, {resume} prints it again"
        _say(f"bin/train: {lost}; the result is kept: {again}")


def _first_lines(launch: Launch) -> None:
    folder = str(launch.paths.workspace)
    log.info("run.resumed" if launch.resumed else "run.started", folder=folder)
    for change in launch.accepted:
        log.warning("config.change_accepted", change=change)
    if uses_twin(launch.config):
        played = ", ".join(simulated_roles(launch.config))
        log.warning("run.simulator", roles=played, note="a simulator, not a language model")


@dataclass(frozen=True)
class End:
    """How it ended. words: for people; status: for programs."""

    code: int
    status: str
    words: str
    result: RunResult | None = None
    error: str | None = None


def _compare(launch: Launch, n_nulls: int, resume: str) -> int:
    try:
        return compare_with_itself(launch, n_nulls, _say, f"{resume} --aa {n_nulls}")
    except (SystemFailed, AskFailed) as error:
        end = ended_by(error, resume, "")
    except (WorkspaceError, DataError) as error:
        end = _refused(error)
    _say(end.words)
    return end.code


def _ended(launch: Launch, monitor: Monitor, resume: str) -> End:
    """Run it, to whichever end; the log's last line says which."""
    begun = time.monotonic()
    try:
        end = _finish(launch, anyio.run(_train, launch, monitor), resume)
    except (SystemFailed, AskFailed) as error:
        end = ended_by(error, resume, _so_far(launch))
    except (WorkspaceError, DataError) as error:
        end = _refused(error)
    seconds = round(time.monotonic() - begun, 1)
    if end.result is not None:
        log.info("run.ended", status=end.status, exit_code=end.code, seconds=seconds)
    else:
        words = {"status": end.status, "exit_code": end.code, "error": end.error}
        log.error("run.ended", **words, seconds=seconds)
    return end


async def _train(launch: Launch, monitor: Monitor) -> RunResult:
    async def before(system: Supervisor) -> None:
        _say(await preflight_report(system, launch.config, launch.paths))

    return await run_system(
        launch.config,
        launch.paths,
        launch.run_id,
        before,
        signals=True,
        pace=monitor.pace,
        watch=monitor.watch,
    )


def _refused(error: Exception) -> End:
    return End(USAGE, "refused", f"bin/train: {error}", error=str(error))


def _so_far(launch: Launch) -> str:
    return so_far(launch.paths.workspace, launch.config.trainer.epochs)


def ended_by(error: SystemFailed | AskFailed, resume: str, done: str) -> End:
    """What an error that ends a run leaves to be said and done.

    done: what the run has done so far, with a blank before it.
    """
    if disk_full(error):
        next_ = f"The disk is full.{done}\nMake room, then go on with: {resume}"
    elif isinstance(error, StartFailed):
        next_ = "Mend what the message names, then start again."
    else:
        next_ = f"The last checkpoint is whole.{done}\n"
        next_ += f"See logs/train.jsonl, then go on with: {resume}"
    return End(FAILED, "failed", f"bin/train: {error}\n{next_}", error=str(error))


def _finish(launch: Launch, result: RunResult, resume: str) -> End:
    ended, status = result.ended, train_json.status_of(result)
    if ended is None:
        how = "at once" if result.cut_short else "before what was in flight could finish"
        words = f"Stopped {how}; the last checkpoint is whole.{_so_far(launch)}\n"
        words += f"Go on with: {resume}"
        return End(INTERRUPTED if result.cut_short else RESUMABLE, status, words, result)
    if isinstance(ended, Refused):
        lines = [f"The run cannot go on: {ended.what}"]
        lines += [f"  {detail}" for detail in ended.details[:20]]
        lines += [done] if (done := _so_far(launch).strip()) else []
        lines += [f"What to do: {ended.remedy}", f"Go on with: {resume}"]
        return End(RESUMABLE if ended.passing else FAILED, status, "\n".join(lines), result)
    if ended.status == "drained":
        words = f"Stopped in order.{_so_far(launch)}\nGo on with: {resume}"
        return End(RESUMABLE, status, words, result)
    words = _final(launch, ended, result, resume)
    if ended.claims_void:
        error = "the run's claims are void: its sentinels do not look like coins"
        return End(VOID, status, words, result, error=error)
    return End(DONE, status, words, result)


def _final(launch: Launch, ended: TrainingEnded, result: RunResult, resume: str) -> str:
    here = shown_path(launch.paths.workspace)
    report = f"{launcher('report')} {here}"
    return final_report(launch.config, launch.paths, ended, result, report, resume)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens any more: the run matters more
        sys.stderr.write(as_called(text).rstrip("\n") + "\n")
        sys.stderr.flush()
