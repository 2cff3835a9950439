"""``trm split``: reported, frozen, never overwritten unasked (P2-1, row split)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.workspace.seed import open_seed
from tests.system.seed_commands import (
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
