"""Versions of the documents: verified when read, written aside, never edited."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from actors.workspace.errors import BadFile, VersionError
from actors.workspace.versions import (
    list_versions,
    read_meta,
    read_prompts,
    read_skills,
    seal_version,
    write_skills,
)
from protocol.documents import Skill
from tests.workspace.material import Failing, skill_text, write_documents


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A skills folder with v1."""
    source, _ = write_documents(tmp_path)
    seal_version(source, tmp_path / "skills", "v1", kind="skills", trigger="seed made-up")
    return tmp_path / "skills"


def counting(body: str) -> Skill:
    return Skill(task_type="Counting Problem", text=skill_text("Counting Problem", body))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_read_skills(skills: Path) -> None:
    """Whole files, front matter included, ordered by file name."""
    found = read_skills(skills, "v1")
    assert [skill.task_type for skill in found] == ["_default", "Counting Problem"]
    assert found[1].text == skill_text("Counting Problem")


def test_new_version_keeps_the_parent(skills: Path) -> None:
    """The parent's files with the new ones in their place; the parent's bytes do not change."""
    before = contents(skills / "v1")
    added = Skill(task_type="OCR Problems", text=skill_text("OCR Problems"))
    version = write_skills(skills, "v1", [counting("Count."), added], "epoch-1")
    assert version == "v2"
    assert [skill.task_type for skill in read_skills(skills, "v2")] == [
        "_default",
        "Counting Problem",
        "OCR Problems",
    ]
    assert contents(skills / "v1") == before
    meta = read_meta(skills, "v2")
    assert (meta.version, meta.parent, meta.source, meta.trigger) == (
        "v2",
        "v1",
        "training",
        "epoch-1",
    )


def test_repeated_request_writes_nothing(skills: Path) -> None:
    """Same trigger and texts: the same version; other texts or another trigger: the next."""
    assert write_skills(skills, "v1", [counting("Count.")], "epoch-1") == "v2"
    assert write_skills(skills, "v1", [counting("Count.")], "epoch-1") == "v2"
    assert write_skills(skills, "v1", [counting("Count again.")], "epoch-1") == "v3"
    assert write_skills(skills, "v1", [counting("Count.")], "epoch-2") == "v4"
    assert write_skills(skills, "v2", [counting("Count.")], "epoch-9") == "v2"
    assert list_versions(skills) == ("v1", "v2", "v3", "v4")


def test_no_clock_in_a_version(skills: Path, tmp_path: Path) -> None:
    """Two runs that decide the same write the same bytes."""
    twin = tmp_path / "twin"
    source, _ = write_documents(twin)
    seal_version(source, twin / "skills", "v1", kind="skills", trigger="seed made-up")
    for folder in (skills, twin / "skills"):
        write_skills(folder, "v1", [counting("Count.")], "epoch-1")
    assert contents(skills) == contents(twin / "skills")


def test_ten_comes_after_nine(skills: Path) -> None:
    """Versions are numbers, not names."""
    for number in range(2, 12):
        assert write_skills(skills, "v1", [counting(f"{number}")], "e") == f"v{number}"
    assert list_versions(skills)[-2:] == ("v10", "v11")


@pytest.mark.parametrize("at", range(8))
def test_failed_write_leaves_no_half_version(skills: Path, at: int) -> None:
    """A full disk at any call: the version is whole or not there, and nothing lies beside it."""
    files = Failing(at, OSError(28, "No space left on device"))
    with contextlib.suppress(OSError):
        write_skills(skills, "v1", [counting("Count.")], "epoch-1", files=files)
    assert {path.name for path in skills.iterdir()} == set(list_versions(skills))
    for version in list_versions(skills):
        assert len(read_skills(skills, version)) == 2
    assert ("v2" in list_versions(skills)) == (at >= 5)  # only the last sync follows the rename


def damage_text(folder: Path) -> None:
    (folder / "counting-problem.md").write_text(skill_text("Counting Problem", "x"))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (damage_text, r"counting-problem\.md: was changed"),
        (lambda folder: (folder / "_default.md").unlink(), r"_default\.md: is missing"),
        (lambda folder: (folder / "new.md").touch(), r"new\.md: is not in meta\.json"),
    ],
)
def test_edited_version_is_refused(
    skills: Path, damage: Callable[[Path], None], named: str
) -> None:
    """A version that was touched by hand is named, not trained from."""
    damage(skills / "v1")
    with pytest.raises(VersionError, match=named):
        read_skills(skills, "v1")


def test_bad_meta_names_file_and_key(skills: Path) -> None:
    """The key that does not fit is in the message."""
    (skills / "v1" / "meta.json").write_bytes(msgspec.json.encode({"version": 1}))
    with pytest.raises(BadFile, match=r"meta\.json.*version"):
        read_skills(skills, "v1")


def test_unknown_version_names_those_there_are(skills: Path) -> None:
    """So does a path that is no version name."""
    for version in ("v7", "../skills/v1", "v01"):
        with pytest.raises(VersionError, match="there are: v1"):
            read_skills(skills, version)


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("counting.md", skill_text("Counting Problem"), "task_type: Counting Problem"),
        ("x.md", "# no front matter\n", "has no front matter"),
        ("x.md", "---\nname: x\n---\n", "names the class as"),
        ("x.md", '---\ntask_type: "x"\n---\n', "without quotes"),
        ("x.md", "---\ntask_type: x\ntask_type: y\n---\n", "names the class as"),
    ],
)
def test_file_name_and_front_matter_agree(tmp_path: Path, name: str, text: str, named: str) -> None:
    """Else the class would silently be served by the default."""
    source, _ = write_documents(tmp_path)
    (source / name).write_text(text, encoding="utf-8")
    with pytest.raises(VersionError, match=named) as caught:
        seal_version(source, tmp_path / "skills", "v1", kind="skills", trigger="t")
    assert name in str(caught.value)
    assert not (tmp_path / "skills").exists()


def test_a_skill_is_saved_under_its_own_class(skills: Path) -> None:
    """A text of another class in a skill's place is a bug, and nothing is written."""
    wrong = Skill(task_type="Counting Problem", text=skill_text("OCR Problems"))
    with pytest.raises(VersionError, match="OCR Problems"):
        write_skills(skills, "v1", [wrong], "epoch-1")
    assert list_versions(skills) == ("v1",)


def test_prompts(tmp_path: Path) -> None:
    """system.md and tools/<tool>.md; both are needed and nothing else is taken."""
    _, source = write_documents(tmp_path)
    seal_version(source, tmp_path / "prompts", "v1", kind="prompts", trigger="t")
    prompts = read_prompts(tmp_path / "prompts", "v1")
    assert (prompts.version, prompts.system) == ("v1", "You answer questions.\n")
    assert [(tool.name, tool.text) for tool in prompts.tools] == [
        ("view_node", "view_node: look.\n")
    ]
    (source / "extra.md").touch()
    with pytest.raises(VersionError, match=r"extra\.md: is no prompt"):
        seal_version(source, tmp_path / "prompts", "v2", kind="prompts", trigger="t")
    (source / "extra.md").unlink()
    (source / "system.md").unlink()
    with pytest.raises(VersionError, match=r"system\.md: is missing"):
        seal_version(source, tmp_path / "prompts", "v2", kind="prompts", trigger="t")
