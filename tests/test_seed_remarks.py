"""What the commands about seeds say of choices that nobody made, and of long lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.commands.extraction import extract_baseline
from actors.commands.seed_options import Inputs, assumed_config, named_ids
from actors.config import load_config
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.questions import Dataset
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import RowsError
from protocol.seed import BaselineDiagnosis, BaselinePrediction
from tests.dataset.material import question

ASKED = tuple(question(video) for video in range(1, 16))


def inputs(config_path: Path | None) -> Inputs:
    return Inputs(
        config=load_config(None),
        config_path=config_path,
        dataset=Dataset(questions=ASKED, excluded=()),
        questions_path=Path("q.jsonl"),
        exclude_path=None,
    )


def test_whose_epochs_and_thresholds_the_report_uses_is_said() -> None:
    assert assumed_config(inputs(Path("my.yaml")), ()) is None
    assert "as in config/default.yaml." in (assumed_config(inputs(None), ()) or "")
    said = assumed_config(inputs(None), ("trainer.epochs=2", "run.seed=3")) or ""
    assert "config/default.yaml with --set trainer.epochs=2 --set run.seed=3." in said


def test_a_few_ids_can_be_copied_and_many_are_counted() -> None:
    assert named_ids([f"q{n}" for n in range(10)]) == ",".join(f"q{n}" for n in range(10))
    assert named_ids([f"q{n}" for n in range(900)]).endswith("q8,q9,... (900 in all)")


def baseline(path: Path) -> Path:
    """All fifteen answered wrong and judged."""
    predictions = [
        BaselinePrediction(
            question_id=item.question_id,
            video_id=item.video_id,
            task_type=item.task_type,
            letter="A",
            right=False,
            confidence=0.5,
        )
        for item in ASKED
    ]
    diagnoses = [
        BaselineDiagnosis(
            fingerprint=question_fingerprint(item),
            question_id=item.question_id,
            error_type="mixed",
            cause="defect",
            degraded=False,
            finding="f",
        )
        for item in ASKED
    ]
    make_baseline_db(path, "base", predictions, diagnoses)
    return path


def test_diagnoses_of_questions_that_were_not_chosen_stay_behind(tmp_path: Path) -> None:
    chosen = Dataset(questions=ASKED[:4], excluded=())
    found = extract_baseline(baseline(tmp_path / "baseline.db"), None, chosen)
    wanted = {item.question_id for item in ASKED[:4]}
    assert {row.question_id for row in found.diagnoses} == wanted
    assert {row.question_id for row in found.predictions} == wanted


def test_when_everything_is_missing_ten_are_named(tmp_path: Path) -> None:
    others = Dataset(questions=tuple(question(video) for video in range(101, 140)), excluded=())
    with pytest.raises(RowsError, match=r"39 questions have no outcome") as caught:
        extract_baseline(baseline(tmp_path / "baseline.db"), None, others)
    assert "(39 in all)" in str(caught.value)
    assert len(caught.value.details) == 39
    assert str(caught.value).count("no row in base") == 10
    assert "... and 29 more" in str(caught.value)
