"""``bin/trm control``: pause a run, let it go on, stop it, change its pace."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import get_args

import msgspec

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write
from actors.commands.workspace_view import named_or_live
from actors.monitor.client import NoRun, ask_run
from actors.monitor.status_words import status_lines
from actors.monitor.wishes import Verb, Wish, read_wish

__all__ = ["add_control_parser", "control"]

_DESCRIPTION = """\
Speaks to the run in WORKSPACE through its Unix socket, which only the account that runs it can use.

  pause            no new call begins; what is in flight finishes. Answers from the cache still
                   come. No clock of a rollout or of an outage runs meanwhile
  resume           go on
  stop             finish what is in hand, then stop (as SIGTERM does); --resume goes on
  stop-now         stop at once; --resume goes on
  status           how everything stands
  concurrency N    at most N requests in flight per endpoint, or of the one named by --endpoint"""

_VERBS: tuple[str, ...] = get_args(Verb)
_NUMBER = re.compile("[0-9]{1,9}")

_EXAMPLES = """\
examples:
  bin/trm control pause                 the run that is under way in workspaces/
  bin/trm control workspaces/my-001 pause
  bin/trm control workspaces/my-001 concurrency 8 --endpoint agent-a
  bin/trm control workspaces/my-001 status --json | jq .progress.eta_s

exit codes: 0 done, 1 it was refused or nobody listens, 2 usage"""


def add_control_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``control`` and its options."""
    parser = commands.add_parser(
        "control",
        prog="bin/trm control",
        help="pause, resume, stop a run that is under way, or change its pace",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] [--endpoint NAME] [--json] [WORKSPACE] WHAT [N]",
    )
    parser.add_argument(
        "words",
        nargs="+",
        action=_Words,
        metavar="WORD",
        help="where the run works (default: of workspaces/ the one under way; of several none), "
        "one of the above, and N",
    )
    parser.add_argument("--endpoint", metavar="NAME", help="concurrency: of this endpoint alone")
    parser.add_argument("--json", action="store_true", help="the whole reply as one JSON object")
    parser.set_defaults(run=control)


class _Words(argparse.Action):
    """``[WORKSPACE] WHAT [N]``: a first word that is a WHAT leaves the workspace out."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        words: object,
        option: str | None = None,
    ) -> None:
        """Sort them, or end with what is wrong."""
        assert isinstance(words, list), "nargs is +"
        left = [str(word) for word in words]
        namespace.workspace = None if left[0] in _VERBS else Path(left.pop(0))
        if not left or left[0] not in _VERBS:
            given = f"{left[0]!r} is none" if left else f"none follows {namespace.workspace}"
            parser.error(f"WHAT must be one of {', '.join(_VERBS)}; {given}")
        namespace.do, *rest = left
        namespace.value = None
        if len(rest) > 1 or (rest and not _NUMBER.fullmatch(rest[0])):
            parser.error(
                f"{' '.join(rest)}: only a number may follow {namespace.do}, of nine digits at most"
            )
        if rest:
            namespace.value = int(rest[0])


def control(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    wish = Wish(do=arguments.do, value=arguments.value, endpoint=arguments.endpoint)
    wrong = _wrong(wish)
    if wrong:
        note(f"bin/trm control: {wrong}")
        return USAGE
    try:
        workspace = named_or_live(arguments.workspace, "bin/trm control", alone=True)
    except OptionError as error:
        note(f"bin/trm control: {error}")
        return USAGE
    if not workspace.is_dir():
        note(f"bin/trm control: {workspace} is no folder")
        return USAGE
    try:
        reply = ask_run(workspace, wish)
    except NoRun as error:
        note(f"bin/trm control: {workspace}: {error}")
        return FAILED
    if arguments.json:
        write(msgspec.json.encode(reply).decode() + "\n")
    elif not reply.ok:
        note(f"bin/trm control: {reply.line}")
    elif wish.do == "status":
        write("\n".join(status_lines(reply.status)) + "\n")
    else:
        write(reply.line + "\n")
    sys.stdout.flush()
    return DONE if reply.ok else FAILED


def _wrong(wish: Wish) -> str:
    """What cannot be meant, before anybody is asked."""
    read = read_wish(msgspec.json.encode(wish))
    if isinstance(read, str):
        return read
    if wish.do != "concurrency" and (wish.value is not None or wish.endpoint is not None):
        return f"{wish.do} takes neither a number nor --endpoint"
    return ""
