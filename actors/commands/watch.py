"""``bin/trm watch``: a run as it goes, from another terminal."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live

from actors.commands.console import on_terminal
from actors.commands.seed_options import DONE, USAGE, OptionError, note
from actors.commands.status_report import resume_refused
from actors.commands.watch_reading import read_view
from actors.commands.watch_screen import draw
from actors.commands.workspace_view import named_or_live

__all__ = ["add_watch_parser", "watch"]

_DESCRIPTION = """\
Shows epochs, classes with the test that runs and its e-values, endpoints with their breakers,
actors with their mailboxes, and the last events. It only reads: run.db, the end of
logs/train.jsonl, and what the run says through its control socket. A run that is over or was
killed is shown as it stood. q or Ctrl-C leaves; the run goes on."""

_EXAMPLES = """\
examples:
  bin/trm watch                         the run under way in workspaces/, else the latest
  bin/trm watch workspaces/my-001
  bin/trm watch workspaces/my-001 --once

An e-value path is on a logarithmic scale; its top is where an edit is accepted.

exit codes: 0 done, 2 there is no such workspace"""

_WIDTH = 80
_WIDEST = 1000


def add_watch_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``watch`` and its options."""
    parser = commands.add_parser(
        "watch",
        prog="bin/trm watch",
        help="look at a run as it goes, or as it ended",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "workspace",
        nargs="?",
        type=Path,
        metavar="WORKSPACE",
        help="where the run works (default: of workspaces/ the one under way, else the latest)",
    )
    parser.add_argument(
        "--once", action="store_true", help="one picture, then leave (always without a terminal)"
    )
    parser.add_argument(
        "--every", type=_seconds, default=1.0, metavar="S", help="seconds between two pictures"
    )
    parser.set_defaults(run=watch)


def _seconds(given: str) -> float:
    seconds = float(given)
    if not 0.1 <= seconds <= 3600:
        raise ValueError(given)  # argparse makes a sentence of it
    return seconds


def watch(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    try:
        workspace = named_or_live(arguments.workspace, "bin/trm watch", alone=False)
    except OptionError as error:
        note(f"bin/trm watch: {error}")
        return USAGE
    if not (workspace / "manifest.json").is_file():
        note(f"bin/trm watch: {workspace} is no workspace (it has no manifest.json)")
        return USAGE
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    if arguments.once or not (on_terminal() and sys.stdin.isatty()):
        _once(workspace, plain=plain)
    else:
        _live(workspace, arguments.every, plain=plain)
    return DONE


def _once(workspace: Path, *, plain: bool) -> None:
    colour = on_terminal() and not os.environ.get("NO_COLOR")
    console = Console(
        width=None if on_terminal() else _width(),
        no_color=not colour,
        force_terminal=colour,
        highlight=False,
    )
    console.print(draw(read_view(workspace), plain=plain), crop=False)  # what is too wide is meant


def _width() -> int:
    """Of what is no terminal: as COLUMNS says, where that is a number of columns."""
    return min(_WIDEST, shutil.get_terminal_size((_WIDTH, 24)).columns)


class _Refused:
    """Whether --resume would be refused; every file is read for it, so once per end of a run."""

    def __init__(self) -> None:
        self._seen = self._said = False
        self._when = 0.0

    def __call__(self, workspace: Path) -> bool:
        """Asked anew once the log has grown."""
        when = 0.0
        with suppress(OSError):
            when = (workspace / "logs" / "train.jsonl").stat().st_mtime
        if not self._seen or when != self._when:
            self._seen, self._when, self._said = True, when, resume_refused(workspace)
        return self._said


def _live(workspace: Path, every_s: float, *, plain: bool) -> None:
    console = Console(highlight=False, no_color=bool(os.environ.get("NO_COLOR")))
    refused = _Refused()
    try:
        with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                view = read_view(workspace, refused)
                picture = draw(view, plain=plain, height=console.height)
                live.update(picture, refresh=True)
                if _left(every_s):
                    return
    except KeyboardInterrupt:
        return


@contextmanager
def _keys() -> Iterator[None]:
    """Keys as they are struck, without being shown; the terminal is left as it was."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _left(every_s: float) -> bool:
    """Wait; true if q was struck or nobody can strike a key any more."""
    ready, _, _ = select.select([sys.stdin], [], [], every_s)
    if not ready:
        return False
    struck = os.read(sys.stdin.fileno(), 64)
    return not struck or b"q" in struck or b"Q" in struck
