"""The command line: ``bin/train`` is ``main train``, ``bin/trm`` is ``main``.

Only registers: what a command takes and does stands in ``actors/commands/<command>.py``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS = (
    "train",
    "ask",
    "seed",
    "split",
    "diagnose",
    "status",
    "blame",
    "diff",
    "patch",
    "export",
    "report",
    "tree",
    "gate",
    "factorial",
    "answers",
    "replay",
)
"""``NAME`` is declared by ``add_NAME_parser`` of ``actors.commands.NAME``, in this order."""


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """All commands; if ``command`` is one of them that one alone, so that no other is loaded."""
    parser = argparse.ArgumentParser(
        prog="bin/trm",
        description="Trains the documents that steer a video question-answering agent.",
        epilog="Every command explains itself: bin/trm COMMAND --help",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in (command,) if command in COMMANDS else COMMANDS:
        module = importlib.import_module(f"actors.commands.{name}")
        getattr(module, f"add_{name}_parser")(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code (2: usage)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parsed = build_parser(given[0] if given else "").parse_args(given)
    code: int = parsed.run(parsed)
    return code


if __name__ == "__main__":
    sys.exit(main())
