"""The report of ``trm blame``: lines with their edits, edits with what speaks for them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from rich.text import Text

from actors.commands.blame_lines import blame_lines, lines_of
from actors.commands.console import show, visible
from actors.commands.lineage import Hop, Lineage, changes_of, edit_key
from protocol.rows import EditRow

__all__ = ["BlameReport", "BlamedLine", "Origin", "origin_of", "print_blame", "report_of"]

_SHOWN = 2  # question ids in a line's column; the list below has all of them


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """An edit and what speaks for it.

    step: None for a slow update. op: of an edit; ``note``, ``consolidate``, ``momentum``.
    evidence: question ids. verdict: ``accept`` of the gate, ``kept`` or ``dropped`` of the slow
    update, ``unknown`` while it is under way. p_gate, lower_bound: of the gate; lower_bound in
    [-1, 1]. p_harm: of the slow update. wins, losses: units of the gate, questions of val.
    in_sample: the gate tested on what the editor had read, too.
    """

    epoch: int
    step: int | None
    op: str
    position: int
    evidence: tuple[str, ...]
    reason: str
    verdict: str
    p_gate: float | None = None
    lower_bound: float | None = None
    p_harm: float | None = None
    wins: int | None = None
    losses: int | None = None
    in_sample: bool = False

    @property
    def place(self) -> str:
        """``e1 s2`` or ``e1 slow``."""
        return f"e{self.epoch} {'slow' if self.step is None else f's{self.step}'}"

    @property
    def odds(self) -> str:
        """The verdict with its numbers, short."""
        parts = [self.verdict]
        if self.p_gate is not None:
            parts.append(f"p_gate {self.p_gate:.3g}")
        if self.lower_bound is not None:
            parts.append(f"gain >= {self.lower_bound:+.1%}")
        if self.p_harm is not None:
            parts.append(f"p_harm {self.p_harm:.3g}")
        if self.wins is not None:
            parts.append(f"{self.wins} won {self.losses} lost")
        if self.in_sample:
            parts.append("in sample")
        return ", ".join(parts)


class BlamedLine(msgspec.Struct, frozen=True):
    """A line, from 1, and where it comes from: ``seed``, or a key of ``edits``."""

    line: int
    origin: str
    text: str


class BlameReport(msgspec.Struct, frozen=True, kw_only=True):
    """A document with the origin of each line; edits: those that lines are left of, by key."""

    workspace: str
    document: str
    version: str
    lines: tuple[BlamedLine, ...]
    edits: dict[str, Origin]


def report_of(workspace: Path, history: Lineage) -> BlameReport:
    """Every line with its origin. Raises UnknownText where a line has none."""
    keys = blame_lines(history.seed, changes_of(history))
    origins = {edit_key(row): origin_of(hop, row) for hop in history.hops for row in hop.edits}
    lines = tuple(
        BlamedLine(number, key or "seed", text)
        for number, (key, text) in enumerate(
            zip(keys, lines_of(history.text), strict=True), start=1
        )
    )
    left = {key for key in keys if key is not None}
    return BlameReport(
        workspace=str(workspace),
        document=history.name,
        version=f"{history.kind}/{history.version}",
        lines=lines,
        edits={key: origin for key, origin in origins.items() if key in left},
    )


def origin_of(hop: Hop, row: EditRow) -> Origin:
    """An edit with the verdict on the change that it was part of."""
    origin = Origin(
        epoch=hop.epoch,
        step=hop.step,
        op=row.op,
        position=row.position,
        evidence=_ids(row.support),
        reason=row.reason,
        verdict="unknown",
    )
    if hop.decision is not None:
        decision = hop.decision
        return msgspec.structs.replace(
            origin,
            verdict=decision.verdict,
            p_gate=decision.p_gate,
            lower_bound=decision.lower_bound,
            wins=decision.wins,
            losses=decision.losses,
            in_sample=decision.in_sample,
        )
    if hop.slow is not None:
        slow = hop.slow
        return msgspec.structs.replace(
            origin, verdict=slow.result, p_harm=slow.p_harm, wins=slow.wins, losses=slow.losses
        )
    return origin


def _ids(support: str) -> tuple[str, ...]:
    """The question ids in a row's JSON; what is none of ours is shown as it is."""
    try:
        return msgspec.json.decode(support, type=tuple[str, ...])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return (support,) if support else ()


def print_blame(report: BlameReport) -> None:
    """On stdout: in colour on a terminal, else plain; a line of the document is one line."""
    edited = [line for line in report.lines if line.origin != "seed"]
    head = Text(
        f"{report.document}, {report.version} in {report.workspace}: {len(report.lines)} lines, "
        f"{len(edited)} of them by {len(report.edits)} edit{'' if len(report.edits) == 1 else 's'}"
    )
    show([head, *_lines(report), *_edits(report)])


def _numbers(report: BlameReport) -> dict[str, int]:
    return {key: number for number, key in enumerate(report.edits, start=1)}


def _lines(report: BlameReport) -> list[Text]:
    """The columns of every line; the document's text last, so that a terminal may wrap it."""
    numbers = _numbers(report)
    rows = [("line", "origin", "edit", "verdict", "evidence", "text")]
    for line in report.lines:
        text = visible(line.text)
        if line.origin == "seed":
            rows.append((str(line.line), "seed", "", "", "", text))
            continue
        origin = report.edits[line.origin]
        label = f"[{numbers[line.origin]}] {origin.op}"
        evidence = _short(origin.evidence)
        rows.append((str(line.line), origin.place, label, _short_odds(origin), evidence, text))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    shown = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row[:5], widths, strict=True)]
        cells[0] = row[0].rjust(widths[0])
        style = "bold" if number == 0 else "dim" if row[1] == "seed" else ""
        shown.append(Text("  ".join([*cells, row[5]]), style))
    return shown


def _short_odds(origin: Origin) -> str:
    """The verdict and its most telling numbers, for a column."""
    if origin.p_gate is not None:
        low = "" if origin.lower_bound is None else f" >={origin.lower_bound:+.0%}"
        return f"{origin.verdict} p {origin.p_gate:.2g}{low}"
    if origin.p_harm is not None:
        return f"{origin.verdict} p_harm {origin.p_harm:.2g}"
    return origin.verdict


def _short(ids: tuple[str, ...]) -> str:
    more = f" +{len(ids) - _SHOWN}" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more


def _edits(report: BlameReport) -> list[Text]:
    """Every edit with all that is known of it."""
    counted = Counter(line.origin for line in report.lines)
    shown = []
    for key, number in _numbers(report).items():
        origin = report.edits[key]
        left = f"{counted[key]} line{'' if counted[key] == 1 else 's'}"
        shown += [
            Text(),
            Text(f"[{number}] {origin.op}, {left}, {key}", "bold"),
            Text(f"    {origin.odds}"),
            Text(f"    evidence: {', '.join(origin.evidence) or 'none recorded'}"),
            Text(f"    reason: {visible(' '.join(origin.reason.split()))}"),
        ]
    return shown
