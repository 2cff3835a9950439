"""``bin/trm factorial``: the factorial gate's decision over edits counted by hand."""

from __future__ import annotations

import argparse
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import DONE, USAGE, note, write

if TYPE_CHECKING:
    from actors.gate.factorial.stepup import Evidence, StepUp

__all__ = ["add_factorial_parser", "factorial"]

_DESCRIPTION = """\
Decides which edits of a run are adopted, as the factorial gate does at a run's end: a discrete
step-up over all edits that the run has ever proposed, exact in rationals. Of the adopted edits
at most a share q is expected to change nothing."""

_EXAMPLES = """\
example:
  bin/trm factorial edits.json --q 3/20
  echo '[{"id": "e1", "W": 9, "L": 1}, {"id": "e2", "W": 1, "L": 2}]' | bin/trm factorial - --q 0.15

EDITS.json: a list of edits; - is stdin. An edit:
  {"id": "e1", "W": 9, "L": 1, "dropped": false, "D_seen": 10, "group": null}
W, L: discordant pairs won and lost. dropped: turned off during the run (default: false).
D_seen: discordant pairs since its birth, read of a dropped edit only, which needs it.
group: edits of one group exclude each other, at most one is adopted (default: none).
A sentinel does not belong into the list.

--json prints one object: adopted (ids), tau (no larger p can be adopted), cut (the largest p
that was; null: none), p (one per edit), n (how many are adopted).

exit codes: 0 decided, 2 the edits or the options cannot be used"""

_RATIONAL = re.compile(r"(\d+)/(\d+)|(\d*\.?\d+|\d+\.)")
_MOST = 5_000
_WANTED = 'wanted: [{"id": "...", "W": 0, "L": 0, "dropped": false, "D_seen": 0}, ...]'


class _InputError(ValueError):
    """The file cannot be used; the message names it, the key, and what to do."""


def add_factorial_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``factorial`` and its options."""
    parser = commands.add_parser(
        "factorial",
        prog="bin/trm factorial",
        help="decide edits that were tested together, by hand",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("edits", type=Path, metavar="EDITS.json", help="the edits; - is stdin")
    parser.add_argument(
        "--q",
        type=_rational,
        required=True,
        metavar="Q",
        help="bound of the false discovery rate, exact: 3/20 or 0.15",
    )
    parser.add_argument(
        "--cap",
        type=_rational,
        default=Fraction(1, 10),
        metavar="C",
        help="the largest p that may be adopted, exact (default: 1/10)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=factorial)


def _rational(text: str) -> Fraction:
    found = _RATIONAL.fullmatch(text) if text.isascii() and len(text) <= 40 else None
    value = Fraction(0)
    if found and not (found[2] and int(found[2]) == 0):
        value = Fraction(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be a number above 0 and below 1, such as 3/20 or 0.15"
        )
    return value


def factorial(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    import msgspec

    from actors.gate.factorial.stepup import step_up

    try:
        edits = _read(arguments.edits)
        decided = step_up(edits, arguments.q, arguments.cap)
    except ValueError as error:
        note(f"bin/trm factorial: {error}")
        return USAGE
    if arguments.json:
        write(
            msgspec.json.encode(
                {
                    "adopted": decided.adopted,
                    "tau": float(decided.tau),
                    "cut": None if decided.cut is None else float(decided.cut),
                    "p": [float(p) for p in decided.p],
                    "n": len(decided.adopted),
                }
            ).decode()
            + "\n"
        )
    else:
        write("\n".join(_lines(edits, decided)) + "\n")
    return DONE


def _lines(edits: tuple[Evidence, ...], decided: StepUp) -> list[str]:
    """The decision for people: what may be adopted, then an edit a line."""
    from actors.commands.console import visible

    lines = []
    for edit, p in zip(edits, decided.p, strict=True):
        if edit.dropped:
            verdict = "dropped"
        elif edit.edit_id in decided.adopted:
            verdict = "adopt"
        elif decided.cut is not None and p <= decided.cut:
            verdict = "reject (another of its group is adopted)"
        else:
            verdict = "reject"
        lines.append(
            f"{visible(edit.edit_id)}: W {edit.wins}  L {edit.losses}  D {edit.discordant}  "
            f"p {float(p):.4g}  {verdict}"
        )
    cut = "no p is small enough" if decided.cut is None else f"cut {float(decided.cut):.4g}"
    lines.append(
        f"{len(decided.adopted)} of {len(edits)} adopted; tau {float(decided.tau):.4g}, {cut}"
    )
    return lines


def _read(path: Path) -> tuple[Evidence, ...]:
    """The edits of a file, or of stdin for ``-``. Raises _InputError."""
    import msgspec

    class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        id: str
        W: int
        L: int
        dropped: bool = False
        D_seen: int | None = None
        group: str | None = None

    name = "stdin" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if name == "stdin" else path.read_bytes()
    except OSError as error:
        raise _InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    try:
        given = msgspec.json.decode(data, type=list[Given])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _InputError(f"{name}: {error}; {_WANTED}") from error
    _check_keys(name, data)
    seen: set[str] = set()
    edits = []
    for place, edit in enumerate(given):
        problem = ""
        if not edit.id.strip():
            problem = "id: is empty; every edit needs one"
        elif edit.group is not None and not edit.group.strip():
            problem = f"group: of {edit.id!r} is empty; leave it out, or give null, for none"
        elif edit.id in seen:
            problem = f"id: {edit.id!r} comes twice; every edit needs its own"
        elif min(edit.W, edit.L, edit.D_seen or 0) < 0:
            problem = "W, L and D_seen cannot be negative"
        elif edit.dropped and edit.D_seen is None:
            problem = "D_seen: is missing; a dropped edit needs it"
        elif edit.D_seen is not None and edit.D_seen < edit.W + edit.L:
            problem = f"D_seen: {edit.D_seen} is less than W + L, {edit.W + edit.L}"
        elif max(edit.W + edit.L, edit.D_seen or 0) > _MOST:
            problem = f"more than {_MOST} discordant pairs; that many are not decided by hand"
        if problem:
            raise _InputError(f"{name}: edits[{place}].{problem}")
        seen.add(edit.id)
        edits.append(_evidence(edit.id, edit.W, edit.L, edit.dropped, edit.D_seen, edit.group))
    return tuple(edits)


def _check_keys(name: str, data: bytes) -> None:
    """Refuse an edit that says a thing twice: which of the two is meant?

    data: a list of flat objects, as was seen before. Raises _InputError.
    """
    import json

    place = 0

    def once(pairs: list[tuple[str, object]]) -> None:
        nonlocal place
        keys = [key for key, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise _InputError(f"{name}: edits[{place}].{key}: is given twice; leave one")
        place += 1

    json.loads(data, object_pairs_hook=once)


def _evidence(
    edit_id: str, wins: int, losses: int, dropped: bool, seen: int | None, group: str | None
) -> Evidence:
    from actors.gate.factorial.stepup import Evidence

    return Evidence(
        edit_id=edit_id,
        wins=wins,
        losses=losses,
        dropped=dropped,
        seen=wins + losses if seen is None else seen,
        group=group,
    )
