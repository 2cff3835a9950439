"""Seeds: made, sealed, opened and verified (rows seed, W-1, W-2, P2-1, P2-2).

A seed is a folder: seed.json, baseline.db, pools.json, split_manifest.json, skills/v1,
prompts/v1. Other files in it (questions, trees) are not this module's business and stay
as they are. ``seed.json`` is written last: without it the folder is no seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from actors.workspace.atomic import OS_FILES, FileSystem, write_atomic
from actors.workspace.baseline_db import read_header
from actors.workspace.errors import BadFile, SeedError, SplitExists
from actors.workspace.files import pretty_json, read_bytes, read_json, sha256_hex
from actors.workspace.versions import (
    META,
    document_files,
    list_versions,
    read_prompts,
    read_skills,
    seal_version,
)
from protocol.seed import Pools, SeedInfo, SplitManifest

__all__ = [
    "BASELINE",
    "POOLS",
    "SEED",
    "SPLIT_MANIFEST",
    "Seed",
    "freeze_split",
    "init_seed",
    "open_seed",
]

SEED = "seed.json"
BASELINE = "baseline.db"
POOLS = "pools.json"
SPLIT_MANIFEST = "split_manifest.json"
_FIRST = "v1"
_REMEDY = "make the seed anew with `trm seed`"


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that was verified. without_baseline: val and test questions never answered."""

    folder: Path
    info: SeedInfo
    pools: Pools
    without_baseline: tuple[str, ...]


def freeze_split(
    folder: Path,
    pools_json: bytes,
    manifest: SplitManifest,
    *,
    force: bool = False,
    files: FileSystem = OS_FILES,
) -> Path | None:
    """Write pools.json and split_manifest.json; returns where an old split went.

    An existing split with another fingerprint (SHA-256 of its pools.json) is refused with
    SplitExists, or with ``force`` kept as ``pools.json.bak.<first 8 of it>`` (row P2-1).

    Raises SeedError if the manifest is not that of these pools; OSError.
    """
    sha256 = sha256_hex(pools_json)
    if manifest.pools_sha256 != sha256:
        what = f"pools_sha256 is {manifest.pools_sha256}, the pools have {sha256}"
        raise SeedError(folder / SPLIT_MANIFEST, what, _REMEDY)
    path = folder / POOLS
    kept = None
    if path.exists():
        old = path.read_bytes()
        old_sha256 = sha256_hex(old)
        if old_sha256 != sha256:
            kept = folder / f"{POOLS}.bak.{old_sha256[:8]}"
            if not force:
                raise SplitExists(
                    path,
                    f"another split is frozen here ({old_sha256[:8]}, not {sha256[:8]})",
                    f"repeat with --force to replace it; the old one is kept as {kept.name}",
                )
            write_atomic(kept, old, files=files)
    write_atomic(path, pools_json, files=files)
    write_atomic(folder / SPLIT_MANIFEST, pretty_json(manifest), files=files)
    return kept


def init_seed(
    out: Path,
    name: str,
    *,
    baseline_run_id: str,
    baseline_db: Path,
    pools_json: Path,
    split_manifest: Path,
    skills_dir: Path,
    prompts_dir: Path,
    subtitles: bool,
    agent: str,
    tool_version: str,
    force: bool = False,
    files: FileSystem = OS_FILES,
) -> Seed:
    """Make ``out`` a seed of the given parts, and return it verified.

    skills_dir, prompts_dir: Markdown files, sealed into v1. Any part may lie in ``out``
    already. A repeated call with the same parts changes nothing but ``seed.json``.
    force: replace another split (kept aside, row P2-1) and another baseline in ``out``.

    Raises SplitExists without it, SeedError, BadFile or VersionError for a part that cannot
    be used.
    """
    pools_bytes = read_bytes(pools_json, _REMEDY)
    pools = read_json(pools_json, Pools, _REMEDY)
    manifest = read_json(split_manifest, SplitManifest, _REMEDY)
    baseline = read_bytes(baseline_db, _REMEDY)
    _check_baseline(baseline_db, baseline_run_id, pools)
    if manifest.baseline_run_id != baseline_run_id:
        what = f"baseline_run_id is {manifest.baseline_run_id!r}, not {baseline_run_id!r}"
        raise SeedError(split_manifest, what, "split with the baseline that the seed carries")
    if not force and (out / BASELINE).exists() and (out / BASELINE).read_bytes() != baseline:
        what = f"is another baseline than {baseline_db}"
        raise SeedError(out / BASELINE, what, "repeat with --force to replace it")
    _check_sealed(out / "skills", skills_dir)
    _check_sealed(out / "prompts", prompts_dir)
    info = SeedInfo(
        name=name,
        baseline_run_id=baseline_run_id,
        dataset_fingerprint=manifest.dataset_fingerprint,
        pools_sha256=manifest.pools_sha256,
        skills_version=_FIRST,
        prompts_version=_FIRST,
        subtitles=subtitles,
        agent=agent,
        tool_version=tool_version,
    )
    out.mkdir(parents=True, exist_ok=True)
    freeze_split(out, pools_bytes, manifest, force=force, files=files)
    if not (out / BASELINE).exists() or (out / BASELINE).read_bytes() != baseline:
        write_atomic(out / BASELINE, baseline, files=files)
    _seal(out / "skills", skills_dir, "skills", name, files)
    _seal(out / "prompts", prompts_dir, "prompts", name, files)
    write_atomic(out / SEED, pretty_json(info), files=files)
    return open_seed(out)


