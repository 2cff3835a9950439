"""What ``bin/train --aa`` prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from actors.commands.aa_tally import SIGNIFICANT, NullReport
from actors.tables import new_table
from protocol.documents import Package
from protocol.ledger import Spent

__all__ = ["null_tables"]

_ABOVE = """\
What may be wrong, in the order in which to look:
  cache   two arms share answers, or answers of another model are served: empty it, or run with
          --set cache.backend=none
  salts   the endpoint ignores the seed and the salt and answers copies within a batch: flips
          below would be rare then
  drift   the served model changed between the two arms: compare the endpoint's version and load
Until that is found no accepted edit of this endpoint is worth its level."""

_FROZEN = """\
No answer ever changed. Either the endpoint is deterministic (temperature 0), and a gate then sees
every difference there is; or the second draw was served from a cache that does not know the salt:
look at the endpoint's own cache."""


def null_tables(
    report: NullReport, package: Package, spent: Spent | None
) -> Sequence[RenderableType]:
    """The table and the lines below. spent: by these comparisons; None: not known."""
    table = new_table(
        f"{report.tests} null comparisons of {package} with itself",
        *("class", "units", "alpha", "tests", "accepted", "untestable", "undecided", "flips"),
    )
    for row in report.classes:
        counts = (row.tests, row.accepted, row.untestable, row.undecided)
        table.add_row(
            row.task_type,
            str(row.n_units),
            f"{row.alpha:g}",
            *map(str, counts),
            f"{row.flips.flipped}/{row.flips.pairs}",
        )
    return [table, Text(""), *(Text(line) for line in _lines(report, spent))]


def _lines(report: NullReport, spent: Spent | None) -> list[str]:
    if report.verdict == "nothing":
        return ["No comparison was made, so that nothing is known."]
    flips = report.flips
    lines = []
    if flips.pairs:
        lines.append(
            f"flip rate    {flips.flipped} of {flips.pairs} question pairs, "
            f"{flips.flipped / flips.pairs:.1%} [{report.flip_low:.1%}, {report.flip_high:.1%}] "
            f"({flips.to_right} to right, {flips.to_wrong} to wrong)"
        )
    else:
        lines.append("flip rate    no question pair: every test was untestable at once")
    lines += [
        f"accept rate  {report.accepted} of {report.tests} tests, "
        f"{report.accepted / report.tests:.1%} [{report.accept_low:.1%}, {report.accept_high:.1%}];"
        f" alpha allows {report.expected / report.tests:.1%} on average",
        _verdict(report),
    ]
    if report.frozen_answers:
        lines.append(_FROZEN)
    if report.verdict == "above":
        lines.append(_ABOVE)
    if spent is not None:
        tokens = f"{spent.prompt_tokens} / {spent.completion_tokens} tokens in / out"
        dollars = f", {spent.usd:.4f} US dollars" if spent.usd else ""
        lines.append(f"cost         {spent.calls} calls, {tokens}{dollars}")
    lines.append("95 % intervals: Wilson's of the flips, the exact one of the accepts.")
    return lines


def _verdict(report: NullReport) -> str:
    chance = f"P({report.accepted} or more | alpha) = {report.p:.2g}"
    if report.verdict == "above":
        return f"verdict      ABOVE THE LEVEL: {chance}, at most {SIGNIFICANT} is significant"
    if report.critical is None:
        return (
            f"verdict      nothing contradicts the level, and nothing could: {report.tests} tests "
            "are too few"
        )
    return (
        f"verdict      consistent with the level: {chance}; {report.critical} accepts or more "
        "would contradict it"
    )
