"""What a seed says of itself, and whether it is so (row W-2). Reads only.

A seed is a folder: seed.json, baseline.db, pools.json, split_manifest.json, skills/v1,
prompts/v1. Every check is made, so that all problems are told at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from actors.workspace.baseline_db import BaselineHeader, read_header
from actors.workspace.errors import BadFile, SeedError, WorkspaceError
from actors.workspace.files import read_bytes, read_json, sha256_hex
from actors.workspace.versions import read_prompts, read_skills
from protocol.seed import Pools, SeedInfo, SplitManifest

__all__ = [
    "BASELINE",
    "POOLS",
    "SEED",
    "SPLIT_MANIFEST",
    "Seed",
    "baseline_problems",
    "inspect_seed",
    "pool_problems",
]

SEED = "seed.json"
BASELINE = "baseline.db"
POOLS = "pools.json"
SPLIT_MANIFEST = "split_manifest.json"
_REMEDY = "make the seed anew with `bin/trm seed`"
_MAKE = "check data.seed in the configuration, or make a seed with `bin/trm seed`"
_NAMED = 3
_POOLS: tuple[Literal["diag", "val", "test"], ...] = ("diag", "val", "test")

T = TypeVar("T", bound=msgspec.Struct)


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that was verified. without_baseline: val and test questions never answered."""

    folder: Path
    info: SeedInfo
    pools: Pools
    without_baseline: tuple[str, ...]


def inspect_seed(folder: Path) -> tuple[Seed | None, tuple[WorkspaceError, ...]]:
    """The seed, None if anything is wrong, and all that is."""
    if not folder.is_dir():
        missing = SeedError(folder, "there is no such seed", _MAKE)
        return None, (missing,)
    problems: list[WorkspaceError] = []
    info = _read(folder / SEED, SeedInfo, problems)
    manifest = _read(folder / SPLIT_MANIFEST, SplitManifest, problems)
    pools = _read(folder / POOLS, Pools, problems)
    problems.extend(_contradictions(folder, info, manifest))
    without: tuple[str, ...] = ()
    try:
        header = read_header(folder / BASELINE)
    except WorkspaceError as problem:
        problems.append(problem)
    else:
        if info is not None and pools is not None:
            run_id = info.baseline_run_id
            problems.extend(baseline_problems(folder / BASELINE, header, run_id, pools))
        if manifest is not None and pools is not None:
            problems.extend(pool_problems(folder / POOLS, pools, manifest, header))
        problems.extend(_baseline_hash_problems(folder / BASELINE, info))
        if pools is not None:
            without = tuple(sorted({*pools.val, *pools.test} - header.question_ids))
    versions = ("v1", "v1") if info is None else (info.skills_version, info.prompts_version)
    try:
        read_skills(folder / "skills", versions[0])
    except WorkspaceError as problem:
        problems.append(problem)
    try:
        read_prompts(folder / "prompts", versions[1])
    except WorkspaceError as problem:
        problems.append(problem)
    if problems or info is None or pools is None:
        return None, tuple(problems)
    return Seed(folder=folder, info=info, pools=pools, without_baseline=without), ()


def _read(path: Path, kind: type[T], problems: list[WorkspaceError]) -> T | None:
    try:
        return read_json(path, kind, _REMEDY)
    except BadFile as problem:
        problems.append(problem)
        return None


def _contradictions(
    folder: Path, info: SeedInfo | None, manifest: SplitManifest | None
) -> Iterator[SeedError]:
    """Where the JSON files say different things of one thing."""
    try:
        sha256 = sha256_hex((folder / POOLS).read_bytes())
    except OSError:
        sha256 = None  # told already
    pairs: list[tuple[str, str, str, str, str | None]] = []
    if info is not None:
        pairs.append((SEED, "pools_sha256", info.pools_sha256, POOLS, sha256))
    if manifest is not None:
        pairs.append((SPLIT_MANIFEST, "pools_sha256", manifest.pools_sha256, POOLS, sha256))
    if info is not None and manifest is not None:
        pairs += [
            (SPLIT_MANIFEST, key, getattr(manifest, key), SEED, getattr(info, key))
            for key in ("baseline_run_id", "dataset_fingerprint")
        ]
    for name, key, stated, other, found in pairs:
        if found is not None and stated != found:
            what = f"{key} is {_short(stated)}, but {other} has {_short(found)}"
            yield SeedError(folder / name, what, _REMEDY)


