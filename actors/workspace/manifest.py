"""``manifest.json``: what is current and what was best, replaced atomically (row P1-7)."""

from __future__ import annotations

from pathlib import Path

from actors.workspace.atomic import OS_FILES, FileSystem, write_atomic
from actors.workspace.files import pretty_json, read_json
from protocol.workspace import Manifest

__all__ = ["MANIFEST", "read_manifest", "write_manifest"]

MANIFEST = "manifest.json"
_REMEDY = "name a workspace that a run made, or start a new one"


def read_manifest(workspace: Path) -> Manifest:
    """The workspace's manifest. Raises BadFile naming file and key."""
    return read_json(workspace / MANIFEST, Manifest, _REMEDY)


def write_manifest(workspace: Path, manifest: Manifest, *, files: FileSystem = OS_FILES) -> None:
    """Replace the manifest. Raises OSError; the old one then stands, whole."""
    write_atomic(workspace / MANIFEST, pretty_json(manifest), files=files)
