"""``bin/trm gate``: the gate's sequential test over outcomes typed by hand."""

from __future__ import annotations

import argparse

from actors.commands.seed_options import DONE, USAGE, note, write

__all__ = ["add_gate_parser", "gate"]

_DESCRIPTION = """\
Runs the gate's sequential test over outcomes typed by hand. Every block is a look,
the last one the endgame. W: right with the candidate only, L: with the current
skill only, T: a tie, M: missing (excluded)."""

_EXAMPLES = """\
example:
  bin/trm gate "WWTL WTTW WWWW" --alpha 0.1

exit codes: 0 judged, 2 the outcomes cannot be used"""


def add_gate_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``gate`` and its options."""
    parser = commands.add_parser(
        "gate",
        prog="bin/trm gate",
        help="decide a sequence of outcomes by hand",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
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
    parser.set_defaults(run=gate)


def gate(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    import msgspec

    from actors.gate.by_hand import judge_blocks

    try:
        judged = judge_blocks(
            arguments.blocks.upper().split(" "), arguments.alpha, arguments.wrong_remaining
        )
    except ValueError as error:
        note(f"bin/trm gate: {error}")
        return USAGE
    if arguments.json:
        write(msgspec.json.encode(judged).decode() + "\n")
        return DONE
    lines = [
        f"look {number}: W {block.W}  L {block.L}  T {block.T}  missing {block.missing}  "
        f"e {block.e:.4g}"
        for number, block in enumerate(judged.blocks, start=1)
    ]
    where = "" if judged.accept_block is None else f" at look {judged.accept_block}"
    lines.append(f"{judged.verdict}{where} ({judged.reason}), p_gate {judged.p_gate:.4g}")
    write("\n".join(lines) + "\n")
    return DONE
