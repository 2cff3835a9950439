"""The command line: ``bin/train`` is ``main train``, ``bin/trm`` is ``main``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

__all__ = ["main"]

USAGE = 2

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _train_parser(commands: Commands) -> None:
    from actors.commands.train import add_train_parser

    add_train_parser(commands)


def _ask_parser(commands: Commands) -> None:
    from actors.commands.ask import add_ask_parser

    add_ask_parser(commands)


def _seed_parser(commands: Commands) -> None:
    from actors.commands.seed import add_seed_parser

    add_seed_parser(commands)


def _split_parser(commands: Commands) -> None:
    from actors.commands.split import add_split_parser

    add_split_parser(commands)


def _diagnose_parser(commands: Commands) -> None:
    from actors.commands.diagnose import add_diagnose_parser

    add_diagnose_parser(commands)


def _status_parser(commands: Commands) -> None:
    from actors.commands.status import add_status_parser

    add_status_parser(commands)


def _tree_parser(commands: Commands) -> None:
    from actors.commands.tree import add_tree_parser

    add_tree_parser(commands)


def _gate_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "gate",
        help="decide a sequence of outcomes by hand",
        description=(
            "Runs the gate's sequential test over outcomes typed by hand. Every block is a look,\n"
            "the last one the endgame. W: right with the candidate only, L: with the current\n"
            "skill only, T: a tie, M: missing (excluded)."
        ),
        epilog='example:\n  bin/trm gate "WWTL WTTW WWWW" --alpha 0.1',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("blocks", metavar="BLOCKS", help="outcomes, blocks separated by spaces")
    parser.add_argument("--alpha", type=float, default=0.1, help="error level (default: 0.1)")
    parser.add_argument(
        "--wrong-remaining",
        type=int,
        metavar="N",
        help="units still to come that the baseline has wrong: says whether it is futile",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=_gate)


def _gate(arguments: argparse.Namespace) -> int:
    from actors.gate.by_hand import judge_blocks

    try:
        judged = judge_blocks(
            arguments.blocks.upper().split(" "), arguments.alpha, arguments.wrong_remaining
        )
    except ValueError as error:
        sys.stderr.write(f"bin/trm gate: {error}\n")
        return USAGE
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(judged).decode() + "\n")
        return 0
    for number, block in enumerate(judged.blocks, start=1):
        sys.stdout.write(
            f"look {number}: W {block.W}  L {block.L}  T {block.T}  missing {block.missing}  "
            f"e {block.e:.4g}\n"
        )
    where = "" if judged.accept_block is None else f" at look {judged.accept_block}"
    sys.stdout.write(f"{judged.verdict}{where} ({judged.reason}), p_gate {judged.p_gate:.4g}\n")
    return 0


def _answers_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "answers",
        help="read the letter out of submitted answers",
        description=(
            'Reads lines {"text": ANY JSON VALUE, "options": ["A. ...", ...]} on stdin and prints\n'
            'a line {"letter": "B" or "no answer", "why": "..."} for each, as training scores it.'
        ),
        epilog="example:\n  bin/trm answers < cases.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_answers)


def _answers(_: argparse.Namespace) -> int:
    from actors.rollout.answer import rescore

    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            text, options = case["text"], case["options"]
        except (ValueError, KeyError, TypeError) as error:
            wanted = '{"text": ..., "options": [...]}'
            sys.stderr.write(f"bin/trm answers: line {number}: {error!r}; wanted {wanted}\n")
            return USAGE
        sys.stdout.write(json.dumps(rescore(text, options), ensure_ascii=False) + "\n")
    return 0


_PARSERS: dict[str, Callable[[Commands], None]] = {
    "train": _train_parser,
    "ask": _ask_parser,
    "seed": _seed_parser,
    "split": _split_parser,
    "diagnose": _diagnose_parser,
    "status": _status_parser,
    "tree": _tree_parser,
    "gate": _gate_parser,
    "answers": _answers_parser,
}


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """All commands; if ``command`` is one of them that one alone, so that no other is loaded."""
    parser = argparse.ArgumentParser(
        prog="trm",
        description="Trains the documents that steer a video question-answering agent.",
        epilog="Every command explains itself: bin/trm COMMAND --help",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, declare in _PARSERS.items():
        if command not in _PARSERS or command == name:
            declare(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code (2: usage)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parsed = build_parser(given[0] if given else "").parse_args(given)
    code: int = parsed.run(parsed)
    return code


if __name__ == "__main__":
    sys.exit(main())
