"""The workspace actor, without the runtime: a real folder, handlers called directly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.workspace.actor import WorkspaceActor
from actors.workspace.errors import BadFile, VersionError
from protocol.base import Refused
from protocol.documents import Package, PackageTexts, Skill
from protocol.workspace import GetManifest, OpenPackage, SaveSkills, UpdateManifest
from tests.workspace.material import BareContext, new_workspace, skill_text, unchanged

pytestmark = pytest.mark.anyio

V1 = Package(skills="v1", prompts="v1")
V2 = Package(skills="v2", prompts="v1")
SAVE = SaveSkills(
    parent="v1",
    skills=(
        Skill(task_type="Counting Problem", text=skill_text("Counting Problem", "Count twice.")),
    ),
    trigger="epoch-1",
)


@pytest.fixture
def folder(seed_dir: Path, tmp_path: Path) -> Path:
    """A new workspace."""
    new_workspace(seed_dir, tmp_path / "w", "run-1")
    return tmp_path / "w"


async def started(folder: Path) -> WorkspaceActor:
    actor = WorkspaceActor(folder)
    await actor.on_start(BareContext())
    return actor


async def test_save_open_update(folder: Path) -> None:
    """A new version is written, opened and pointed at; a repeat changes nothing."""
    actor = await started(folder)
    assert (await actor.save(SAVE)).version == "v2"
    assert (await actor.save(SAVE)).version == "v2"
    opened = await actor.open(OpenPackage(package=V2))
    assert isinstance(opened, PackageTexts)
    assert "Count twice." in opened.skill_for("Counting Problem").text
    assert opened.skill_for("Unheard Of").task_type == "_default"
    request = UpdateManifest(current=V2, best_hard=V2, best_mixed=V1, epoch=1)
    manifest = await actor.update(request)
    assert (manifest.run_id, manifest.seed_name) == ("run-1", "made-up")
    assert (manifest.current, manifest.best_mixed, manifest.epoch) == (V2, V1, 1)
    with unchanged(folder / "manifest.json"):
        assert await actor.update(request) == manifest
    assert await (await started(folder)).manifest(GetManifest()) == manifest


async def test_opened_package_is_kept(folder: Path) -> None:
    """Versions never change, so the second answer costs nothing."""
    actor = await started(folder)
    first = await actor.open(OpenPackage(package=V1))
    assert await actor.open(OpenPackage(package=V1)) is first


async def test_unusable_package_is_refused(folder: Path) -> None:
    """A declared no with a remedy: a version that is not there, or was edited by hand."""
    actor = await started(folder)
    refused = await actor.open(OpenPackage(package=Package(skills="v9", prompts="v1")))
    assert isinstance(refused, Refused)
    assert "v9" in refused.what
    assert "v1" in refused.remedy
    (folder / "skills" / "v1" / "_default.md").write_text("edited", encoding="utf-8")
    edited = await actor.open(OpenPackage(package=V1))
    assert isinstance(edited, Refused)
    assert "_default.md" in edited.what


async def test_pointer_to_nothing_is_a_bug(folder: Path) -> None:
    """It raises, and the manifest stays."""
    actor = await started(folder)
    with unchanged(folder / "manifest.json"), pytest.raises(VersionError, match="v2"):
        await actor.update(UpdateManifest(current=V2, best_hard=V1, best_mixed=V1, epoch=1))


async def test_start_sweeps_its_own_folders_only(folder: Path) -> None:
    """A half-written version goes; a checkpoint in flight beside the manifest stays."""
    half = folder / "skills" / ".v2.999999999.0.tmp"
    half.mkdir()
    flying = folder / f".checkpoint.json.{os.getpid()}.0.tmp"
    flying.touch()
    with capture_logs() as logs:
        await started(folder)
    assert not half.exists()
    assert flying.exists()
    assert [line["file"] for line in logs] == [str(half)]


async def test_start_without_a_manifest(tmp_path: Path) -> None:
    """The file is named."""
    with pytest.raises(BadFile, match=r"manifest\.json"):
        await started(tmp_path)