def open_seed(folder: Path) -> Seed:
    """The seed in ``folder``, after everything it says of itself was checked.

    Checked: the hash of pools.json, one baseline run id in seed.json, split_manifest.json
    and baseline.db, one dataset fingerprint, a baseline row for every diag question, one row
    per question, and every document of its versions.

    Raises BadFile, SeedError or VersionError naming file, key and remedy.
    """
    if not folder.is_dir():
        raise SeedError(folder, "there is no such seed", "check data.seed in the configuration")
    info = read_json(folder / SEED, SeedInfo, _REMEDY)
    manifest = read_json(folder / SPLIT_MANIFEST, SplitManifest, _REMEDY)
    sha256 = sha256_hex(read_bytes(folder / POOLS, _REMEDY))
    pools = read_json(folder / POOLS, Pools, _REMEDY)
    for name, key, stated, other, found in (
        (SEED, "pools_sha256", info.pools_sha256, POOLS, sha256),
        (SPLIT_MANIFEST, "pools_sha256", manifest.pools_sha256, POOLS, sha256),
        (
            SPLIT_MANIFEST,
            "baseline_run_id",
            manifest.baseline_run_id,
            SEED,
            info.baseline_run_id,
        ),
        (
            SPLIT_MANIFEST,
            "dataset_fingerprint",
            manifest.dataset_fingerprint,
            SEED,
            info.dataset_fingerprint,
        ),
    ):
        if stated != found:
            what = f"{key} is {stated}, but {other} has {found}"
            raise SeedError(folder / name, what, _REMEDY)
    without = _check_baseline(folder / BASELINE, info.baseline_run_id, pools)
    read_skills(folder / "skills", info.skills_version)
    read_prompts(folder / "prompts", info.prompts_version)
    return Seed(folder=folder, info=info, pools=pools, without_baseline=without)


def _check_baseline(path: Path, run_id: str, pools: Pools) -> tuple[str, ...]:
    """The val and test questions without a row; raises SeedError for anything worse."""
    header = read_header(path)
    if header.run_ids != (run_id,):
        what = f"run_id is {', '.join(header.run_ids) or 'nowhere'}, expected only {run_id}"
        raise SeedError(path, what, "name the run that made the baseline")
    if header.rows != len(header.question_ids):
        what = f"{header.rows} rows for {len(header.question_ids)} questions"
        raise SeedError(path, what, "extract it with the first row of each question only")
    if header.unusable:
        what = f"right is neither 0 nor 1 for {', '.join(header.unusable)}"
        raise SeedError(path, what, "leave out questions without an outcome")
    lacking = sorted(set(pools.diag) - header.question_ids)
    if lacking:
        what = f"has no outcome for diag questions {', '.join(lacking)}"
        raise SeedError(path, what, "run the baseline on them, or split without them")
    return tuple(sorted({*pools.val, *pools.test} - header.question_ids))


def _check_sealed(folder: Path, source: Path) -> None:
    """Other documents under v1 are refused: a version is never edited, not even by force."""
    sealed = folder / _FIRST
    if not document_files(source):
        raise BadFile(source, "holds no document", "name a folder with Markdown files")
    if list_versions(folder) and document_files(sealed) != document_files(source):
        what = f"holds other documents than {source}"
        raise SeedError(sealed, what, "make a seed of another name, or remove that version first")


def _seal(
    folder: Path,
    source: Path,
    kind: Literal["skills", "prompts"],
    name: str,
    files: FileSystem,
) -> None:
    if not (folder / _FIRST / META).exists():
        seal_version(source, folder, _FIRST, kind=kind, trigger=f"seed {name}", files=files)
