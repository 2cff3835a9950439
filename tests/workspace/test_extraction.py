"""From a database of answers to a baseline: nothing repeated, re-scored or lost in silence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from actors.commands.extraction import Extracted, extract_baseline
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.questions import Dataset
from actors.ledger import schema
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import RowsError, SeedError
from protocol.dataset import Question
from protocol.rows import DiagnosisRow, OutcomeRow
from protocol.seed import BaselineDiagnosis, BaselinePrediction
from tests.dataset.material import question
from tests.support.harness_db import RUN, Row, write_harness

ASKED = tuple(question(video) for video in range(1, 6))
DATA = Dataset(questions=ASKED, excluded=())
KEY = "baseline/seed"


def harness(folder: Path, *rows: Row) -> Path:
    return write_harness(folder / "harness.db", rows)


def take(
    path: Path, run_id: str | None = None, *, dedupe: bool = False, without: Sequence[str] = ()
) -> Extracted:
    return extract_baseline(path, run_id, DATA, dedupe=dedupe, without=without)


def all_right(*others: Row) -> list[Row]:
    """A right answer to every question that ``others`` does not answer."""
    said = {row.question.question_id for row in others}
    return [*others, *(Row(item, "B") for item in ASKED if item.question_id not in said)]


def test_letters_are_read_with_our_own_extractor(tmp_path: Path) -> None:
    """Row seed: forms, texts and JSON; the gold of our questions says what is right."""
    path = harness(
        tmp_path,
        Row(ASKED[0], "B"),
        Row(ASKED[1], "The answer is (C)."),
        Row(ASKED[2], "Two."),
        Row(ASKED[3], '{"answer": "b"}'),
        Row(ASKED[4], "I cannot tell."),
    )
    found = take(path)
    assert [(p.question_id, p.letter, p.right) for p in found.predictions] == [
        ("001-1", "B", True),
        ("002-1", "C", False),
        ("003-1", "B", True),
        ("004-1", "B", True),
        ("005-1", None, False),
    ]
    assert (found.run_id, found.kind) == (RUN, "harness")
    assert {p.confidence for p in found.predictions} == {0.5}


def test_seed_repeated_questions_are_an_error_that_names_dedupe(tmp_path: Path) -> None:
    """Row seed: 902 rows for 900 questions are not a baseline."""
    path = harness(tmp_path, *all_right(), Row(ASKED[1], "A"), Row(ASKED[3], "C"))
    with pytest.raises(RowsError, match="--dedupe") as caught:
        take(path)
    assert "7 rows for 5 questions" in str(caught.value)
    assert caught.value.details == ("002-1: row 2, row 6", "004-1: row 4, row 7")


def test_seed_dedupe_keeps_the_first_row_and_says_which_went(tmp_path: Path) -> None:
    """Row seed: the first row of each question, by rowid; the others are named."""
    path = harness(tmp_path, *all_right(), Row(ASKED[1], "A"), Row(ASKED[3], "C"))
    found = take(path, dedupe=True)
    assert len(found.predictions) == 5
    assert all(prediction.right for prediction in found.predictions)
    assert found.dropped == (
        "002-1: row 6, letter A; row 2 stands",
        "004-1: row 7, letter C; row 4 stands",
    )


def test_seed_a_lost_first_row_gives_way_to_an_answer(tmp_path: Path) -> None:
    """An outage is no outcome, so the question's first outcome is the row after it."""
    path = harness(tmp_path, Row(ASKED[0], None, "error"), *all_right(), Row(ASKED[0], "A"))
    found = take(path, dedupe=True)
    assert found.predictions[0].right
    assert "row 1, no outcome (stop_reason is 'error'); row 2 stands" in found.dropped[0]


