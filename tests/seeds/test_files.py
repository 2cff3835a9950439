"""The builder makes the committed bytes, wherever and however often it runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from seeds.demo_builder.build import build, write_files
from tests.seeds.committed import DEMO, documents

#: What else a seed folder holds: made by hand, or by the baseline run.
_NOT_BUILT = {"README.md", "seed.json", "baseline.db", "pools.json", "split_manifest.json"}


def _bytes_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_two_builds_are_identical() -> None:
    """Nothing is left over from a build that the next one could see."""
    first, second = build(), build()
    assert dict(first.files) == dict(second.files)
    assert (first.rows, first.proofs, first.world) == (second.rows, second.proofs, second.world)


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_a_process_of_its_own_writes_the_committed_files(tmp_path: Path, hash_seed: str) -> None:
    """Under any hash seed, byte for byte; no file is missing and none was left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "seeds.demo_builder", "--out", str(tmp_path)],
        cwd=DEMO.parents[1],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": "C"},
        capture_output=True,
        check=True,
    )
    assert b"360 questions" in done.stdout
    committed = _bytes_below(DEMO)
    for name in _NOT_BUILT:
        committed.pop(name, None)
    written = _bytes_below(tmp_path)
    assert sorted(written) == sorted(committed)
    assert [name for name in written if written[name] != committed[name]] == []


def test_other_files_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    """A rebuilt benchmark keeps its baseline."""
    (tmp_path / "baseline.db").write_bytes(b"kept")
    write_files(build(), tmp_path)
    assert (tmp_path / "baseline.db").read_bytes() == b"kept"


@pytest.mark.parametrize("kind", ["skills", "prompts"])
def test_the_first_version_is_sealed(kind: str) -> None:
    """``meta.json`` names every document with its SHA-256, and no version before it."""
    meta = msgspec.json.decode((DEMO / kind / "v1" / "meta.json").read_bytes())
    prefix = f"{kind}/v1/"
    digests = {
        path.removeprefix(prefix): hashlib.sha256(text.encode()).hexdigest()
        for path, text in documents().items()
        if path.startswith(prefix)
    }
    assert meta["files"] == digests
    assert list(meta["files"]) == sorted(digests)
    assert (meta["version"], meta["parent"], meta["source"]) == ("v1", None, "seed")
