"""Frozen pools: loaded whole and verified, or refused with everything that does not fit.

Reads ``pools.json``, ``split_manifest.json`` and ``seed.json`` of a folder. Never
writes, never repairs: pools that do not belong to these questions and this seed
would train on what they are tested on (row W-2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from actors.dataset.errors import PoolsError, Problem
from actors.dataset.fingerprint import canonical_json, dataset_fingerprint, sha256_hex
from protocol.dataset import Question
from protocol.seed import Pools, SeedInfo, SplitManifest

__all__ = [
    "FrozenData",
    "encode_pools",
    "load_frozen",
    "verify_pools",
]

PoolName = Literal["diag", "val", "test"]
_POOLS: tuple[PoolName, ...] = ("diag", "val", "test")
_REMEDY = "restore the three files of one `bin/trm split`, or split anew"
_SAME_QUESTIONS = "give the questions that were split (data.questions and data.exclude)"
_OTHER_QUESTIONS = (
    "make a seed for these questions with `bin/trm seed` and name it in data.seed, or "
    + _SAME_QUESTIONS
)
_NAMED = 3
_FEW = 4
"""So few ids say nothing of where they come from; they are named one by one."""

T = TypeVar("T", Pools, SplitManifest, SeedInfo)


class FrozenData(msgspec.Struct, frozen=True, kw_only=True):
    """Questions and the pools that were verified against them.

    diag, val, test: ordered by question id. pools_sha256: of the file's bytes.
    """

    questions: tuple[Question, ...]
    diag: tuple[Question, ...]
    val: tuple[Question, ...]
    test: tuple[Question, ...]
    pools_sha256: str
    dataset_fingerprint: str
    baseline_run_id: str


def encode_pools(pools: Pools) -> bytes:
    """The bytes of ``pools.json``: canonical, ids sorted, so that equal pools are equal files."""
    return canonical_json(
        {"diag": sorted(pools.diag), "val": sorted(pools.val), "test": sorted(pools.test)}
    )


def load_frozen(folder: Path, questions: Iterable[Question]) -> FrozenData:
    """The pools in ``folder`` with their questions.

    Raises PoolsError with file, key and remedy of every problem.
    """
    questions = tuple(questions)
    problems: list[Problem] = []
    pools_bytes = _read(folder / "pools.json", problems)
    pools = _decode(pools_bytes, Pools, "pools.json", problems)
    manifest_bytes = _read(folder / "split_manifest.json", problems)
    manifest = _decode(manifest_bytes, SplitManifest, "split_manifest.json", problems)
    seed = _decode(_read(folder / "seed.json", problems), SeedInfo, "seed.json", problems)
    if pools_bytes is None or pools is None or manifest is None or seed is None:
        raise PoolsError(folder, problems)
    sha256 = sha256_hex(pools_bytes)
    problems = verify_pools(pools, sha256, manifest, seed, questions)
    if problems:
        raise PoolsError(folder, problems)
    by_id = {question.question_id: question for question in questions}
    diag, val, test = (
        tuple(by_id[question_id] for question_id in sorted(pools.ids(pool))) for pool in _POOLS
    )
    return FrozenData(
        questions=questions,
        diag=diag,
        val=val,
        test=test,
        pools_sha256=sha256,
        dataset_fingerprint=manifest.dataset_fingerprint,
        baseline_run_id=seed.baseline_run_id,
    )


def verify_pools(
    pools: Pools,
    pools_sha256: str,
    manifest: SplitManifest,
    seed: SeedInfo,
    questions: Iterable[Question],
) -> list[Problem]:
    """Everything in which the frozen files contradict each other or the questions.

    Checked: both hashes of pools.json, the baseline's run id, the dataset's fingerprint,
    unknown and repeated ids, that nothing excluded is back, and that no video stands in two
    pools.
    """
    questions = tuple(questions)
    actual = dataset_fingerprint(questions)
    pairs = (
        ("split_manifest.json: pools_sha256", manifest.pools_sha256, "pools.json", pools_sha256),
        ("seed.json: pools_sha256", seed.pools_sha256, "pools.json", pools_sha256),
        (
            "split_manifest.json: baseline_run_id",
            manifest.baseline_run_id,
            "seed.json",
            seed.baseline_run_id,
        ),
        (
            "split_manifest.json: dataset_fingerprint",
            manifest.dataset_fingerprint,
            "the questions",
            actual,
        ),
        ("seed.json: dataset_fingerprint", seed.dataset_fingerprint, "the questions", actual),
    )
    by_id = {question.question_id: question for question in questions}
    foreign = list(_check_foreign(pools, by_id))
    problems = [
        Problem(
            where,
            f"{_short(stated)!r}, but {other} has {_short(found)!r}",
            _SAME_QUESTIONS if other == "the questions" else _REMEDY,
        )
        for where, stated, other, found in pairs
        if stated != found and not (foreign and other == "the questions")
    ]
    if foreign:  # all else that could be said of other questions follows from this
        return [*foreign, *problems]
    problems.extend(_check_excluded(manifest, by_id))
    problems.extend(_check_ids(pools, by_id))
    problems.extend(_check_disjoint(pools, by_id))
    return problems


def _check_foreign(pools: Pools, by_id: Mapping[str, Question]) -> Iterable[Problem]:
    """Whether the pools are those of other questions: of most of their ids there is none here."""
    ids = sorted({question_id for pool in _POOLS for question_id in pools.ids(pool)})
    unknown = [question_id for question_id in ids if question_id not in by_id]
    if len(unknown) * 2 > len(ids) and by_id and len(ids) >= _FEW:
        what = f"of {len(ids)} ids {len(unknown)} have no question here: {_named(unknown)}"
        yield Problem("pools.json", f"belongs to other questions: {what}", _OTHER_QUESTIONS)


def _named(ids: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short(stated: str) -> str:
    """A hash by its beginning."""
    return f"{stated[:12]}..." if len(stated) == 64 else stated


def _check_ids(pools: Pools, by_id: Mapping[str, Question]) -> Iterable[Problem]:
    for pool in _POOLS:
        ids = pools.ids(pool)
        unknown = sorted({question_id for question_id in ids if question_id not in by_id})
        if unknown:
            what = f"ids without a question: {_named(unknown)}"
            yield Problem(f"pools.json: {pool}", what, _SAME_QUESTIONS)
        repeated = sorted({question_id for question_id in ids if ids.count(question_id) > 1})
        if repeated:
            what = f"ids that stand there twice: {_named(repeated)}"
            yield Problem(f"pools.json: {pool}", what, _REMEDY)


def _check_excluded(manifest: SplitManifest, by_id: Mapping[str, Question]) -> Iterable[Problem]:
    back = [question_id for question_id in manifest.excluded if question_id in by_id]
    if back:
        what = f"{len(back)} questions that the split left out are back: {_named(back)}"
        yield Problem("split_manifest.json: excluded", what, "name them in data.exclude's file")


def _check_disjoint(pools: Pools, by_id: Mapping[str, Question]) -> Iterable[Problem]:
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for pool in _POOLS:
        for question_id in pools.ids(pool):
            if question_id in by_id:
                homes[by_id[question_id].video_id].add(pool)
    for video_id, named in sorted(homes.items()):
        if len(named) > 1:
            what = f"video {video_id} stands in {' and '.join(sorted(named))}"
            yield Problem("pools.json", what, "a video belongs to one pool: " + _REMEDY)


def _read(path: Path, problems: list[Problem]) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        problems.append(Problem(path.name, what, "make the workspace from a complete seed"))
        return None


def _decode(data: bytes | None, kind: type[T], name: str, problems: list[Problem]) -> T | None:
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problems.append(Problem(name, str(error), _REMEDY))
        return None
