"""``bin/trm status``: what a folder is, and whether it holds together."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write
from actors.places import as_called
from actors.streams import json_text

if TYPE_CHECKING:
    from actors.commands.status_parts import Facts, Status

__all__ = ["add_status_parser", "status"]

_DESCRIPTION = """\
Says what a workspace or a seed is: versions, counts, fingerprints, of a workspace also its epoch,
its best package, what it has cost, whether a process runs on it and whether --resume would go on.
Every file is held against what the others say of it; each problem comes with its remedy.

It changes nothing, takes no lock, and may be asked while a run goes on."""

_EXAMPLES = """\
examples:
  bin/trm status                        the latest run in workspaces/
  bin/trm status workspaces/my-001
  bin/trm status seeds/mine --questions videomme.json
  bin/trm status seeds/mine --json | jq .problems

exit codes: 0 consistent, 1 not, 2 there is no workspace and no seed"""


def add_status_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``status`` and its options."""
    parser = commands.add_parser(
        "status",
        prog="bin/trm status",
        help="what a workspace or seed is, and whether it holds together",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="a workspace or a seed (default: the latest in workspaces/)",
    )
    parser.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="of a seed: the questions to hold its split against (default: its questions.jsonl)",
    )
    parser.add_argument(
        "--exclude", type=Path, metavar="FILE", help="question ids that the split left out"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=status)


def status(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.status_report import inspect_folder
    from actors.commands.workspace_view import named_or_latest
    from actors.logs import configure_logs

    configure_logs(None, "critical", None)  # what is found is told below, once
    try:
        path = named_or_latest(arguments.path, "bin/trm status")
    except OptionError as error:
        note(f"bin/trm status: {error}")
        return USAGE
    found = inspect_folder(path, arguments.questions, arguments.exclude)
    if arguments.json:
        write(f"{json_text(found)}\n")
    elif found.kind == "nothing" and not found.problems:
        note(
            f"bin/trm status: {path}: no workspace and no seed; a workspace has a "
            "manifest.json, a seed has a seed.json"
        )
    else:
        write(_text(found))
    if found.problems:
        return FAILED
    return USAGE if found.kind == "nothing" else DONE


def _text(found: Status) -> str:
    """The result first, then what is wrong, then what is known."""
    from actors.commands.html.words import count

    result = "consistent"
    if found.problems:
        result = f"not consistent, {count(len(found.problems), 'problem')}"
    lines = [f"{found.path}: {found.kind}, {result}"]
    facts = _shown(found.facts)
    if "resume" in facts:
        lines.append(f"bin/train --resume {facts.pop('resume')}")
    for problem in found.problems:
        lines.append(_fitted("  ", f"{problem.where}: {problem.what}"))
        lines.append(_fitted("    -> ", problem.remedy))
    width = max((len(name) for name in facts), default=0)
    lines += [_fitted(f"  {name:<{width}}  ", _value(value)) for name, value in facts.items()]
    return as_called("\n".join(lines) + "\n")


def _fitted(first: str, text: str) -> str:
    """A fact on its line; on a terminal broken between words, its lines below each other."""
    from actors.commands.console import columns, on_terminal

    if not on_terminal():
        return first + text
    width = columns() - len(first)  # a fingerprint that is longer stays whole
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * len(first)}".join([first + (lines[0] if lines else ""), *lines[1:]])


def _shown(facts: Facts) -> Facts:
    """The facts as they are read; of pools also what of them a run leaves out."""
    shown = dict(facts)
    trained, pools = shown.pop("trained_pools", None), shown.get("pools")
    if isinstance(trained, dict) and isinstance(pools, dict):
        shown["pools"] = {
            name: f"{number} ({trained[name]} of trained classes)"
            if trained.get(name, number) != number
            else number
            for name, number in pools.items()
        }
    return shown


def _value(value: object) -> str:
    """A fact on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)