def test_seed_another_gold_answer_is_an_error_that_names_the_row(tmp_path: Path) -> None:
    """Row seed: a run that was scored otherwise answered other questions, or ours are wrong."""
    path = harness(tmp_path, *all_right(Row(ASKED[2], "C", gold="C"), Row(ASKED[4], "B", gold="")))
    with pytest.raises(RowsError, match="2 rows were scored with another gold") as caught:
        take(path)
    assert caught.value.details == (
        "003-1, row 1: gold is 'C', ours 'B'",
        "005-1, row 2: gold is '', ours 'B'",
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row(ASKED[0], None, "error"), "stop_reason is 'error'"),
        (Row(ASKED[0], "B", "error"), "stop_reason is 'error'"),
        (Row(ASKED[0], "B", "killed"), "stop_reason is 'killed'"),
        (Row(ASKED[0], None, None), "no letter, and no stop_reason"),
        (Row(ASKED[0], "Failed to obtain answer via API.", None), "no letter, and no stop_reason"),
    ],
)
def test_fail_loud_what_an_outage_lost_is_never_wrong(tmp_path: Path, row: Row, why: str) -> None:
    """fail-loud: it is listed, and somebody has to decide by name."""
    path = harness(tmp_path, *all_right(row))
    with pytest.raises(RowsError, match="an outage is not a wrong answer") as caught:
        take(path)
    assert caught.value.details[0].startswith(f"001-1: {why}")
    assert "--without 001-1" in caught.value.remedy
    found = take(path, without=["001-1"])
    assert found.predictions[0].question_id == "002-1"
    assert [entry.question_id for entry in found.without] == ["001-1"]


@pytest.mark.parametrize("stop", ["finished", "budget_exceeded", "parse_error"])
def test_an_agent_that_came_to_its_own_end_without_a_letter_was_wrong(
    tmp_path: Path, stop: str
) -> None:
    """Its budget, its format: not infrastructure."""
    found = take(harness(tmp_path, *all_right(Row(ASKED[0], None, stop))))
    assert (found.predictions[0].letter, found.predictions[0].right) == (None, False)


def test_fail_loud_a_question_without_a_row_is_missing(tmp_path: Path) -> None:
    """fail-loud: every question of ours has an outcome, or is named in --without."""
    path = harness(tmp_path, *[Row(item, "B") for item in ASKED[:3]])
    with pytest.raises(RowsError, match="--without 004-1,005-1") as caught:
        take(path, without=["004-1"])
    assert caught.value.details == (f"005-1: no row in {RUN}",)
    with pytest.raises(RowsError, match="not missing") as answered:
        take(path, without=["004-1", "005-1", "001-1"])
    assert answered.value.details == ("001-1",)
    assert len(take(path, without=["004-1", "005-1"]).predictions) == 3


def test_answers_of_other_questions_are_listed(tmp_path: Path) -> None:
    """Excluded questions are expected there; others are told, and none becomes a prediction."""
    other = question(9)
    path = harness(tmp_path, *all_right(), Row(other, "B"))
    assert take(path).unknown == ("009-1",)
    excluding = Dataset(questions=ASKED, excluded=("009-1",))
    assert extract_baseline(path, None, excluding).unknown == ()


def test_names_that_differ_are_told_and_ours_are_used(tmp_path: Path) -> None:
    """A video may have another name there; the gold answer is what must agree."""
    renamed = msgspec.structs.replace(ASKED[0], video_id="yt-0", task_type="Count")
    found = take(harness(tmp_path, *all_right(Row(renamed, "B"))))
    assert (found.predictions[0].video_id, found.predictions[0].task_type) == ("001", "Counting")
    (line,) = found.differing
    assert "video 'yt-0', ours '001'" in line


def test_runs_are_listed(tmp_path: Path) -> None:
    """Without --from-run a single one is taken; several, or an unknown one, are listed."""
    path = harness(tmp_path, *all_right(), Row(ASKED[0], "A", run_id="later"))
    for wanted, said in ((None, "name one of its runs"), ("x", "there is no run 'x'")):
        with pytest.raises(RowsError, match=said) as caught:
            take(path, wanted)
        assert caught.value.details == (f"{RUN} (5 rows)", "later (1 rows)")
    assert len(take(path, RUN).predictions) == 5


# -- a run.db ---------------------------------------------------------------------------


def outcome(item: Question, letter: str | None, said: str) -> OutcomeRow:
    return OutcomeRow(
        run_key=KEY,
        question_id=item.question_id,
        video_id=item.video_id,
        task_type=item.task_type,
        outcome=said,
        letter=letter,
        submitted=letter or "",
        confidence=0.8,
        stop="submitted",
        missing_kind="timeout" if said == "missing" else None,
        detail="too slow" if said == "missing" else "",
        n_steps=1,
        prompt_tokens=1,
        completion_tokens=1,
        seconds=1.0,
        skill_hash="s" * 64,
        prompts_version="v1",
        salt=KEY,
    )


