"""Whole packages over the epochs: on val, on test, and the one comparison that is claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group

from actors.ledger.reader import Reader
from actors.tables import new_table, percent, prose
from actors.trainer.holdout import SEED_OUTCOMES, memo_of
from actors.trainer.score import McNemar, mcnemar
from protocol.documents import Package
from protocol.ledger import Where
from protocol.rows import EpochRow, EvaluationRow, OutcomeRow, SlowRow

__all__ = [
    "bound_brief",
    "bound_lines",
    "brief",
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


def epochs_table(reader: Reader) -> Group:
    """One line per whole epoch, the seed's pass first."""
    rows = {row.epoch: row for row in reader.rows(EpochRow)}
    slow = {row.epoch: row for row in reader.rows(SlowRow)}
    passes = [
        row
        for row in sorted(reader.rows(EvaluationRow), key=lambda row: row.epoch)
        if row.pool == "val" and row.kind in ("seed", "final")
    ]
    lost = ("missing",) if any(row.missing for row in passes) else ()
    planned = max((row.planned for row in passes), default=0)
    table = new_table(
        f"Epochs on val, {planned} questions (95 % interval)",
        "epoch",
        "package",
        "right",
        *lost,
        "tests",
        "accepted",
        "luck",
        "slow",
    )
    for row in passes:
        epoch = rows.get(row.epoch)
        counted = ("", "", "")
        if epoch is not None:
            counted = (str(epoch.tests), str(epoch.accepted), f"{epoch.sum_alpha:.1f}")
        table.add_row(
            "seed" if row.epoch == 0 else str(row.epoch),
            brief(row.package),
            percent(row.right, row.planned),
            *((str(row.missing),) if lost else ()),
            *counted,
            slow[row.epoch].result if row.epoch in slow else "",
        )
    words = prose(
        "package: v5+v3 is skills/v5 with prompts/v3. luck: accepted edits that change nothing, at",
        "most so many on average. slow: the slow update, one rewrite of all documents at an",
        "epoch's end, kept only if val shows no harm. More: docs/concepts.md#the-end-of-an-epoch",
    )
    return Group(table, words, prose(*bound_lines(list(rows.values()))))


def brief(package: Package) -> str:
    """``v5+v3``, for a column."""
    return f"{package.skills}+{package.prompts}"


def bound_lines(epochs: Sequence[EpochRow]) -> list[str]:
    """Which tests are not covered, and of the other edits how many may change nothing."""
    bound, seeded = _bounds(epochs)
    if not seeded:
        return [f"Of all accepted edits at most {bound:.1f} are expected to change nothing."]
    return [
        f"Not covered: {_tests(seeded)} against the seed's own answers, which also chose the diag "
        "questions, so that they are easier to pass.",
        f"Of the edits that other tests accepted at most {bound:.1f} are expected to change "
        "nothing.",
    ]


def bound_brief(epochs: Sequence[EpochRow]) -> str:
    """The same for a narrow card."""
    bound, seeded = _bounds(epochs)
    return f"at most {bound:.1f} by luck" + (f", {_tests(seeded)} not covered" if seeded else "")


def _bounds(epochs: Sequence[EpochRow]) -> tuple[float, int]:
    return sum(row.sum_alpha for row in epochs), sum(row.seed_draws for row in epochs)


def _tests(number: int) -> str:
    return "1 test" if number == 1 else f"{number} tests"


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


def curves_table(reader: Reader) -> Group:
    """The curves on test, an epoch a line; the seed's first, which is the same in every epoch."""
    rows = {(row.epoch, row.kind): row for row in reader.rows(EvaluationRow) if row.pool == "test"}
    table = new_table("Test, which training never sees (95 % interval)", "epoch", *_CURVES)
    seed = rows.get((0, "seed"))
    if seed is not None:
        table.add_row("seed", *(_curve(seed) for _ in _CURVES))
    for epoch in sorted({epoch for epoch, kind in rows if kind == "final"}):
        cells = [rows.get((epoch, kind)) for kind in _CURVES]
        table.add_row(str(epoch), *("-" if row is None else _curve(row) for row in cells))
    lost = any(row.missing for row in rows.values())
    words = prose(
        *(["(n): so many are missing."] if lost else []),
        "final: the package at the epoch's end. best_hard, best_mixed: the best so far on val, by",
        "accuracy and by the mixed score. Test chooses nothing: whoever picks an epoch by this",
        "table spoils the claim. More: docs/concepts.md#what-may-be-claimed",
    )
    return Group(table, words)


def _curve(row: EvaluationRow) -> str:
    missing = f" ({row.missing})" if row.missing else ""
    return f"{percent(row.right, row.planned)}{missing}"
