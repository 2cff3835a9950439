"""The workspace actor: the one who reads and writes documents and the manifest of a run.

Every write goes through ``atomic``, every disk access runs in a worker thread. Must
never edit a version in place.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from actors.runtime.actor import Actor, Context, handles
from actors.workspace.atomic import sweep_tmp
from actors.workspace.errors import BadFile, VersionError
from actors.workspace.manifest import read_manifest, write_manifest
from actors.workspace.versions import (
    read_meta,
    read_prompts,
    read_skills,
    write_prompts,
    write_skills,
)
from protocol.base import Refused
from protocol.documents import Package, PackageTexts
from protocol.workspace import (
    GetManifest,
    Manifest,
    OpenPackage,
    PromptsSaved,
    SavePrompts,
    SaveSkills,
    SkillsSaved,
    UpdateManifest,
)

__all__ = ["WorkspaceActor"]


class WorkspaceActor(Actor):
    """Owns the documents of the workspace at ``path``, whose lock the process holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._skills = path / "skills"
        self._prompts = path / "prompts"
        self._opened: dict[Package, PackageTexts] = {}

    async def on_start(self, context: Context) -> None:
        """Sweep what a dead process left half-written. Raises BadFile without a manifest."""
        await anyio.to_thread.run_sync(read_manifest, self._path)
        for path in await anyio.to_thread.run_sync(self._sweep):
            context.log.info("workspace.swept", file=str(path))

    @handles(GetManifest)
    async def manifest(self, request: GetManifest) -> Manifest:
        """The manifest as it is on disk."""
        return await anyio.to_thread.run_sync(read_manifest, self._path)

    @handles(UpdateManifest)
    async def update(self, request: UpdateManifest) -> Manifest:
        """Replace the pointers. A pointer to a version that is not there is a bug: raises."""
        return await anyio.to_thread.run_sync(self._update, request)

    @handles(OpenPackage)
    async def open(self, request: OpenPackage) -> PackageTexts | Refused:
        """The package's texts, verified when first read; versions never change, so kept."""
        package = request.package
        if package not in self._opened:
            try:
                self._opened[package] = await anyio.to_thread.run_sync(self._read, package)
            except (VersionError, BadFile) as problem:
                return Refused(what=f"{problem.path}: {problem.what}", remedy=problem.remedy)
        return self._opened[package]

    @handles(SaveSkills)
    async def save(self, request: SaveSkills) -> SkillsSaved:
        """Write the version, or find the one that holds these texts already."""
        version = await anyio.to_thread.run_sync(
            partial(write_skills, self._skills, request.parent, request.skills, request.trigger)
        )
        return SkillsSaved(version=version)

    @handles(SavePrompts)
    async def save_prompts(self, request: SavePrompts) -> PromptsSaved:
        """Write the version, or find the one that holds these texts already."""
        write = partial(
            write_prompts, self._prompts, request.parent, request.documents, request.trigger
        )
        return PromptsSaved(version=await anyio.to_thread.run_sync(write))

    def _sweep(self) -> tuple[Path, ...]:
        """Only where this actor alone writes: beside it a checkpoint may be in flight."""
        return (*sweep_tmp(self._skills), *sweep_tmp(self._prompts))

    def _update(self, request: UpdateManifest) -> Manifest:
        for package in (request.current, request.best_hard, request.best_mixed):
            read_meta(self._skills, package.skills)
            read_meta(self._prompts, package.prompts)
        before = read_manifest(self._path)
        manifest = msgspec.structs.replace(
            before,
            current=request.current,
            best_hard=request.best_hard,
            best_mixed=request.best_mixed,
            epoch=request.epoch,
        )
        write_manifest(self._path, manifest)
        return manifest

    def _read(self, package: Package) -> PackageTexts:
        return PackageTexts(
            package=package,
            skills=read_skills(self._skills, package.skills),
            prompts=read_prompts(self._prompts, package.prompts),
        )
