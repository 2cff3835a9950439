"""``run.db`` in memory, and how a row is held against what was counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import isclose

import msgspec

from actors.ledger.reader import Reader
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.keys import baseline_key
from protocol.rows import (
    AttemptRow,
    BaselineRow,
    DecisionRow,
    DiagnosisRow,
    DocumentRow,
    EditRow,
    EpochRow,
    EvaluationRow,
    OutcomeRow,
    RejectedRow,
    SlowRow,
    StepRow,
    TraceRow,
)

__all__ = ["Run", "draw_key", "read_run", "tally", "wrong_fields"]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """``run.db``, read. outcomes: by pass, then question. traces: by pass and question, in order.

    last: the last whole epoch, 0 before the first.
    schedules: a row per class under the factorial gate, else none. tested: its edits.
    """

    outcomes: dict[str, dict[str, OutcomeRow]]
    traces: dict[tuple[str, str], list[TraceRow]]
    diagnoses: list[DiagnosisRow]
    edits: list[EditRow]
    decisions: dict[str, DecisionRow]
    rejected: list[RejectedRow]
    steps: dict[str, StepRow]
    documents: dict[str, DocumentRow]
    evaluations: dict[str, EvaluationRow]
    slow: dict[int, SlowRow]
    epochs: list[EpochRow]
    baseline: list[BaselineRow]
    attempts: list[AttemptRow]
    schedules: list[FactorialScheduleRow]
    tested: list[FactorialEditRow]
    pairs: list[PairRow]
    factorial_runs: list[FactorialRunRow]

    @property
    def last(self) -> int:
        """The last whole epoch."""
        return max((row.epoch for row in self.epochs), default=0)


def read_run(reader: Reader) -> Run:
    """Every table."""
    outcomes: dict[str, dict[str, OutcomeRow]] = defaultdict(dict)
    for outcome in reader.rows(OutcomeRow):
        outcomes[outcome.run_key][outcome.question_id] = outcome
    traces: dict[tuple[str, str], list[TraceRow]] = defaultdict(list)
    for trace in reader.rows(TraceRow):
        traces[trace.run_key, trace.question_id].append(trace)
    return Run(
        outcomes=dict(outcomes),
        traces=dict(traces),
        diagnoses=reader.rows(DiagnosisRow),
        edits=reader.rows(EditRow),
        decisions={row.run_key: row for row in reader.rows(DecisionRow)},
        rejected=reader.rows(RejectedRow),
        steps={row.run_key: row for row in reader.rows(StepRow)},
        documents={row.hash: row for row in reader.rows(DocumentRow)},
        evaluations={row.run_key: row for row in reader.rows(EvaluationRow)},
        slow={row.epoch: row for row in reader.rows(SlowRow)},
        epochs=reader.rows(EpochRow),
        baseline=reader.rows(BaselineRow),
        attempts=reader.rows(AttemptRow),
        schedules=reader.rows(FactorialScheduleRow),
        tested=reader.rows(FactorialEditRow),
        pairs=reader.rows(PairRow),
        factorial_runs=reader.rows(FactorialRunRow),
    )


def wrong_fields(where: str, row: object, counted: Mapping[str, object]) -> list[str]:
    """The fields that are not what was counted; numbers as they are, save for rounding."""
    found = []
    for name, value in counted.items():
        said = getattr(row, name)
        near = isinstance(value, float) and isclose(said, value, rel_tol=1e-12, abs_tol=1e-12)
        if said != value and not near:
            found.append(f"{where}: {name} is {said!r}, counted {value!r}")
    return found


def draw_key(row: BaselineRow) -> str:
    """The pass that a draw was made in."""
    return baseline_key(
        row.task_type, row.skill_hash, row.prompts_version, row.draw, row.generation, row.confirms
    )


def tally(answers: Mapping[str, OutcomeRow]) -> dict[str, int]:
    """A pass, as the rows of steps and evaluations count it."""
    counted = Counter(row.outcome for row in answers.values())
    return {"planned": len(answers), "right": counted["right"], "missing": counted["missing"]}