def _baseline_hash_problems(path: Path, info: SeedInfo | None) -> Iterator[SeedError]:
    """Row P2-2: its bytes never change. Older seeds do not say what they were."""
    if info is None or info.baseline_sha256 is None:
        return
    found = sha256_hex(read_bytes(path, _REMEDY))
    if found != info.baseline_sha256:
        what = f"was changed since the seed was made: {SEED} has {_short(info.baseline_sha256)}"
        remedy = f"restore it from a copy, or {_REMEDY}"
        yield SeedError(path, f"{what}, it has {_short(found)}", remedy)


def baseline_problems(
    path: Path, header: BaselineHeader, run_id: str, pools: Pools
) -> Iterator[SeedError]:
    """What makes the baseline unusable for these pools."""
    if header.run_ids != (run_id,):
        what = f"run_id is {', '.join(header.run_ids) or 'nowhere'}, expected only {run_id}"
        yield SeedError(path, what, "name the run that made the baseline")
    if header.rows != len(header.question_ids):
        what = f"{header.rows} rows for {len(header.question_ids)} questions"
        yield SeedError(path, what, "extract it anew with --dedupe: the first row of each question")
    if header.unusable:
        what = f"right is neither 0 nor 1 for {_named(header.unusable)}"
        yield SeedError(path, what, "leave out questions without an outcome")
    lacking = sorted(set(pools.diag) - header.question_ids)
    if lacking:
        what = f"has no outcome for diag questions {_named(lacking)}"
        yield SeedError(path, what, "run the baseline on them, or split without them")


def pool_problems(
    path: Path, pools: Pools, manifest: SplitManifest, header: BaselineHeader
) -> Iterator[SeedError]:
    """Pools that overlap, or are not as large as the split was told to make them.

    The videos are those of the baseline's rows; of a question without a row nothing is known
    here, so that ``dataset.pools`` checks again with the questions.
    """
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for pool in _POOLS:
        for question_id in pools.ids(pool):
            homes[question_id].append(pool)
    twice = sorted(question_id for question_id, named in homes.items() if len(named) > 1)
    if twice:
        yield SeedError(path, f"these questions stand there twice: {_named(twice)}", _REMEDY)
    out = sorted(set(manifest.excluded) & homes.keys())
    if out:
        what = f"holds questions that {SPLIT_MANIFEST} says were excluded: {_named(out)}"
        yield SeedError(path, what, _REMEDY)
    diag, val, test = (_videos(pools.ids(pool), header) for pool in _POOLS)
    for names, shared in (
        ("diag and in val", diag & val),
        ("diag and in test", diag & test),
        ("val and in test", val & test),
    ):
        if shared:
            what = f"videos stand in {names}: {_named(sorted(shared))}"
            yield SeedError(path, what, f"a video belongs to one pool: {_REMEDY}")
    parameters = manifest.parameters
    for key, wanted, ids, found in (
        ("n_trainval", parameters.n_trainval, {*pools.diag, *pools.val}, diag | val),
        ("n_test", parameters.n_test, set(pools.test), test),
    ):
        if header.question_ids >= ids and len(found) != wanted:
            where = "diag and val" if key == "n_trainval" else "test"
            what = f"{where} hold {len(found)} videos, but {SPLIT_MANIFEST} says {key} {wanted}"
            yield SeedError(path, what, _REMEDY)


def _named(ids: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short(stated: str) -> str:
    """A hash by its beginning."""
    return f"{stated[:12]}..." if len(stated) == 64 else stated


def _videos(ids: Iterable[str], header: BaselineHeader) -> set[str]:
    return {header.videos[question_id] for question_id in ids if question_id in header.videos}
