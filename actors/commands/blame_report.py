"""The report of ``trm blame``: lines with their edits, edits with what speaks for them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from rich.text import Text

from actors.commands.blame_lines import blame_lines, lines_of
from actors.commands.console import columns, hanging, show, visible
from actors.commands.html.words import count
from actors.commands.lineage import Hop, Lineage, changes_of, edit_key
from protocol.rows import EditRow

__all__ = ["BlameReport", "BlamedLine", "Origin", "origin_of", "print_blame", "report_of"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """An edit and what speaks for it.

    step: None for a slow update. op: of an edit; ``note``, ``consolidate``, ``momentum``.
    evidence: question ids. verdict: ``accept`` of the gate, ``adopted`` of the factorial gate,
    ``kept`` or ``dropped`` of the slow update, ``unknown`` while it is under way. p_gate,
    lower_bound: of the gate; lower_bound in [-1, 1]. p_harm: of the slow update. wins, losses:
    units of the gate, questions of val. in_sample: the gate tested on what the editor had read,
    too.

    Of the factorial gate epoch and step are those that proposed the edit, and tested_as its id in
    the table of edits; p, wins, losses and pairs are its pairs', effect (in [-1, 1]) its mean gain
    with the 95 % interval low to high: it was adopted for having won much, so that it is flattered.
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
    tested_as: str | None = None
    p: float | None = None
    pairs: int | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None

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
        if self.p is not None:
            parts.append(f"p {self.p:.3g}")
        if self.effect is not None:
            parts.append(f"gain {self.effect:+.1%} [{self.low:+.1%}, {self.high:+.1%}] (selected)")
        if self.wins is not None:
            of = "" if self.pairs is None else f" of {count(self.pairs, 'pair')}"
            parts.append(f"{self.wins} won {self.losses} lost{of}")
        if self.tested_as is not None:
            parts.append(f"tested as {self.tested_as}")
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
    tested = hop.tested.get(edit_key(row))
    if tested is not None:
        return msgspec.structs.replace(
            origin,
            epoch=tested.born,
            step=1,
            verdict=tested.state,
            tested_as=tested.edit_id,
            p=tested.p,
            wins=tested.wins,
            losses=tested.losses,
            pairs=tested.pairs,
            effect=tested.effect,
            low=tested.low,
            high=tested.high,
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
    """On stdout: in colour on a terminal, else plain."""
    edited = [line for line in report.lines if line.origin != "seed"]
    head = Text(
        f"{report.document}, {report.version}: {count(len(report.lines), 'line')}, {len(edited)} "
        f"of them by {count(len(report.edits), 'edit')}\n"
        f"in {report.workspace}"
    )
    show([head, *_lines(report), *_edits(report)])


def _numbers(report: BlameReport) -> dict[str, int]:
    return {key: number for number, key in enumerate(report.edits, start=1)}


def _lines(report: BlameReport) -> list[Text]:
    """Every line behind its number and its edit, broken where the terminal ends."""
    numbers, width = _numbers(report), columns()
    rows = [("line", "from", "text")]
    for line in report.lines:
        origin = report.edits.get(line.origin)
        whence = "seed"
        if origin is not None:
            whence = f"[{numbers[line.origin]}] {origin.place} {origin.verdict}"
        rows.append((str(line.line), whence, visible(line.text)))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    shown = []
    for number, (line_number, whence, text) in enumerate(rows):
        cells = f"{line_number:>{widths[0]}}  {whence:<{widths[1]}}  "
        style = "bold" if number == 0 else "dim" if whence == "seed" else ""
        shown.append(Text(hanging(cells, text, width), style))
    return shown


def _edits(report: BlameReport) -> list[Text]:
    """Every edit with all that is known of it."""
    counted, width = Counter(line.origin for line in report.lines), columns()
    shown = []
    for key, number in _numbers(report).items():
        origin = report.edits[key]
        left = count(counted[key], "line")
        shown += [
            Text(),
            Text(f"[{number}] {origin.op}, {left}, {key}", "bold"),
            Text(hanging("    ", origin.odds, width)),
            Text(hanging("    evidence: ", ", ".join(origin.evidence) or "none recorded", width)),
            Text(hanging("    reason: ", visible(" ".join(origin.reason.split())), width)),
        ]
    return shown
