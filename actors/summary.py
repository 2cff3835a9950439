"""The tables around a run: what it can see, what became of its edits, what it cost.

Everything is read from the workspace's files, so that the same table can be made at any time.
When the endpoint was the simulator, the planted truth stands beside every verdict: no other
run can know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.estimate import (
    CALLS_PER_ROLLOUT,
    SIMULATED_CALLS_PER_ROLLOUT,
    TYPICAL,
    Rates,
    RunShape,
    estimate,
)
from actors.gate.package_power import PackagePower
from actors.ledger.reader import Reader
from actors.tables import new_table
from protocol.dataset import DataSummary, EpochPlan
from protocol.gate import PowerTable
from protocol.ledger import Where
from protocol.rows import AttemptRow, DecisionRow, DocumentRow, OutcomeRow, StepRow
from protocol.settings import TrainerSettings

__all__ = [
    "Truth",
    "calls_table",
    "cost_text",
    "edits_table",
    "packages_text",
    "preflight_table",
    "skill_texts",
    "truth_table",
    "where_lines",
]

_LOOKED = ("core", "endgame", "end")
"""Reasons of decisions that came to an accept look; the others stopped before, without a p."""

VERDICTS = ("accept", "reject", "undecided", "untestable")
_ROLE_NAMES = {"search": "agent", "judge": "judge", "evolve": "editor", "vision": "vision"}
_EMBED = "embed"
KINDS = ("helpful", "useless", "harmful")


class Truth(msgspec.Struct, frozen=True):
    """A decision with what the planted world knows of it. gain: in accuracy, [-1, 1]."""

    decision: DecisionRow
    gain: float
    kind: str


def preflight_table(
    data: DataSummary, plan: EpochPlan, power: PowerTable, trainer: TrainerSettings
) -> Group:
    """Every class with its ladder and the gains that it can see (GATE.md, before spending)."""
    table = new_table(
        f"Before spending: {data.n_questions} questions, {data.n_videos} videos, "
        f"baseline {data.baseline_run_id}",
        "class",
        "diag",
        "val",
        "test",
        "ladder",
        "wrong",
        "alpha",
        "gain seen with p=.5",
        "with p=.8",
        "steps",
        "remark",
    )
    works = {work.task_type: work for work in plan.classes}
    powers = {row.task_type: row for row in power.classes}
    steps = 0
    for row in data.classes:
        counts = (row.task_type, str(row.n_diag), str(row.n_val), str(row.n_test))
        if row.task_type not in works:
            table.add_row(*counts, "", "", "", "", "", "", row.reason)
            continue
        work, seen = works[row.task_type], powers[row.task_type]
        own = len(work.batches[: trainer.max_batches]) * trainer.epochs
        steps += own
        remark = "in sample" if work.in_sample else ""
        table.add_row(
            *counts,
            str(seen.n_units),
            str(seen.n_wrong),
            f"{seen.alpha:g}",
            _gain(seen.gain_50),
            _gain(seen.gain_80),
            str(own),
            remark if seen.testable else "untestable",
        )
    lines = [
        f"At most {steps} gate decisions in {trainer.epochs} epochs.",
        "ladder: units (a class's questions in one video) that the gate tests on; wrong: of them",
        "in the baseline; gain: the share of units that an edit must truly win to be accepted with",
        "that probability; in sample: too few videos to keep the tested ones from the editor, so",
        "that only val shows whether an edit generalises; untestable: nothing could be accepted.",
    ]
    return Group(table, Text("\n".join(lines)))


def packages_text(pools: Sequence[tuple[str, PackagePower]]) -> Text:
    """What val and test can see of a whole package (exact one-sided McNemar)."""
    lines = [
        f"A whole package on {name}, {power.n_questions} questions at {power.alpha:g}: "
        f"{_gain(power.gain_50)} is found with p=.5, {_gain(power.gain_80)} with p=.8."
        for name, power in pools
    ]
    return Text("\n".join(lines))


def cost_text(shape: RunShape, *, simulated: bool) -> Text:
    """What the configured epochs will buy, by the model of ``actors.estimate``.

    simulated: rollouts are as short as the simulator makes them.
    """
    calls = SIMULATED_CALLS_PER_ROLLOUT if simulated else CALLS_PER_ROLLOUT
    rates = Rates(
        search=TYPICAL["search"],
        judge=TYPICAL["judge"],
        evolve=TYPICAL["evolve"],
        calls_per_rollout=calls,
        concurrency=1,
    )
    made = estimate(shape, rates)
    return Text(
        f"Expected: {made.all_rollouts.expected:,.0f} (at most {made.all_rollouts.most:,.0f}) "
        f"rollouts, {made.all_calls.expected:,.0f} (at most {made.all_calls.most:,.0f}) calls at "
        f"{calls:g} per rollout; bin/train --check measures tokens, money and hours."
    )


def _gain(share: float | None) -> str:
    return "out of reach" if share is None else f"+{share:.0%}"


def edits_table(reader: Reader) -> Table:
    """What became of each class's steps."""
    table = new_table(
        "Candidates by class",
        "class",
        "steps",
        "proposed",
        "accepted",
        "rejected",
        "untestable",
        "undecided",
    )
    results: dict[str, Counter[str]] = {}
    for row in reader.rows(StepRow):
        results.setdefault(row.task_type, Counter())[row.result] += 1
    total = sum(results.values(), Counter[str]())
    for name, counted in [*sorted(results.items()), ("all", total)]:
        proposed = sum(counted[verdict] for verdict in VERDICTS)
        table.add_row(
            name,
            str(counted.total()),
            str(proposed),
            *(str(counted[v]) for v in ("accept", "reject", "untestable", "undecided")),
        )
    return table


