"""The tables of ``bin/trm replay`` for a run with ``gate.design: factorial``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from actors.commands.html.words import count
from actors.commands.replay_factorial import FactorialReplay
from actors.commands.replay_factorial_rules import FactorialVerdict
from actors.tables import new_table

__all__ = ["factorial_tables"]

_NOTES = """\
All rules read the same pairs, drawn with the edits switched off that the run had dropped: with
another drop_harm other documents would have been asked. unknown: an edit that the run dropped and
the rule would have kept, whose lacking pairs decide. What another rule adopts has no bound of its
false share but for factorial: q."""

_SHORT = {"adopt": "adopt", "reject": "-", "dropped": "dropped", "unknown": "?"}


def factorial_tables(report: FactorialReplay, *, decisions: bool) -> Sequence[RenderableType]:
    """What to print. decisions: also a line for each edit."""
    parts: list[RenderableType] = [_rules(report), Text(""), Text(_NOTES)]
    if any(row.false_adoptions is not None for row in report.rules):
        parts.append(
            Text(
                "The endpoint was the simulator: false are those that truly gain nothing, alone "
                "on the first\ndocuments; test gain: true, of all adopted together."
            )
        )
    if not report.sentinels_ok:
        parts.append(
            Text(
                "The run's sentinels did not look like coins: its claims are void, and factorial "
                "adopts nothing."
            )
        )
    parts += [Text(""), Text(_agreement(report))]
    parts += [Text(f"  {edit_id}: stored is another state") for edit_id in report.differing]
    if decisions:
        parts += [Text(""), _edits(report)]
    return parts


def _agreement(report: FactorialReplay) -> str:
    q, cap, drop = (float(Fraction(text)) for text in (report.q, report.cap, report.drop_harm))
    same = len(report.edits) - len(report.differing)
    line = (
        f"The run's own rule (q {q:g}, cap {cap:g}, drop_harm {drop:g}) decides {same} of "
        f"{count(len(report.edits), 'edit')} as the run did."
    )
    if not report.differing:
        return line
    return f"{line} The others: run.db was changed, or is of another version of this program."


def _rules(report: FactorialReplay) -> Table:
    table = new_table(
        f"{count(len(report.edits), 'edit')} of {report.workspace}, tested on "
        f"{count(report.pairs, 'pair')}, "
        "decided again",
        *("rule", "adopted", "rejected", "dropped", "unknown"),
        *("helpful", "useless", "harmful", "false", "test gain"),
    )
    for row in report.rules:
        counts = (row.adopted, row.rejected, row.dropped, row.unknown)
        truth = (row.helpful, row.useless, row.harmful, row.false_adoptions)
        table.add_row(
            row.rule,
            *map(str, counts),
            *("" if n is None else str(n) for n in truth),
            "" if row.test_gain is None else f"{row.test_gain:+.1%}",
        )
    return table


def _edits(report: FactorialReplay) -> Table:
    names = [row.rule for row in report.rules]
    table = new_table("", "edit", "stored", "group", "true gain", *names)
    for edit in report.edits:
        table.add_row(
            edit.edit_id,
            edit.stored,
            edit.group or "",
            "" if edit.gain is None else f"{edit.gain:+.1%}",
            *(_cell(edit.verdicts[name]) for name in names),
        )
    return table


def _cell(found: FactorialVerdict) -> str:
    if found.lacking:
        return f"{_SHORT[found.said]} ({found.lacking} lack)"
    return f"{_SHORT[found.said]} {found.wins}:{found.losses}"
