"""The command line: ``bin/train`` is ``main train``, ``bin/trm`` is ``main``.

Only registers: what a command takes and does stands in ``actors/commands/<command>.py``.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from actors.places import ROOT, as_called, version
from actors.streams import StdoutLost, ready_streams

__all__ = ["COMMANDS", "build_parser", "main"]

FAILED, USAGE, INTERRUPTED = 1, 2, 130
BROKEN_PIPE = 141
"""What a shell says of a program that SIGPIPE ended, as it ends ``ls | true``."""

_LONE = re.compile(r"[\ud800-\udfff]")
"""What bytes of a file's name become that the locale's encoding does not know."""
COMMANDS = (
    "train",
    "check",
    "ask",
    "seed",
    "split",
    "diagnose",
    "status",
    "watch",
    "control",
    "blame",
    "diff",
    "patch",
    "export",
    "report",
    "tensorboard",
    "tree",
    "gate",
    "factorial",
    "answers",
    "replay",
)
"""``NAME`` is declared by ``add_NAME_parser`` of ``actors.commands.NAME``, in this order."""


class _Parser(argparse.ArgumentParser):
    """Names commands as they are called here; so do the parsers of the commands."""

    def format_usage(self) -> str:
        """The usage line."""
        self.prog = as_called(self.prog)
        return super().format_usage()

    def format_help(self) -> str:
        """The whole help."""
        self.prog = as_called(self.prog)
        return as_called(super().format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End with a code, and a message on stderr."""
        super().exit(status, None if message is None else as_called(message))


class _Version(argparse.Action):
    """Read only if it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print version, Python and the folder of what the program brings along."""
        python = ".".join(map(str, sys.version_info[:3]))
        sys.stdout.write(f"trm {version()} (Python {python}; config and demo in {ROOT})\n")
        parser.exit()


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """All commands; if ``command`` is one of them that one alone, so that no other is loaded."""
    parser = _Parser(
        prog="bin/trm",
        description="Trains the documents that steer a video question-answering agent.",
        epilog="Every command explains itself: bin/trm COMMAND --help",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in (command,) if command in COMMANDS else COMMANDS:
        module = importlib.import_module(f"actors.commands.{name}")
        getattr(module, f"add_{name}_parser")(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code (2: usage, 141: nobody reads stdout any more)."""
    ready_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(given)
    except KeyboardInterrupt:  # between what a command does: nothing of it is under way
        _tell("interrupted")
        return INTERRUPTED
    except StdoutLost as lost:
        if lost.by_reader:
            return BROKEN_PIPE
        _tell(f"{_name(given)}: {lost}")
        return FAILED
    except UnicodeEncodeError as error:
        if _LONE.search(error.object) is None:
            raise
        shown = error.object[max(0, error.start - 40) : error.end + 40].strip()
        _tell(
            f"{_name(given)}: not text in this locale: {shown!a}; give LC_ALL=C.UTF-8, or rename "
            "the file if that does not help"
        )
        return USAGE


def _name(given: list[str]) -> str:
    command = given[0] if given and given[0] in COMMANDS else ""
    if command == "train":
        return as_called("bin/train")
    return as_called(f"bin/trm {command}".strip())


def _run(given: list[str]) -> int:
    """Parse and run. What is left in stdout's buffer is written here, where a failure is told."""
    try:
        parsed = build_parser(given[0] if given else "").parse_args(given)
        code: int = parsed.run(parsed)
    except SystemExit:  # --help, or a wrong option
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _tell(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens any more
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
