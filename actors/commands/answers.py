"""``bin/trm answers``: the letter of submitted answers, read as training reads it."""

from __future__ import annotations

import argparse
import json
import sys

from actors.commands.seed_options import DONE, USAGE, note, write

__all__ = ["add_answers_parser", "answers"]

_DESCRIPTION = """\
Reads lines {"text": ANY JSON VALUE, "options": ["A. ...", ...]} on stdin and prints
a line {"letter": "B" or "no answer", "why": "..."} for each, as training scores it."""

_EXAMPLES = """\
example:
  bin/trm answers < cases.jsonl

exit codes: 0 all read, 2 a line cannot be read (it is named)"""


def add_answers_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``answers``."""
    parser = commands.add_parser(
        "answers",
        prog="bin/trm answers",
        help="read the letter out of submitted answers",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=answers)


def answers(_: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.rollout.answer import rescore

    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            text, options = case["text"], case["options"]
        except (ValueError, KeyError, TypeError) as error:
            wanted = '{"text": ..., "options": [...]}'
            note(f"bin/trm answers: line {number}: {error!r}; wanted {wanted}")
            return USAGE
        write(json.dumps(rescore(text, options), ensure_ascii=False) + "\n")
    return DONE
