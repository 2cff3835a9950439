"""``bin/trm tensorboard``: a run's numbers as event files that TensorBoard shows.

Only what the parser needs is imported with this module: ``--help`` and usage errors are quick.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from actors.commands.seed_options import DONE, USAGE, OptionError, note, write

__all__ = ["add_tensorboard_parser", "tensorboard"]

_DESCRIPTION = """\
Writes what a run measured as scalars for TensorBoard, a point per epoch: val/accuracy with its
interval, the curves on test, the gain of every class, what the gate tested and accepted, the slow
updates, tokens, calls and money. An epoch is shown once it is whole; the seed is step 0.

The workspace is only read; a run that goes on or was stopped can be asked, too. Asked again, the
command adds the epochs that came since: no point is ever there twice. DIR belongs to one run; a
folder with event files of anything else is refused, and nothing is deleted."""

_EXAMPLES = """\
examples:
  bin/trm tensorboard workspaces/my-001
      writes workspaces/my-001/tensorboard; look at all runs: tensorboard --logdir workspaces
  bin/trm tensorboard workspaces/my-001 --out boards/my-001
      elsewhere, in a folder of its own
  bin/trm tensorboard workspaces/my-001 --follow
      goes on until the run ends; Ctrl-C leaves, the run goes on

exit codes: 0 written, 2 the workspace cannot be read, or the files not written; 130 Ctrl-C"""

_FOLDER = "tensorboard"
_EVERY_S = 5.0


def add_tensorboard_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``tensorboard`` and its options."""
    parser = commands.add_parser(
        "tensorboard",
        prog="bin/trm tensorboard",
        help="a run's numbers as event files for TensorBoard",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "workspace",
        nargs="?",
        type=Path,
        metavar="WORKSPACE",
        help="the run's folder (default: the latest in workspaces/)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="a folder for this run alone (default: tensorboard in the workspace)",
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on, epoch by epoch, until the run ends"
    )
    parser.set_defaults(run=tensorboard)


def tensorboard(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    import sqlite3

    from actors.config import ConfigError
    from actors.workspace.errors import WorkspaceError

    try:
        return _tensorboard(arguments)
    except (OptionError, ConfigError, WorkspaceError, OSError, sqlite3.Error) as error:
        note(f"bin/trm tensorboard: {error}")
        return USAGE


def _tensorboard(arguments: argparse.Namespace) -> int:
    from actors.commands.workspace_view import find_workspace

    if importlib.util.find_spec("tensorboardX") is None:
        raise OptionError(
            f"needs tensorboardX. Install it: {sys.executable} -m pip install 'tensorboardX>=2.6' "
            "(it is the extra named tensorboard: pip install 'video-tree-trm[tensorboard]')"
        )
    import anyio

    from actors.logs import configure_logs

    configure_logs(None, "critical", None)  # what cannot be read is told below
    workspace = find_workspace(arguments.workspace, "bin/trm tensorboard")
    folder: Path = arguments.out or workspace / _FOLDER
    if arguments.follow:
        anyio.run(_follow, workspace, folder)
    else:
        _export(workspace, folder)
    return DONE


def _export(workspace: Path, folder: Path) -> bool:
    """Write what there is and say so; returns whether an epoch had to wait for the log."""
    from actors.commands.html.words import count
    from actors.commands.tensorboard_files import event_file, place
    from actors.commands.tensorboard_reading import read_run

    run = read_run(workspace)
    for gap in run.gaps:
        note(f"bin/trm tensorboard: {gap}")
    if not run.scalars:
        write(f"{workspace}: nothing to write yet. {run.why}\n")
        return run.waits
    name, data = event_file(run)
    done = place(folder, name, data)
    epochs = len({one.step for one in run.scalars if one.step})
    curves = len({one.tag for one in run.scalars})
    write(f"{folder / name}: {done}; {count(epochs, 'epoch')}, {count(curves, 'curve')}\n")
    sys.stdout.flush()
    return run.waits


async def _follow(workspace: Path, folder: Path) -> None:
    """Export whenever something was added, for the last time when nobody runs there any more."""
    import anyio

    from actors.commands.tensorboard_reading import progress_of
    from actors.workspace.lock import lock_holder

    before: object = None
    while True:
        over = lock_holder(workspace) is None  # asked first: what is read then is all there is
        seen = progress_of(workspace)
        if seen != before:
            before = None if _export(workspace, folder) else seen
        if over:
            return
        await anyio.sleep(_EVERY_S)
