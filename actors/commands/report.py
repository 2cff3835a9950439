"""``bin/trm report``: a whole run as one page of HTML."""

from __future__ import annotations

import argparse
from pathlib import Path

from actors.commands.seed_options import DONE, USAGE, OptionError, note, write

__all__ = ["add_report_parser", "report"]

_DESCRIPTION = """\
Writes one self-contained HTML page about a run: the verdict with interval and exact p, the accuracy
curves, gains by class, every edit with its diff, reason, evidence, e-value path and verdict,
rejected ones too, slow updates, the documents with where their lines come from, the diagnosis
waterfall, failures by kind, cost, and every question with its outcomes and transcripts.

The page loads nothing and runs from disk. It holds the questions, their answers and what the agent
read: keep it where the benchmark's licence lets you keep those. A run that goes on, was stopped or
has just begun can be asked, too; the page says so. The workspace is only read."""

_EXAMPLES = """\
examples:
  bin/trm report workspaces/my-001
      writes workspaces/my-001/report.html
  bin/trm report workspaces/my-001 --out my-run.html --no-transcripts
      outcomes alone: small enough for a mail

exit codes: 0 written, 2 the workspace cannot be read, or the file not written"""


def add_report_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``report`` and its options."""
    parser = commands.add_parser(
        "report",
        prog="bin/trm report",
        help="a whole run as one page of HTML",
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
        "--out", type=Path, metavar="F", help="the file (default: report.html in the workspace)"
    )
    parser.add_argument(
        "--no-transcripts",
        action="store_true",
        help="leave out what the agent did and read; its outcomes stay",
    )
    parser.set_defaults(run=report)


def report(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    import sqlite3

    from actors.config import ConfigError
    from actors.workspace.errors import WorkspaceError

    try:
        return _report(arguments)
    except (OptionError, ConfigError, WorkspaceError, OSError, sqlite3.Error) as error:
        note(f"bin/trm report: {error}")
        return USAGE


def _is_page(path: Path) -> bool:
    """Whether a file is a page: nothing else is ever replaced, least of all a ledger."""
    with path.open("rb") as file:
        return file.read(15).lower() == b"<!doctype html>"


def _report(arguments: argparse.Namespace) -> int:
    from actors.commands.html.gather import gather, ledger_of
    from actors.commands.html.page import page
    from actors.commands.html.transcripts import steps_of
    from actors.commands.workspace_view import RUN_DB, find_workspace
    from actors.logs import configure_logs
    from actors.places import launcher, shown_path
    from actors.workspace.atomic import write_atomic

    configure_logs(None, "critical", None)  # what cannot be read is told on the page
    workspace = find_workspace(arguments.workspace, "bin/trm report")
    if not (workspace / RUN_DB).is_file():
        raise OptionError(
            f"{workspace}: has no {RUN_DB}, where all that is reported stands; if its run has not "
            f"begun, `{launcher()} --resume {shown_path(workspace)}` begins it; else restore "
            "the file from a copy"
        )
    out: Path = arguments.out or workspace / "report.html"
    if not out.absolute().parent.is_dir():
        raise OptionError(f"{out}: the folder that it would stand in is not there")
    if out.is_dir():
        raise OptionError(f"{out}: is a folder; name a file")
    transcripts = not arguments.no_transcripts
    with ledger_of(workspace) as reader:
        story = gather(workspace, reader)
        text, embedded = page(story, steps_of(reader), transcripts=transcripts)
    if out.is_file() and not _is_page(out):
        raise OptionError(f"{out}: is there and is no earlier report; name another file")
    data = text.encode("utf-8")
    write_atomic(out, data)
    held = f", {embedded.held} transcripts" if transcripts else ", without transcripts"
    if embedded.left_out:
        held += f" ({embedded.left_out} more found no room)"
    write(f"{out}: {len(story.questions)} questions{held}; {len(data) / 1e6:.1f} MB\n")
    for gap in story.gaps:
        note(f"bin/trm report: could not be read: {gap}")
    return DONE