def run_db(folder: Path, *rows: OutcomeRow | DiagnosisRow) -> Path:
    path = folder / "run.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        for statement in schema.ddl():
            db.execute(statement)
        for row in rows:
            db.execute(schema.upsert_sql(type(row)), schema.parameters(row))
        db.commit()
    return path


def judged(item: Question, cause: str | None) -> DiagnosisRow:
    known: dict[str, object] = {
        "run_key": KEY,
        "question_id": item.question_id,
        "error_type": "mixed",
        "subtype": None,
        "cause": cause,
        "degraded": False,
        "finding": "so it was",
    }
    others = {name: "" for name in DiagnosisRow.__struct_fields__ if name not in known}
    return msgspec.convert(known | others, DiagnosisRow)


def test_a_run_of_ours(tmp_path: Path) -> None:
    """Outcomes and diagnoses of one pass; a judge that failed has said nothing."""
    path = run_db(
        tmp_path,
        *(outcome(item, "B", "right") for item in ASKED[:3]),
        outcome(ASKED[3], "A", "wrong"),
        outcome(ASKED[4], None, "wrong"),
        judged(ASKED[3], "defect"),
        judged(ASKED[4], None),
    )
    stamp = path.stat().st_mtime_ns
    found = take(path, KEY)
    assert [p.right for p in found.predictions] == [True, True, True, False, False]
    assert {p.confidence for p in found.predictions} == {0.8}
    (diagnosis,) = found.diagnoses
    assert diagnosis.fingerprint == question_fingerprint(ASKED[3])
    assert found.skills == {"Counting": frozenset({"s" * 64})}
    assert path.stat().st_mtime_ns == stamp
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.db"]


def test_fail_loud_missing_outcomes_of_a_run(tmp_path: Path) -> None:
    """fail-loud: kind and detail are told; the score must be ours too."""
    path = run_db(
        tmp_path,
        *(outcome(item, "B", "right") for item in ASKED[:4]),
        outcome(ASKED[4], None, "missing"),
    )
    with pytest.raises(RowsError, match="have no outcome") as caught:
        take(path)
    assert caught.value.details == ("005-1: timeout: too slow",)
    again = tmp_path / "again"
    again.mkdir()
    path = run_db(again, *(outcome(item, "C", "right") for item in ASKED))
    with pytest.raises(RowsError, match="another gold"):
        take(path)


# -- a baseline.db ----------------------------------------------------------------------


def predicted(item: Question, letter: str, *, right: bool) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=item.question_id,
        video_id=item.video_id,
        task_type=item.task_type,
        letter=letter,
        right=right,
        confidence=0.7,
    )


def test_a_baseline_of_a_seed(tmp_path: Path) -> None:
    """Its rows as they are, diagnoses too, whatever they belong to."""
    path = tmp_path / "baseline.db"
    rows = [predicted(item, "B", right=True) for item in ASKED[:4]]
    rows.append(predicted(ASKED[4], "A", right=False))
    diagnosis = BaselineDiagnosis(
        fingerprint="f" * 64,
        question_id="005-1",
        error_type="mixed",
        cause="lapse",
        degraded=False,
        finding="x",
    )
    make_baseline_db(path, "base", rows, [diagnosis])
    found = take(path, "base")
    assert found.predictions == tuple(rows)
    assert found.diagnoses == (diagnosis,)
    with pytest.raises(RowsError, match="no run 'other'"):
        take(path, "other")
    make_baseline_db(path, "base", [predicted(item, "A", right=True) for item in ASKED])
    with pytest.raises(RowsError, match="another gold"):
        take(path)


def spoil(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            db.execute(statement)
            db.commit()

    return change


@pytest.mark.parametrize(
    "change",
    [
        spoil("UPDATE predictions SET right = 7 WHERE question_id = '001-1'"),
        spoil("UPDATE predictions SET run_id = 'two' WHERE question_id = '001-1'"),
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """As a SeedError like everything else that a source can be refused for."""
    path = tmp_path / "baseline.db"
    make_baseline_db(path, "base", [predicted(item, "B", right=True) for item in ASKED])
    change(path)
    with pytest.raises(SeedError):
        take(path, "base")
