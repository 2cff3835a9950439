"""The tables of ``bin/trm replay``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from actors.commands.html.words import count, verb
from actors.commands.replay_rules import Redecided
from actors.commands.replay_tally import Replayed, RuleTally
from actors.tables import new_table

__all__ = ["tables"]

_NOTES = """\
Each decision by itself, on the skill that stood then: another rule would have come to other skills.
unknown: the rule needs answers that the gate, having stopped, did not ask for, and its verdict
hangs on them. won, lost: units of the accepted candidates, of those that the rule looked at."""

_SAID = {
    "accept": "accept",
    "reject": "-",
    "untestable": "untestable",
    "undecided": "undecided",
    "unknown": "?",
}


def tables(report: Replayed, *, decisions: bool) -> Sequence[RenderableType]:
    """What to print. decisions: also a line for each."""
    parts: list[RenderableType] = [_rules(report), Text(""), Text(_NOTES)]
    if any(row.false_accepts is not None for row in report.rules):
        parts.append(
            Text("The endpoint was the simulator: false are those that truly gain nothing.")
        )
    parts += [Text(_short(row, report)) for row in report.rules if row.short]
    parts += [Text(""), Text(_agreement(report))]
    parts += [Text(f"  {key}: stored is another verdict") for key in report.differing]
    if report.lost:
        parts.append(
            Text(
                f"{count(len(report.lost), 'decision')} cannot be rebuilt and "
                f"{verb(len(report.lost), 'is', 'are')} left out:"
            )
        )
        parts += [Text(f"  {key}: {why}") for key, why in sorted(report.lost.items())]
    if decisions:
        parts += [Text(""), _decisions(report)]
    return parts


def _short(row: RuleTally, report: Replayed) -> str:
    """What becomes of a minibatch that is larger than a ladder."""
    return (
        f"{row.rule}: {row.short} of {count(row.tests, 'ladder')} "
        f"{verb(row.short, 'has', 'have')} fewer questions (the longest {report.longest}); the "
        "whole ladder was taken there."
    )


def _agreement(report: Replayed) -> str:
    line = (
        f"The gate as configured (profile {report.profile}) decides {report.same} of "
        f"{report.compared} as the run did."
    )
    if report.identical:
        line += (
            f" {count(report.identical, 'candidate')} {verb(report.identical, 'was', 'were')} the "
            "text that stood, and no test was made."
        )
    if report.same == report.compared:
        return line
    return (
        f"{line} The others: a setting of the gate was changed during the run (--accept-change), "
        "or run.db is of another version of this program."
    )


def _rules(report: Replayed) -> Table:
    table = new_table(
        f"{count(report.tests, 'gate decision')} of {report.workspace}, decided again",
        *("rule", "accepted", "rejected", "untestable", "undecided", "unknown"),
        *("helpful", "useless", "harmful", "false", "won", "lost"),
    )
    for row in report.rules:
        counts = (row.accepted, row.rejected, row.untestable, row.undecided, row.unknown)
        truth = (row.helpful, row.useless, row.harmful, row.false_accepts)
        table.add_row(
            row.rule,
            *map(str, counts),
            *("" if n is None else str(n) for n in truth),
            str(row.wins),
            str(row.losses),
        )
    return table


def _decisions(report: Replayed) -> Table:
    names = [row.rule for row in report.rules]
    table = new_table("", "step", "stored", "units", "true gain", *names)
    for test in report.decisions:
        table.add_row(
            test.run_key + (" (in sample)" if test.in_sample else ""),
            test.stored,
            f"{test.evaluated}/{test.n_units}",
            "" if test.gain is None else f"{test.gain:+.1%}",
            *(_cell(test.verdicts[name]) for name in names),
        )
    return table


def _cell(found: Redecided) -> str:
    if found.verdict == "unknown":
        return f"? ({found.lacking} more)"
    return _SAID[found.verdict]
