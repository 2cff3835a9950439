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
from actors.workspace.errors import BadFile, SeedError, SplitExists, WorkspaceError
from actors.workspace.files import pretty_json, read_bytes, read_json, sha256_hex
from actors.workspace.seed_check import (
    BASELINE,
    POOLS,
    SEED,
    SPLIT_MANIFEST,
    Seed,
    baseline_problems,
    inspect_seed,
    pool_problems,
)
from actors.workspace.versions import (
    META,
    document_files,
    list_versions,
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
    "resplit",
    "seed_problems",
]

_FIRST = "v1"
_REMEDY = "make the seed anew with `bin/trm seed`"


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
    SplitExists, or with ``force`` kept as ``pools.json.bak.<first 8 of it>``, its manifest
    beside it under the same eight (row P2-1).

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
            kept = _kept_as(path, old)
            if not force:
                raise SplitExists(
                    path,
                    f"another split is frozen here ({old_sha256[:8]}, not {sha256[:8]})",
                    f"repeat with --force to replace it; the old one is kept as {kept.name}",
                )
            write_atomic(kept, old, files=files)
            _keep_manifest(folder, old_sha256, files)
    write_atomic(path, pools_json, files=files)
    write_atomic(folder / SPLIT_MANIFEST, pretty_json(manifest), files=files)
    return kept


def resplit(
    folder: Path,
    pools_json: bytes,
    manifest: SplitManifest,
    *,
    force: bool = False,
    files: FileSystem = OS_FILES,
) -> Path | None:
    """``freeze_split`` in a folder that may be a finished seed: its seed.json stays true.

    Whatever instant it is stopped, the same call again completes it.

    Raises SplitExists, and SeedError if the split was made with another baseline than the seed's.
    """
    if not (folder / SEED).exists():
        return freeze_split(folder, pools_json, manifest, force=force, files=files)
    info = read_json(folder / SEED, SeedInfo, _REMEDY)
    if manifest.baseline_run_id != info.baseline_run_id:
        what = f"its baseline is {info.baseline_run_id}, the split's {manifest.baseline_run_id}"
        raise SeedError(folder / SEED, what, "split with the baseline that the seed carries")
    baseline_sha256 = sha256_hex(read_bytes(folder / BASELINE, _REMEDY))
    if info.baseline_sha256 not in (None, baseline_sha256):
        what = "was changed since the seed was made, so that it cannot be split by"
        raise SeedError(folder / BASELINE, what, f"restore it from a copy, or {_REMEDY}")
    kept = freeze_split(folder, pools_json, manifest, force=force, files=files)
    told = msgspec.structs.replace(
        info,
        pools_sha256=manifest.pools_sha256,
        dataset_fingerprint=manifest.dataset_fingerprint,
        baseline_sha256=baseline_sha256,
    )
    if told != info:
        write_atomic(folder / SEED, pretty_json(told), files=files)
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
    force: replace another split and another baseline in ``out``; the old ones are kept aside
        (row P2-1).

    Raises SplitExists without it, SeedError, BadFile or VersionError for a part that cannot
    be used.
    """
    pools_bytes = read_bytes(pools_json, _REMEDY)
    pools = read_json(pools_json, Pools, _REMEDY)
    manifest = read_json(split_manifest, SplitManifest, _REMEDY)
    baseline = read_bytes(baseline_db, _REMEDY)
    header = read_header(baseline_db)
    for problem in (
        *baseline_problems(baseline_db, header, baseline_run_id, pools),
        *pool_problems(pools_json, pools, manifest, header),
    ):
        raise problem
    if manifest.baseline_run_id != baseline_run_id:
        what = f"baseline_run_id is {manifest.baseline_run_id!r}, not {baseline_run_id!r}"
        raise SeedError(split_manifest, what, "split with the baseline that the seed carries")
    there = out / BASELINE
    old = there.read_bytes() if there.exists() else None
    if not force and old is not None and old != baseline:
        what = f"is another baseline than {baseline_db}"
        raise SeedError(there, what, "repeat with --force to replace it; the old one is kept")
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
        baseline_sha256=sha256_hex(baseline),
    )
    out.mkdir(parents=True, exist_ok=True)
    freeze_split(out, pools_bytes, manifest, force=force, files=files)
    if old != baseline:
        if old is not None:
            write_atomic(_kept_as(there, old), old, files=files)
        write_atomic(there, baseline, files=files)
    _seal(out / "skills", skills_dir, "skills", name, files)
    _seal(out / "prompts", prompts_dir, "prompts", name, files)
    write_atomic(out / SEED, pretty_json(info), files=files)
    return open_seed(out)


def open_seed(folder: Path) -> Seed:
    """The seed in ``folder``, after everything it says of itself was checked.

    Checked (row W-2): the hashes of pools.json and baseline.db, one baseline run id in seed.json,
    split_manifest.json and baseline.db, one dataset fingerprint, a baseline row for every diag
    question, one row per question, pools that are disjoint by question and by video and as large
    as the split's parameters say, nothing excluded in them, and every document of its versions.

    Raises BadFile, SeedError or VersionError naming file, key and remedy.
    """
    seed, problems = inspect_seed(folder)
    if problems:
        first = problems[0]
        remedy = first.remedy
        if len(problems) > 1:
            remedy += f" (1 of {len(problems)} problems: `bin/trm status {folder}` lists them)"
        raise type(first)(first.path, first.what, remedy)
    assert seed is not None, "no problem was found"
    return seed


def seed_problems(folder: Path) -> tuple[WorkspaceError, ...]:
    """Everything for which ``open_seed`` would refuse the folder; empty: it is a seed."""
    return inspect_seed(folder)[1]


def _keep_manifest(folder: Path, pools_sha256: str, files: FileSystem) -> None:
    """The old split's parameters go with it, so that it could be put back."""
    path = folder / SPLIT_MANIFEST
    if path.exists():
        kept = path.with_name(f"{path.name}.bak.{pools_sha256[:8]}")
        write_atomic(kept, path.read_bytes(), files=files)


def _kept_as(path: Path, content: bytes) -> Path:
    """Where an old file goes: its name with the first eight digits of its SHA-256."""
    return path.with_name(f"{path.name}.bak.{sha256_hex(content)[:8]}")


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
