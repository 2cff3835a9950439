"""``bin/trm blame``: which edit every line of a document comes from, and what speaks for it."""

from __future__ import annotations

import argparse
from pathlib import Path

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write

__all__ = ["add_blame_parser", "blame"]

_COMMAND = "bin/trm blame"

_DESCRIPTION = """\
Says for every line of a skill, the system prompt or a tool prompt where it comes from: "seed", or
the edit that wrote it. Below stands every edit with the questions that it answers to, and the
verdict that let it in: of the gate (p_gate: how probable such evidence is if the edit changes
nothing; the lower bound of its gain), or of the slow update (questions of val won and lost, and how
probable such losses are by chance).

It replays what run.db has recorded from the seed's text on. A text that was changed by hand has no
such way back and is refused. Reads only, also while a run goes on."""

_EXAMPLES = """\
examples:
  bin/trm blame "Counting Problem"
      the best version of the latest run in workspaces/
  bin/trm blame counting-problem --workspace workspaces/my-001 --version v2
  bin/trm blame workspaces/my-001/skills/v3/counting-problem.md
  bin/trm blame system --workspace workspaces/my-001 --json | jq '.edits | keys'

exit codes: 0 done, 1 the text is not what was recorded, 2 there is no such document or workspace"""


def add_blame_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``blame`` and its options."""
    parser = commands.add_parser(
        "blame",
        prog="bin/trm blame",
        help="which edit every line of a document comes from",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "document",
        nargs="?",
        metavar="SKILL",
        help="a class or its file's name, `system`, a tool; or a file in a workspace; "
        "left out: which there are",
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="W",
        help="the workspace (default: the file's own, or the latest in workspaces/)",
    )
    parser.add_argument(
        "--version",
        metavar="vN",
        help="of the skills, of the prompts for a prompt (default: of the manifest's best_hard)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=blame)


def blame(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.lineage import UnknownText
    from actors.config import ConfigError
    from actors.workspace.errors import WorkspaceError

    try:
        return _blame(arguments)
    except (OptionError, ConfigError, OSError) as error:
        note(f"bin/trm blame: {error}")
        return USAGE
    except (UnknownText, WorkspaceError) as error:
        note(f"bin/trm blame: {error}")
        return FAILED


def _blame(arguments: argparse.Namespace) -> int:
    import msgspec

    from actors.commands.blame_report import print_blame, report_of
    from actors.commands.documents import documents_there_are, find_document
    from actors.commands.lineage import lineage
    from actors.commands.workspace_view import RUN_DB, workspace_ledger

    if arguments.document is None or Path(arguments.document).is_dir():
        given = None if arguments.document is None else Path(arguments.document)
        raise OptionError(documents_there_are(given, arguments.workspace, _COMMAND))
    found = find_document(arguments.document, arguments.workspace, arguments.version, _COMMAND)
    if (found.workspace / RUN_DB).is_file():
        with workspace_ledger(found.workspace) as reader:
            history = lineage(found.workspace, reader, found.kind, found.version, found.name)
    else:
        history = lineage(found.workspace, None, found.kind, found.version, found.name)
    report = report_of(found.workspace, history)
    if arguments.json:
        write(msgspec.json.encode(report).decode() + "\n")
    else:
        print_blame(report)
    return DONE
