"""``trm split``: reported, frozen, never overwritten unasked (P2-1, row split)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.workspace.seed import open_seed
from tests.system.seed_commands import (
    DEMO,
    SMALL,
    Trm,
    Words,
    asked,
    files_of,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_P2_1_another_split_is_refused_and_kept_by_force(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """P2-1: an error that names --force; with it the old file lies beside the new one."""
    seed = Path(shutil.copytree(whole, tmp_path / "seed"))
    cut: Words = ["split", "--seed-folder", seed, *asked(small)]
    before = files_of(seed)
    trm(*cut)  # the same split again, with the parameters that are there, changes nothing
    assert files_of(seed) == before
    assert "--force" in trm(*cut, "--val-ratio", "0.3", expect=2).err
    assert files_of(seed) == before
    told = trm.json(*cut, "--val-ratio", "0.3", "--force")
    kept = f"pools.json.bak.{open_seed(whole).info.pools_sha256[:8]}"
    assert told["kept"] == kept
    assert (seed / kept).read_bytes() == before["pools.json"]
    assert open_seed(seed).pools != open_seed(whole).pools
    assert (seed / "baseline.db").read_bytes() == before["baseline.db"]


def test_a_dry_run_writes_nothing(trm: Trm, small: Path, whole: Path, tmp_path: Path) -> None:
    """It may be tried on a finished seed, or on a bare baseline.db."""
    seed = Path(shutil.copytree(whole, tmp_path / "seed"))
    before = files_of(seed)
    told = trm("split", "--seed-folder", seed, *asked(small), "--val-ratio", "0.3", "--dry-run")
    assert "Dry run: nothing was written." in told.err
    for said in ("Skill defects (T2) in diag", "wrong", "trainable_min_units", "with p=.8"):
        assert said in told.out
    bare: Words = ["split", "--baseline", seed / "baseline.db", *asked(small), *SMALL]
    trm(*bare, "--dry-run")
    assert "needs --out DIR" in trm(*bare, expect=2).err
    assert files_of(seed) == before
    trm(*bare, "--out", tmp_path / "pools")
    assert (tmp_path / "pools/pools.json").read_bytes() == before["pools.json"]


def test_split_counts_a_stray_diagnosis_for_nothing(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """Row split: by fingerprint, so that a reworded question has no diagnosis, and it is told."""
    seed = Path(shutil.copytree(whole, tmp_path / "seed"))
    (seed / "seed.json").unlink()
    cut: Words = ["split", "--seed-folder", seed, *asked(small), "--dry-run"]
    before = trm.json(*cut)
    with closing(sqlite3.connect(seed / "baseline.db")) as db:
        (name,) = db.execute(
            "SELECT question_id FROM baseline_diagnosis WHERE cause = 'defect' LIMIT 1"
        ).fetchone()
        db.execute(
            "UPDATE baseline_diagnosis SET fingerprint = ? WHERE question_id = ?", ("0" * 64, name)
        )
        db.commit()
    after = trm.json(*cut)
    assert (before["stray_diagnoses"], before["undiagnosed"]) == ([], [])
    assert (after["stray_diagnoses"], after["undiagnosed"]) == ([name], [name])
    assert "count for nothing" in trm(*cut).out


def test_val_is_forecast_by_trainval_not_by_the_answers_that_chose_it(trm: Trm) -> None:
    """The demo: 20 were wrong where 36 are in the run; trainval's share of val says 42."""
    cut = demo_split()
    told = trm.json(*cut)
    assert told["val"] == told["val"] | {"n_questions": 90, "n_wrong": 42, "basis": "trainval"}  # type: ignore[operator]  # an object
    assert told["test"] == told["test"] | {"n_questions": 120, "basis": "trainval"}  # type: ignore[operator]  # an object
    assert told["pools"][1]["wrong"] == 21  # type: ignore[index]  # what the split counts, as ever
    out = trm(*cut).out
    assert "val, 90 questions: a gain of +12.1% is found with p=.5, +16.9% with p=.8" in out
    assert "if about 42 of them are wrong (an estimate: " in out
    assert "no gain, however large" not in out


def test_a_split_that_trains_no_class_says_so_last(trm: Trm, tmp_path: Path) -> None:
    """With the number of wrong answers that would let one train, and that number does."""
    few = demo_split("--n-trainval", "28", "--n-test", "20")
    done = trm(*few)
    last = done.err.splitlines()[-1]
    assert last.startswith("NO CLASS WOULD TRAIN")
    for said in ("split.val_wrong_min", "11 lets Counting Problem train", "--val-ratio", "now 28"):
        assert said in last
    assert "T2: of them, those in which the judge found a defect" in done.out
    assert "val, 0 questions: no gain is found" in done.out
    mended = trm(*few, "--val-wrong-min", "11")
    assert "NO CLASS" not in mended.err
    assert "NO CLASS" in trm(*few, "--val-wrong-min", "12").err
    none = trm(*demo_split("--n-trainval", "8", "--n-test", "20", "--val-wrong-min", "0"))
    assert "(data.eval_min_per_class). Split more videos into trainval" in none.err
    told = trm.json(*few)
    assert told["emptied"][0] == {"task_type": "Counting Problem", "val_wrong_min": 11}  # type: ignore[index]  # a list


def test_a_seed_that_trains_no_class_says_so_and_the_check_names_the_key(
    trm: Trm, tmp_path: Path
) -> None:
    """Made all the same; the check stops a run of it with the same remedy, class by class."""
    seed = tmp_path / "seed"
    made = trm(
        *("seed", seed, "--from-db", DEMO / "baseline.db", "--questions", DEMO / "questions.jsonl"),
        *("--n-trainval", "28", "--n-test", "20"),
    )
    assert made.err.splitlines()[-1].startswith("NO CLASS WOULD TRAIN")
    assert (seed / "seed.json").exists()
    check: Words = ["check", "--set", f"data.seed={seed}"]
    lines = trm(*check, expect=2).out.splitlines()
    (counting,) = [line for line in lines if "Counting Problem does not train" in line]
    assert "split.val_wrong_min" in counting
    assert "11 lets Counting Problem train" in counting
    (temporal,) = [line for line in lines if "Temporal Reasoning does not train" in line]
    assert temporal.endswith("-> more videos")
    (val,) = [line for line in lines if "a whole package on val" in line]
    assert val.startswith("! ")
    assert val.endswith("-> mend what `pools` above names")
    again: Words = ["split", "--seed-folder", seed, "--questions", DEMO / "questions.jsonl"]
    trm(*again, "--val-wrong-min", "11", "--force")
    lines = trm(*check).out.splitlines()
    assert [line for line in lines if "1 of 8 classes train" in line]
    (dropped,) = [line for line in lines if "not trained, for reasons" in line]
    assert "6 lets Action Recognition train" in dropped


def demo_split(*options: str) -> Words:
    """A dry run over the demo's own baseline."""
    demo: Words = ["split", "--baseline", DEMO / "baseline.db", "--dry-run"]
    sizes = options or ("--n-trainval", "80", "--n-test", "40")
    return [*demo, "--questions", DEMO / "questions.jsonl", *sizes]