def truth_table(truths: Sequence[Truth]) -> Group:
    """Verdict against planted truth, then every decision on a line."""
    table = new_table("Verdicts against the planted truth", "verdict", *KINDS)
    counted = Counter((truth.decision.verdict, truth.kind) for truth in truths)
    for verdict in VERDICTS:
        cells = [counted[verdict, kind] for kind in KINDS]
        if any(cells):
            table.add_row(verdict, *map(str, cells))
    lines = new_table(
        "", "step", "verdict", "reason", "units", "W", "L", "p_gate", "true gain", "truly"
    )
    for truth in sorted(truths, key=lambda truth: truth.decision.run_key):
        row = truth.decision
        lines.add_row(
            row.run_key + (" (in sample)" if row.in_sample else ""),
            row.verdict,
            row.reason,
            f"{row.evaluated}/{row.n_units}",
            str(row.wins),
            str(row.losses),
            f"{row.p_gate:.3f}" if row.reason in _LOOKED else "-",
            f"{truth.gain:+.1%}",
            truth.kind,
        )
    known = Text(
        "The endpoint was the simulator, so the truth is known: the gain over the whole class.\n"
        "reason: core, endgame, end: decided at a look (p_gate: its p-value); futile_exact,\n"
        "futile_power: acceptance had become impossible or unlikely; harm: evidence of harm;\n"
        "guardrail: too many losses on safe questions. W, L: units won and lost to the baseline."
    )
    return Group(table, known, lines)


def calls_table(reader: Reader, restarts: int, seconds: float) -> Table:
    """What it cost, and what went wrong on the way."""
    every = reader.rows(AttemptRow)
    attempts = [row for row in every if row.role != _EMBED]
    embedded = [row for row in every if row.role == _EMBED]
    by_outcome = Counter(row.outcome for row in attempts)
    cached = by_outcome.pop("cached", 0)
    failed = {kind: n for kind, n in sorted(by_outcome.items()) if kind != "ok"}
    missing = Counter(
        row.missing_kind
        for row in reader.rows(OutcomeRow, Where(column="outcome", value="missing"))
    )
    table = new_table("Cost", "", "")
    table.show_header = False
    table.add_row("model calls answered", str(by_outcome["ok"]))
    table.add_row("answered from the cache", str(cached))
    table.add_row("failed tries", _counts(failed))
    for role, name in _ROLE_NAMES.items():
        own = [row for row in attempts if row.role == role]
        if own:
            table.add_row(f"tokens in / out, {name}", _tokens(own))
    table.add_row("tokens in / out, all", _tokens(attempts))
    if any(row.usd is not None for row in attempts):
        unpriced = sum(row.usd is None and row.outcome != "cached" for row in attempts)
        note = f" ({unpriced} tries without a price)" if unpriced else ""
        table.add_row("US dollars", f"{sum(row.usd or 0.0 for row in attempts):.4f}{note}")
    if embedded:
        failures = sum(row.outcome != "ok" for row in embedded)
        tokens = sum(row.prompt_tokens for row in embedded)
        told = f"{len(embedded)}, of which {failures} failed; {tokens} tokens"
        table.add_row("embedding requests", told)
    table.add_row("missing outcomes", _counts({str(k): n for k, n in missing.items()}))
    table.add_row("actor restarts", str(restarts))
    table.add_row("seconds in this process", f"{seconds:.1f}")
    return table


def _tokens(attempts: Sequence[AttemptRow]) -> str:
    sent = sum(row.prompt_tokens for row in attempts)
    return f"{sent} / {sum(row.completion_tokens for row in attempts)}"


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in counted.items()) if counted else "0"


def skill_texts(reader: Reader) -> dict[str, str]:
    """Every skill text that the run tested, by hash."""
    return {row.hash: row.text for row in reader.rows(DocumentRow)}


def where_lines(workspace: Path, resume: str, *, further: bool = True) -> Text:
    """Where everything lies, and the line that trains further; further: that may be done."""
    names = {
        "documents": "skills/ and prompts/ (vN, never edited)",
        "what happened": "run.db (steps, edits, decisions, outcomes, traces)",
        "log": "logs/train.jsonl",
        "settings": "config.yaml",
    }
    lines = [f"Workspace {workspace}"]
    lines += [f"  {what:<14} {where}" for what, where in names.items()]
    if further:
        lines += [f"To train further: {resume} --set trainer.epochs=N"]
    return Text("\n".join(lines))
