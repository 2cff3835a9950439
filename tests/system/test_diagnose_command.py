"""``trm diagnose``: judged once, stored for good, never in a finished seed (P2-2, P2-4, P0-2)."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import long_part
from tests.support.harness_db import made_up_rows, write_harness
from tests.system.seed_commands import (
    DEMO,
    Trm,
    Words,
    answered,
    asked,
    files_of,
    trm_running,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


@pytest.fixture
def undiagnosed(small: Path, whole: Path, tmp_path: Path, trm: Trm) -> list[str | Path]:
    """A seed under construction without a diagnosis, and the command that makes them."""
    seed = tmp_path / "seed"
    work = whole.with_name("seed.work")
    trm("seed", seed, "--from-db", work / "run.db", *asked(small), "--baseline-only")
    with closing(sqlite3.connect(seed / "baseline.db")) as db:
        db.execute("DELETE FROM baseline_diagnosis")
        db.commit()
    return [
        *("diagnose", seed, "--config", DEMO.parents[1] / "config/demo.yaml", *asked(small)),
        *("--traces", work / "run.db", "--skills", DEMO / "skills/v1"),
    ]


def diagnoses(path: Path) -> dict[str, tuple[str, int]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT question_id, cause, degraded FROM baseline_diagnosis")
        return {name: (cause, degraded) for name, cause, degraded in rows}


def test_diagnoses_are_those_of_the_pass(
    trm: Trm, undiagnosed: Words, whole: Path, tmp_path: Path
) -> None:
    """The same judge over the same steps says the same, whoever carries them to it."""
    told = trm(*undiagnosed)
    assert "diagnosis: 1/" in told.err
    assert diagnoses(tmp_path / "seed/baseline.db") == diagnoses(whole / "baseline.db")


def test_a_stopped_diagnosis_stores_what_it_has(
    undiagnosed: Words, whole: Path, tmp_path: Path
) -> None:
    """SIGTERM: the verdicts so far are stored, exit 75; the same command asks for the rest."""
    path = tmp_path / "seed/baseline.db"
    slow = ("--set", "diagnoser.concurrency=2", "--set", "twin.chunk_delay_s=0.01")
    with trm_running(*undiagnosed, *slow) as run:
        run.wait_for("diagnosis: 1/")
        run.signal(signal.SIGTERM)
        run.finish(75)
    said = "".join(run.lines)
    assert "Traceback" not in said
    assert "what was judged is stored" in said
    some = diagnoses(path)
    assert 0 < len(some) < len(diagnoses(whole / "baseline.db"))
    with trm_running(*undiagnosed) as run:
        run.finish(0)
    assert diagnoses(path) == diagnoses(whole / "baseline.db")
    assert set(answered(tmp_path / "seed.work").values()) == {1}


def test_P2_4_only_uncertain_verdicts_are_asked_again(
    trm: Trm, undiagnosed: Words, tmp_path: Path
) -> None:
    """P2-4: with --retry-uncertain, past the cache, and never a defect or a lapse."""
    path = tmp_path / "seed/baseline.db"
    trm(*undiagnosed)
    names = sorted(diagnoses(path))
    with closing(sqlite3.connect(path)) as db:
        change = "UPDATE baseline_diagnosis SET cause = ?, degraded = ? WHERE question_id = ?"
        db.executemany(change, [("uncertain", 0, names[0]), ("uncertain", 1, names[1])])
        db.execute(change, ("defect", 0, names[2]))
        db.commit()
    before = diagnoses(path)
    calls = answered(tmp_path / "seed.work")
    assert trm.json(*undiagnosed)["asked"] == 0
    doubtful = [name for name, (cause, bad) in before.items() if cause == "uncertain" or bad]
    told = trm.json(*undiagnosed, "--retry-uncertain")
    assert told["asked"] == len(doubtful) >= 2
    assert len(answered(tmp_path / "seed.work")) >= len(calls) + len(doubtful)  # not from the cache
    after = diagnoses(path)
    assert {k: v for k, v in after.items() if k not in doubtful} == {
        k: v for k, v in before.items() if k not in doubtful
    }


def test_P2_2_the_baseline_of_a_finished_seed_is_never_written(
    trm: Trm, small: Path, whole: Path, tmp_path: Path, undiagnosed: Words
) -> None:
    """P2-2: diagnose refuses it, and with --out writes a copy; a new seed is made of that."""
    options = undiagnosed[2:]
    seed = Path(shutil.copytree(whole, tmp_path / "done"))
    before = files_of(seed)
    for target in (seed, seed / "baseline.db"):
        told = trm("diagnose", target, *options, "--retry-uncertain", expect=2)
        assert "whose baseline is never written; give --out FILE" in told.err
    told = trm("diagnose", seed, *options, "--out", whole / "baseline.db", expect=2)
    assert "never written" in told.err
    copy = tmp_path / "copy.db"
    trm("diagnose", seed, *options, "--retry-uncertain", "--out", copy)
    assert files_of(seed) == before
    assert set(diagnoses(copy)) == set(diagnoses(seed / "baseline.db"))
    refused = trm("seed", seed, "--from-db", copy, *asked(small), "--baseline-only", expect=2)
    assert "is a finished seed, whose baseline is never written" in refused.err
    assert files_of(seed) == before


def test_a_judge_that_is_not_there_has_said_nothing(
    trm: Trm, undiagnosed: Words, tmp_path: Path
) -> None:
    """No row is stored for it, and the next run asks again: exit 75."""
    path = tmp_path / "seed/baseline.db"
    told = trm.json(*undiagnosed, "--set", "limits.max_calls=5", expect=75)
    silent = told["silent"]
    assert isinstance(silent, list)
    assert len(silent) > 5
    assert all(cause is not None for cause, _ in diagnoses(path).values())
    assert trm.json(*undiagnosed)["undiagnosed"] == []


def test_P0_2_answers_without_steps_are_an_error(
    trm: Trm, long_folder: Path, tmp_path: Path
) -> None:
    """P0-2: named before anything is asked, and left out only when that is said."""
    questions = long_part.questions()[:30]
    rows = made_up_rows(questions, wrong_percent=100)
    rows[3] = rows[3]._replace(steps="[]")
    path = write_harness(tmp_path / "harness.db", rows)
    exclude = tmp_path / "exclude.txt"
    out = [q.question_id for q in long_part.questions() if q not in questions]
    exclude.write_text("\n".join(out), encoding="utf-8")
    asked = ("--questions", long_folder / "questions.jsonl", "--exclude", exclude)
    trm("seed", tmp_path / "seed", "--from-db", path, *asked, "--baseline-only")
    judge: Words = ["diagnose", tmp_path / "seed", "--config", long_folder / "my.yaml", *asked]
    judge += ["--skills", long_folder / "skills"]
    assert "Give --traces FILE" in trm(*judge, expect=2).err
    judge += ["--traces", path]
    told = trm(*judge, expect=2)
    assert "1 wrong answers have no trajectory" in told.err
    assert "602-1: steps_json holds no steps" in told.err
    done = trm.json(*judge, "--allow-untraced")
    assert (done["asked"], done["untraced"]) == (29, ["602-1: steps_json holds no steps"])
    assert done["undiagnosed"] == ["602-1"]


def test_what_a_killed_run_left_in_its_log_is_taken_in(
    trm: Trm, undiagnosed: Words, whole: Path, tmp_path: Path
) -> None:
    """The work folder's own run.db may have a log beside it: it is ours, so it is settled."""
    work = tmp_path / "work"
    shutil.copytree(whole.with_name("seed.work"), work)
    killed = tmp_path / "killed"
    with closing(sqlite3.connect(work / "run.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("DELETE FROM diagnoses")
        db.commit()
        shutil.copytree(work, killed)  # as it lies there while nobody has closed it
    assert (killed / "run.db-wal").stat().st_size > 0
    at = undiagnosed.index("--traces")
    command = [*undiagnosed[:at], *undiagnosed[at + 2 :], "--work", killed]
    trm(*command)
    assert diagnoses(tmp_path / "seed/baseline.db") == diagnoses(whole / "baseline.db")
