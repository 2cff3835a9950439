"""A whole training under the factorial gate over HTTP, stopped in its middle and resumed."""

from __future__ import annotations

import signal
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from actors.evolver.compose import compose, render
from actors.gate.factorial.course import course
from actors.gate.factorial.states import FactorialEdit, conclude
from actors.gate.factorial.stepup import evidence_of, step_up
from actors.gate.phase import edits_as_born, final_rows, logged, seen_by
from actors.ledger.reader import Reader, open_reader
from actors.workspace.versions import read_skills
from protocol.evolver import Edit
from protocol.factorial_rows import (
    PROMPTS,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.rows import OutcomeRow
from tests.system.runs import run_to_end, running, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

SMALL = (
    "run.seed=1",
    "gate.design=factorial",
    "gate.budget=240",
    "trainer.slow_update=false",
    "trainer.epochs=2",
    "trainer.run_holdout_eval=false",
    "data.trainable_min_units=30",  # two classes are left
)


def test_a_stopped_run_goes_on_and_decides(tmp_path: Path) -> None:
    """Stopped while pairs are drawn; then whole, and every number follows from the pairs."""
    workspace = tmp_path / "run"
    with running(*settings(SMALL), "--workspace", str(workspace)) as run:
        run.wait_for("factorial.phase ", "phase=1")
        run.signal(signal.SIGINT)
        run.finish(75)
    with open_reader(workspace / "run.db") as reader:
        before = {(row.task_type, row.pair): row.coins for row in reader.rows(PairRow)}
    other = run_to_end(
        "--resume",
        str(workspace),
        *settings(("trainer.epochs=3",)),
        "--accept-change",
        "trainer.epochs",
        expect=2,
    )
    assert "trainer.epochs: 2 -> 3 cannot be accepted" in other.stderr
    told = run_to_end("--resume", str(workspace)).stdout
    assert "Edits, tested together" in told
    assert "they look like coins" in told
    with open_reader(workspace / "run.db") as reader:
        coins = {(row.task_type, row.pair): row.coins for row in reader.rows(PairRow)}
        assert before
        assert before.items() <= coins.items()
        _numbers_follow(reader, workspace)
        shown = {row.question_id for row in reader.rows(OutcomeRow) if _is_shown(row)}
        tested = {row.question_id for row in reader.rows(OutcomeRow) if "factorial/" in row.run_key}
        assert shown
        assert tested
        assert shown.isdisjoint(tested)


def _is_shown(row: OutcomeRow) -> bool:
    return row.run_key.endswith("/rollout")


def _numbers_follow(reader: Reader, workspace: Path) -> None:
    """Counts, states, decision and documents, told anew from schedule, coins and outcomes."""
    (run,) = reader.rows(FactorialRunRow)
    rows = sorted(reader.rows(FactorialEditRow), key=lambda row: (row.task_type, row.position))
    ended: list[FactorialEdit] = []
    for schedule in reader.rows(FactorialScheduleRow):
        own = [row for row in rows if row.task_type == schedule.task_type]
        pairs = [row for row in reader.rows(PairRow) if row.task_type == schedule.task_type]
        assert {row.state for row in pairs} <= {"drawn"}
        names, everyone = ({row.edit_id for row in found} for found in (own, rows))
        ended += course(
            edits_as_born(own),
            [seen_by(logged(row), names, everyone - names) for row in pairs],
            Fraction(3, 10),
            until=schedule.n_epochs + 1,
            n_epochs=schedule.n_epochs,
        )
    common = [row for row in rows if row.task_type == PROMPTS]
    ids, others = ({row.edit_id for row in found} for found in (common, rows))
    ended += course(
        edits_as_born(common),
        [seen_by(logged(row), ids, others - ids) for row in reader.rows(PairRow)],
        Fraction(3, 10),
        until=3,
        n_epochs=2,
    )
    decided = step_up(evidence_of(ended), Fraction(run.q), Fraction(run.cap))
    adopted = decided.adopted if run.ok else ()
    assert final_rows(rows, conclude(ended, adopted)) == tuple(rows)
    assert len(common) > 1, "no edit of the prompts was tested"
    assert (run.n_edits, run.adopted) == (len(decided.p), len(adopted))
    own_adopted = {row.task_type for row in rows if row.state == "adopted"}
    prompts = sorted(path.name for path in (workspace / "prompts").iterdir() if path.is_dir())
    assert prompts == (["v1", "v2"] if PROMPTS in own_adopted else ["v1"])
    versions = sorted(path.name for path in (workspace / "skills").iterdir() if path.is_dir())
    assert versions == (["v1", "v2"] if own_adopted - {PROMPTS} else ["v1"])
    texts = {skill.task_type: skill.text for skill in read_skills(workspace / "skills", "v1")}
    for task_type in own_adopted - {PROMPTS}:
        own = [row for row in rows if row.task_type == task_type and not row.sentinel]
        edits = [msgspec.json.decode(row.edit, type=Edit) for row in own]
        on = [place for place, row in enumerate(own) if row.state == "adopted"]
        texts[task_type] = render(compose(texts[task_type], edits, 8000), on)
    final = {s.task_type: s.text for s in read_skills(workspace / "skills", versions[-1])}
    assert final == texts
