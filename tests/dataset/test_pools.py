"""Frozen pools: only those that belong to these questions and this seed are used (W-2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from actors.dataset.errors import PoolsError
from actors.dataset.fingerprint import dataset_fingerprint, question_fingerprint
from actors.dataset.pools import encode_pools, load_frozen
from protocol.seed import Pools
from tests.dataset.material import freeze, pools_of, question

QUESTIONS = tuple(question(video, number) for video in (1, 2, 3) for number in (1, 2))
POOLS = pools_of(QUESTIONS[:2], QUESTIONS[2:4], QUESTIONS[4:])


def edit(name: str, key: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        built = msgspec.json.decode((folder / name).read_bytes())
        built[key] = value
        (folder / name).write_bytes(msgspec.json.encode(built))

    return change


def test_what_belongs_together_loads(tmp_path: Path) -> None:
    """Pools come back as questions, with the fingerprints that were checked."""
    manifest, seed = freeze(tmp_path, POOLS, QUESTIONS)
    frozen = load_frozen(tmp_path, reversed(QUESTIONS))
    assert (frozen.diag, frozen.val, frozen.test) == (
        QUESTIONS[:2],
        QUESTIONS[2:4],
        QUESTIONS[4:],
    )
    assert frozen.pools_sha256 == manifest.pools_sha256
    assert frozen.baseline_run_id == seed.baseline_run_id


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (edit("split_manifest.json", "pools_sha256", "0" * 64), "split_manifest.json: pools_sha"),
        (edit("seed.json", "pools_sha256", "0" * 64), "seed.json: pools_sha256"),
        (edit("split_manifest.json", "baseline_run_id", "other"), "baseline_run_id: 'other'"),
        (edit("seed.json", "baseline_run_id", "other"), "seed.json has 'other'"),
        (edit("seed.json", "dataset_fingerprint", "1" * 64), "seed.json: dataset_fingerprint"),
        (edit("pools.json", "test", ["003-1"]), "pools.json has"),
        (edit("seed.json", "extra", 1), "extra"),
        (lambda folder: (folder / "pools.json").unlink(), "pools.json: cannot be read"),
        (lambda folder: (folder / "seed.json").write_bytes(b"{"), "seed.json"),
    ],
)
def test_w_2_what_does_not_is_refused(
    tmp_path: Path, change: Callable[[Path], None], named: str
) -> None:
    """W-2: each contradiction is an error that names the file and the key."""
    freeze(tmp_path, POOLS, QUESTIONS)
    change(tmp_path)
    with pytest.raises(PoolsError, match=named) as caught:
        load_frozen(tmp_path, QUESTIONS)
    assert str(tmp_path) in str(caught.value)


def test_w_2_other_questions_are_refused(tmp_path: Path) -> None:
    """W-2: the same ids with another text are another dataset."""
    freeze(tmp_path, POOLS, QUESTIONS)
    changed = (msgspec.structs.replace(QUESTIONS[0], question="How few?"), *QUESTIONS[1:])
    with pytest.raises(PoolsError, match="dataset_fingerprint"):
        load_frozen(tmp_path, changed)


@pytest.mark.parametrize(
    ("pools", "named"),
    [
        (Pools(diag=("001-1",), val=("001-2",), test=()), "video 001 stands in diag and val"),
        (Pools(diag=("001-1", "001-1"), val=(), test=()), "stand there twice: 001-1"),
        (Pools(diag=("009-1",), val=(), test=()), "ids without a question: 009-1"),
    ],
)
def test_pools_are_disjoint_by_video(tmp_path: Path, pools: Pools, named: str) -> None:
    """Asserted at every load, although the hashes agree."""
    freeze(tmp_path, pools, QUESTIONS)
    with pytest.raises(PoolsError, match=named):
        load_frozen(tmp_path, QUESTIONS)


def test_pools_bytes_are_canonical() -> None:
    """Equal pools are equal files."""
    assert encode_pools(Pools(diag=("b", "a"), val=(), test=("c",))) == (
        b'{"diag":["a","b"],"test":["c"],"val":[]}'
    )


def test_fingerprints() -> None:
    """Order and descriptions decide nothing; everything that is asked or scored does."""
    assert dataset_fingerprint(QUESTIONS) == dataset_fingerprint(reversed(QUESTIONS))
    described = msgspec.structs.replace(QUESTIONS[0], domain="Law", duration="long")
    assert question_fingerprint(described) == question_fingerprint(QUESTIONS[0])
    answered = msgspec.structs.replace(QUESTIONS[0], answer="C")
    assert question_fingerprint(answered) != question_fingerprint(QUESTIONS[0])
    assert dataset_fingerprint((answered, *QUESTIONS[1:])) != dataset_fingerprint(QUESTIONS)
