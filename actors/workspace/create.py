"""Workspaces: made from a seed, numbered, found again.

A workspace is built aside and renamed into place, so that a half-made one never exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from actors.workspace.atomic import OS_FILES, FileSystem, folder_aside
from actors.workspace.errors import WorkspaceError
from actors.workspace.files import pretty_json, sha256_hex
from actors.workspace.manifest import MANIFEST
from actors.workspace.seed import BASELINE, POOLS, SEED, SPLIT_MANIFEST, open_seed
from actors.workspace.versions import copy_version
from protocol.documents import Package
from protocol.workspace import Manifest

__all__ = ["init_workspace_from_seed", "latest_workspace", "next_workspace"]


def init_workspace_from_seed(
    seed_dir: Path,
    workspace_dir: Path,
    run_id: str,
    *,
    settings_sha256: str,
    trees_sha256: str,
    beside: Mapping[str, bytes],
    files: FileSystem = OS_FILES,
) -> Manifest:
    """Make ``workspace_dir`` and return its manifest, at epoch 0.

    settings_sha256, trees_sha256: for the manifest. beside: further files by name (config.yaml).

    Copies baseline.db, then the frozen split that the seed carries (row W-1), seed.json and
    the documents. The seed is only read (row P2-2).

    Raises WorkspaceError if the workspace exists, what ``open_seed`` raises, or OSError.
    """
    if workspace_dir.exists():
        raise WorkspaceError(
            workspace_dir, "exists already", "resume it, or name a workspace that does not exist"
        )
    seed = open_seed(seed_dir)
    package = Package(skills=seed.info.skills_version, prompts=seed.info.prompts_version)
    manifest = Manifest(
        run_id=run_id,
        seed_name=seed.info.name,
        settings_sha256=settings_sha256,
        baseline_sha256=sha256_hex((seed_dir / BASELINE).read_bytes()),
        trees_sha256=trees_sha256,
        current=package,
        best_hard=package,
        best_mixed=package,
        epoch=0,
    )
    workspace_dir.parent.mkdir(parents=True, exist_ok=True)
    with folder_aside(workspace_dir, files=files) as aside:
        for name in (BASELINE, POOLS, SPLIT_MANIFEST, SEED):
            (aside / name).write_bytes((seed_dir / name).read_bytes())
        copy_version(seed_dir / "skills", aside / "skills", package.skills)
        copy_version(seed_dir / "prompts", aside / "prompts", package.prompts)
        for name, data in beside.items():
            (aside / name).write_bytes(data)
        (aside / "logs").mkdir()
        (aside / MANIFEST).write_bytes(pretty_json(manifest))
    return manifest


def next_workspace(root: Path, name: str) -> Path:
    """``root/<name>-001``, or one more than the highest number there is. Makes nothing."""
    numbers = _numbers(root, name)
    return root / f"{name}-{max(numbers, default=0) + 1:03d}"


def latest_workspace(root: Path, name: str) -> Path | None:
    """The workspace of that name with the highest number; None: there is none."""
    numbers = _numbers(root, name)
    return numbers[max(numbers)] if numbers else None


def _numbers(root: Path, name: str) -> dict[int, Path]:
    if not root.is_dir():
        return {}
    pattern = re.compile(rf"^{re.escape(name)}-([0-9]{{3,}})$")
    return {
        int(match[1]): path
        for path in root.iterdir()
        if (match := pattern.match(path.name)) and path.is_dir()
    }
