"""Whole packages over the epochs: on val, on test, and the one comparison that is claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.ledger.reader import Reader
from actors.tables import new_table, paired_line, share
from actors.trainer.holdout import SEED_OUTCOMES, memo_of
from actors.trainer.score import McNemar, mcnemar
from protocol.dataset import Question
from protocol.documents import Package
from protocol.ledger import Where
from protocol.rows import EpochRow, EvaluationRow, OutcomeRow, SlowRow

__all__ = [
    "accuracy_table",
    "bound_lines",
    "curves_table",
    "epochs_table",
    "outcomes_on_test",
    "review",
    "right_by_question",
]

_CURVES = ("final", "best_hard", "best_mixed")


def right_by_question(reader: Reader, run_key: str) -> dict[str, bool]:
    """A pass as question id -> right; missing questions are left out."""
    rows = reader.rows(OutcomeRow, Where(column="run_key", value=run_key))
    return {row.question_id: row.outcome == "right" for row in rows if row.outcome != "missing"}


def epochs_table(reader: Reader, *, bounded: bool = True) -> Group:
    """One line per whole epoch, the seed's pass first. bounded: by the ladder's alphas."""
    table = new_table(
        "Epochs (accuracy on val, 95 % interval)",
        "epoch",
        "package",
        "val",
        "missing",
        "tests",
        "accepted",
        "expected false accepts <=",
        "slow update",
    )
    rows = {row.epoch: row for row in reader.rows(EpochRow)}
    slow = {row.epoch: row for row in reader.rows(SlowRow)}
    for evaluation in sorted(reader.rows(EvaluationRow), key=lambda row: row.epoch):
        if evaluation.pool != "val" or evaluation.kind not in ("seed", "final"):
            continue
        epoch = rows.get(evaluation.epoch)
        counted = (
            ("", "", "")
            if epoch is None
            else (str(epoch.tests), str(epoch.accepted), _bound(epoch))
        )
        table.add_row(
            "seed" if evaluation.epoch == 0 else str(evaluation.epoch),
            str(evaluation.package),
            share(evaluation.right, evaluation.planned),
            str(evaluation.missing),
            *counted,
            _slow(slow.get(evaluation.epoch)),
        )
    if not bounded:
        return Group(table)
    return Group(table, Text("\n".join(bound_lines(list(rows.values())))))


def bound_lines(epochs: Sequence[EpochRow]) -> list[str]:
    """How many accepted edits may change nothing, and which tests that does not cover."""
    bound = sum(row.sum_alpha for row in epochs)
    seeded = sum(row.seed_draws for row in epochs)
    whose = "accepted by the other tests" if seeded else "that the run accepted"
    lines = [
        f"Of all edits {whose}, at most {bound:.1f} are expected to change nothing",
        "(untestable candidates count in it: whether one is, hangs on the snapshot).",
    ]
    if seeded:
        lines += [
            f"Not covered: {seeded} tests against the seed's own answers, which also chose the",
            "diag questions; they are easier to pass (gate.seed_draw: false draws afresh).",
        ]
    return lines


def _bound(epoch: EpochRow) -> str:
    uncovered = f" + {epoch.seed_draws} uncovered" if epoch.seed_draws else ""
    return f"{epoch.sum_alpha:.1f}{uncovered}"


def _slow(row: SlowRow | None) -> str:
    if row is None:
        return ""
    if row.result not in ("kept", "dropped"):
        return row.result
    parts = [f"{row.momentum} momentum"] if row.momentum else []
    parts += [f"{row.prompt_edits} prompt edits"] if row.prompt_edits else []
    return f"{row.result} ({', '.join(parts)}; {row.wins} won, {row.losses} lost)"


def review(reader: Reader, seed: Package, best: Package) -> McNemar:
    """The best package against the seed's own fresh pass, paired, on val.

    The best was chosen on these questions, so that this gain is flattered; test is the claim.
    """
    rows = [row for row in reader.rows(EvaluationRow) if row.pool == "val"]
    passes = {
        row.package: row.outcomes_key
        for row in sorted(rows, key=lambda row: -row.epoch)
        if row.kind in ("seed", "final")
    }
    before, after = (right_by_question(reader, passes[package]) for package in (seed, best))
    return mcnemar(before, after)


def outcomes_on_test(
    reader: Reader, package: Package, predictions: Mapping[str, bool]
) -> dict[str, bool] | None:
    """The package on test as question id -> right; None if it was never evaluated there.

    predictions: the seed's own, for the row that stands on them.
    """
    rows = [row for row in reader.rows(EvaluationRow) if row.pool == "test"]
    row = memo_of(rows).get(package)
    if row is None:
        return None
    if row.outcomes_key == SEED_OUTCOMES:
        return dict(predictions)
    return right_by_question(reader, row.outcomes_key)


def curves_table(reader: Reader) -> Table:
    """The four curves on test: the seed's is the same in every epoch."""
    table = new_table("Test, which training never sees (95 % interval)", "epoch", "seed", *_CURVES)
    rows = {(row.epoch, row.kind): row for row in reader.rows(EvaluationRow) if row.pool == "test"}
    seed = rows.get((0, "seed"))
    for epoch in sorted({epoch for epoch, kind in rows if kind == "final"}):
        cells = [seed, *(rows.get((epoch, kind)) for kind in _CURVES)]
        table.add_row(str(epoch), *("-" if row is None else _curve(row) for row in cells))
    return table


def _curve(row: EvaluationRow) -> str:
    missing = f" ({row.missing} missing)" if row.missing else ""
    return f"{share(row.right, row.planned)}{missing}"


def accuracy_table(
    questions: Sequence[Question], before: Mapping[str, bool], after: Mapping[str, bool]
) -> Group:
    """Accuracy by class on the test pool under the seed package and under the best one.

    before, after: question id -> right; a question that is missing has no entry.
    """
    table = new_table(
        "Test by class: the seed package and the best one (95 % interval)",
        "class",
        "before",
        "after",
    )
    by_class: dict[str, list[str]] = {}
    for question in questions:
        by_class.setdefault(question.task_type, []).append(question.question_id)
    for name, ids in [*sorted(by_class.items()), ("all", [q.question_id for q in questions])]:
        counts = [sum(side.get(qid, False) for qid in ids) for side in (before, after)]
        table.add_row(
            name, *(share(count, len(ids)) for count in counts), end_section=name != "all"
        )
    return Group(table, Text(paired_line("paired, test", mcnemar(before, after))))
