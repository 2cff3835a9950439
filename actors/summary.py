"""The table at the end of a run: what was learnt, how sure that is, and what it cost.

Everything is read from the workspace's files, so that the same table can be made at any time.
When the endpoint was the simulator, the planted truth stands beside every verdict: no other
run can know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from actors.ledger.reader import Reader
from actors.trainer.score import mcnemar, wilson
from protocol.dataset import DataSummary, EpochPlan, Question
from protocol.documents import Package
from protocol.gate import PowerTable
from protocol.ledger import (
    AttemptRow,
    DecisionRow,
    DocumentRow,
    EpochRow,
    EvaluationRow,
    OutcomeRow,
    StepRow,
    Where,
)
from protocol.settings import TrainerSettings

__all__ = [
    "Truth",
    "accuracy_table",
    "calls_table",
    "edits_table",
    "epochs_table",
    "preflight_table",
    "render",
    "right_by_question",
    "skill_texts",
    "truth_table",
    "where_lines",
]

_LOOKED = ("core", "endgame", "end")
"""Reasons of decisions that came to an accept look; the others stopped before, without a p."""

VERDICTS = ("accept", "reject", "undecided", "untestable")
_ROLE_NAMES = {"search": "agent", "judge": "judge", "evolve": "editor", "vision": "vision"}
KINDS = ("helpful", "useless", "harmful")


class Truth(msgspec.Struct, frozen=True):
    """A decision with what the planted world knows of it. gain: in accuracy, [-1, 1]."""

    decision: DecisionRow
    gain: float
    kind: str


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def _share(right: int, planned: int) -> str:
    """``48/60  80.0 [68.2, 88.2]``: the count, the percentage, Wilson's 95 % interval."""
    if planned == 0:
        return "-"
    low, high = wilson(right, planned)
    return f"{right}/{planned}  {right / planned:6.1%} [{low:.0%}, {high:.0%}]"


def preflight_table(
    data: DataSummary, plan: EpochPlan, power: PowerTable, trainer: TrainerSettings
) -> Group:
    """Every class with its ladder and the gains that it can see (GATE.md, before spending)."""
    table = _table(
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


def _gain(share: float | None) -> str:
    return "out of reach" if share is None else f"+{share:.0%}"


def epochs_table(reader: Reader) -> Group:
    """One line per whole epoch, the seed's pass first."""
    table = _table(
        "Epochs (accuracy on val, 95 % interval)",
        "epoch",
        "package",
        "val",
        "missing",
        "tests",
        "accepted",
        "expected false accepts <=",
    )
    rows = {row.epoch: row for row in reader.rows(EpochRow)}
    for evaluation in sorted(reader.rows(EvaluationRow), key=lambda row: row.epoch):
        if evaluation.pool != "val" or evaluation.kind not in ("seed", "final"):
            continue
        epoch = rows.get(evaluation.epoch)
        table.add_row(
            "seed" if evaluation.epoch == 0 else str(evaluation.epoch),
            str(Package(skills=evaluation.skills_version, prompts=evaluation.prompts_version)),
            _share(evaluation.right, evaluation.planned),
            str(evaluation.missing),
            *(
                ("", "", "")
                if epoch is None
                else (str(epoch.tests), str(epoch.accepted), f"{epoch.sum_alpha:.1f}")
            ),
        )
    bound = sum(row.sum_alpha for row in rows.values())
    line = f"Of all accepted edits of the run, at most {bound:.1f} are expected to change nothing."
    return Group(table, Text(line))


def accuracy_table(
    questions: Sequence[Question], before: Mapping[str, bool], after: Mapping[str, bool]
) -> Group:
    """Accuracy by class on the test pool under the seed package and under the best one.

    before, after: question id -> right; a question that is missing has no entry.
    """
    table = _table(
        "Accuracy on test, which training never saw (95 % interval)", "class", "before", "after"
    )
    by_class: dict[str, list[str]] = {}
    for question in questions:
        by_class.setdefault(question.task_type, []).append(question.question_id)
    for name, ids in [*sorted(by_class.items()), ("all", [q.question_id for q in questions])]:
        counts = [sum(side.get(qid, False) for qid in ids) for side in (before, after)]
        table.add_row(
            name, *(_share(count, len(ids)) for count in counts), end_section=name != "all"
        )
    paired = mcnemar(dict(before), dict(after))
    line = (
        f"paired: {paired.wins} won, {paired.losses} lost of {paired.pairs} pairs; "
        f"exact one-sided McNemar p = {paired.p:.2g}"
    )
    return Group(table, Text(line))


def edits_table(reader: Reader) -> Table:
    """What became of each class's steps."""
    table = _table(
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
    table = _table("Verdicts against the planted truth", "verdict", *KINDS)
    counted = Counter((truth.decision.verdict, truth.kind) for truth in truths)
    for verdict in VERDICTS:
        cells = [counted[verdict, kind] for kind in KINDS]
        if any(cells):
            table.add_row(verdict, *map(str, cells))
    lines = _table(
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
    attempts = reader.rows(AttemptRow)
    by_outcome = Counter(row.outcome for row in attempts)
    cached = by_outcome.pop("cached", 0)
    failed = {kind: n for kind, n in sorted(by_outcome.items()) if kind != "ok"}
    missing = Counter(
        row.missing_kind
        for row in reader.rows(OutcomeRow, Where(column="outcome", value="missing"))
    )
    table = _table("Cost", "", "")
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


def right_by_question(reader: Reader, run_key: str) -> dict[str, bool]:
    """A pass as question id -> right; missing questions are left out."""
    rows = reader.rows(OutcomeRow, Where(column="run_key", value=run_key))
    return {row.question_id: row.outcome == "right" for row in rows if row.outcome != "missing"}


def render(parts: Sequence[Table | Group | Text], file_width: int | None = None) -> str:
    """The parts as text, a blank line between them, never wrapped by the terminal's width.

    Nor cut: two reasons why a class is dropped make a line longer than any terminal (row P0-3).
    """
    console = Console(width=file_width or 400, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
            console.print()
    return capture.get()


def where_lines(workspace: Path, resume: str) -> Text:
    """Where everything lies, and the line that trains further."""
    names = {
        "documents": "skills/ and prompts/ (vN, never edited)",
        "what happened": "run.db (steps, edits, decisions, outcomes, traces)",
        "log": "logs/train.jsonl",
        "settings": "config.yaml",
    }
    lines = [f"Workspace {workspace}"]
    lines += [f"  {what:<14} {where}" for what, where in names.items()]
    lines += [f"To train further: {resume} --set trainer.epochs=N"]
    return Text("\n".join(lines))
