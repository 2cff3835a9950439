"""Folders ``skills/vN`` and ``prompts/vN``: written once, aside, renamed into place, never edited.

``meta.json`` of a version holds the SHA-256 of each of its files, so that a later edit
by hand is found, and no time, so that the same run makes the same bytes. Skill files
are named after their front matter's ``task_type`` (``protocol.keys.slug``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from actors.workspace.atomic import OS_FILES, FileSystem, folder_aside, write_atomic
from actors.workspace.errors import VersionError
from actors.workspace.files import pretty_json, read_json, sha256_hex
from protocol.documents import Document, Prompts, Skill
from protocol.keys import slug
from protocol.slow import SYSTEM

__all__ = [
    "META",
    "VersionMeta",
    "copy_version",
    "document_files",
    "list_versions",
    "read_meta",
    "read_prompts",
    "read_skills",
    "seal_version",
    "write_prompts",
    "write_skills",
]

META = "meta.json"
_VERSION = re.compile(r"^v([1-9][0-9]*)$")
_REMEDY = "restore the version from its seed or from a copy; versions are never edited"


class VersionMeta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``meta.json``. source: ``seed`` or ``training``. trigger: what made it.

    files: SHA-256 by path inside the version, sorted by path.
    """

    version: str
    parent: str | None
    source: str
    trigger: str
    files: dict[str, str]


def list_versions(folder: Path) -> tuple[str, ...]:
    """The versions in ``skills`` or ``prompts``, oldest first; other names are left aside."""
    if not folder.is_dir():
        return ()
    numbers = [
        int(match[1])
        for path in folder.iterdir()
        if (match := _VERSION.match(path.name)) and path.is_dir()
    ]
    return tuple(f"v{number}" for number in sorted(numbers))


def read_meta(folder: Path, version: str) -> VersionMeta:
    """A version's meta.json. Raises VersionError naming the versions there are, or BadFile."""
    path = folder / version
    if _VERSION.match(version) is None or not path.is_dir():
        known = ", ".join(list_versions(folder)) or "none"
        raise VersionError(path, "there is no such version", f"the versions there are: {known}")
    return read_json(path / META, VersionMeta, _REMEDY)


def read_skills(folder: Path, version: str) -> tuple[Skill, ...]:
    """The skills of a version, ordered by file name.

    Raises VersionError naming the file that is damaged, extra, missing, or whose name
    and front matter do not agree; BadFile for its meta.json.
    """
    return _skills_of(folder / version, _verified(folder, version))


def read_prompts(folder: Path, version: str) -> Prompts:
    """The system prompt and the tool prompts of a version, tools ordered by name.

    Raises VersionError as ``read_skills`` does.
    """
    return _prompts_of(folder / version, version, _verified(folder, version))


def write_skills(
    folder: Path,
    parent: str,
    skills: Iterable[Skill],
    trigger: str,
    *,
    files: FileSystem = OS_FILES,
) -> str:
    """The version that holds the parent's files with these skills in their place.

    Texts that the parent holds already are the parent; the same trigger with the same
    texts is the version it made before. Else the next number is written.

    Raises VersionError if the parent cannot be read or a skill's text names another
    class than the skill; OSError, and then nothing new is there.
    """
    texts = {_file_name(skill.task_type): skill.text for skill in read_skills(folder, parent)}
    texts |= {_file_name(skill.task_type): skill.text for skill in skills}
    contents = {name: text.encode("utf-8") for name, text in texts.items()}
    _skills_of(folder / "next", contents)
    return _write(folder, parent, contents, trigger, files)


def write_prompts(
    folder: Path,
    parent: str,
    documents: Iterable[Document],
    trigger: str,
    *,
    files: FileSystem = OS_FILES,
) -> str:
    """The version that holds the parent's prompts with these in their place, as ``write_skills``.

    documents: by name, ``protocol.slow.SYSTEM`` or a tool's. Raises VersionError if the parent
    cannot be read or has no prompt of that name; OSError, and then nothing new is there.
    """
    contents = _verified(folder, parent)
    for document in documents:
        name = "system.md" if document.name == SYSTEM else f"tools/{document.name}.md"
        if name not in contents:
            remedy = f"the prompts there are: {', '.join(sorted(contents))}"
            raise VersionError(folder / parent / name, "is not in the parent version", remedy)
        contents[name] = document.text.encode("utf-8")
    _prompts_of(folder / "next", "next", contents)
    return _write(folder, parent, contents, trigger, files)


def _write(
    folder: Path, parent: str, contents: Mapping[str, bytes], trigger: str, files: FileSystem
) -> str:
    """The version with these files: the parent, one that the trigger made before, or a new one."""
    hashes = _hashes(contents)
    if read_meta(folder, parent).files == hashes:
        return parent
    versions = list_versions(folder)
    for version in versions:
        meta = read_meta(folder, version)
        if meta.trigger == trigger and meta.files == hashes:
            return version
    version = f"v{1 + max(int(known[1:]) for known in versions)}"
    meta = VersionMeta(
        version=version, parent=parent, source="training", trigger=trigger, files=hashes
    )
    with folder_aside(folder / version, files=files) as aside:
        _fill(aside, contents, meta)
    return version


def document_files(folder: Path) -> dict[str, bytes]:
    """The Markdown files below a folder by relative path: documents, sealed or not."""
    paths = sorted(path for path in folder.rglob("*.md") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def seal_version(
    source: Path,
    folder: Path,
    version: str,
    *,
    kind: Literal["skills", "prompts"],
    trigger: str,
    files: FileSystem = OS_FILES,
) -> None:
    """Make ``folder/version`` from the Markdown files in ``source``, checked and hashed.

    kind: what the documents must be. A version that lies there already without meta.json
    and is ``source`` itself is sealed where it lies.

    Raises VersionError naming the file that cannot be used; FileExistsError.
    """
    contents = document_files(source)
    if kind == "skills":
        _skills_of(source, contents)
    else:
        _prompts_of(source, version, contents)
    meta = VersionMeta(
        version=version, parent=None, source="seed", trigger=trigger, files=_hashes(contents)
    )
    target = folder / version
    if target.is_dir() and target.samefile(source) and not (target / META).exists():
        write_atomic(target / META, pretty_json(meta), files=files)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with folder_aside(target, files=files) as aside:
        _fill(aside, contents, meta)


def copy_version(source: Path, target: Path, version: str) -> None:
    """Copy ``source/version`` into ``target``, byte for byte, after verifying it.

    Plain writes: for a ``target`` that is itself still aside. Raises VersionError.
    """
    contents = _verified(source, version)
    (target / version).mkdir(parents=True)
    _fill(target / version, contents, read_meta(source, version))


def _verified(folder: Path, version: str) -> dict[str, bytes]:
    """The version's documents by relative path, each with the hash that meta.json states."""
    meta = read_meta(folder, version)
    root = folder / version
    contents = document_files(root)
    for name in sorted(meta.files.keys() | contents.keys()):
        if name not in contents:
            raise VersionError(root / name, "is missing", _REMEDY)
        if name not in meta.files:
            raise VersionError(root / name, f"is not in {META}", _REMEDY)
        if sha256_hex(contents[name]) != meta.files[name]:
            raise VersionError(root / name, f"was changed after {META} was written", _REMEDY)
    return contents


def _skills_of(root: Path, contents: Mapping[str, bytes]) -> tuple[Skill, ...]:
    """Skills from files whose name and front matter agree."""
    skills = []
    for name, content in sorted(contents.items()):
        text = _text(root / name, content)
        task_type = _task_type(root / name, text)
        if name != _file_name(task_type):
            raise VersionError(
                root / name,
                f"its front matter says task_type: {task_type}",
                f"name the file {_file_name(task_type)}, or correct the task_type",
            )
        skills.append(Skill(task_type=task_type, text=text))
    if not skills:
        raise VersionError(root, "holds no skill", "put at least _default.md there")
    return tuple(skills)


def _prompts_of(root: Path, version: str, contents: Mapping[str, bytes]) -> Prompts:
    """``system.md`` and ``tools/<tool>.md``, nothing else."""
    tools = []
    for name, content in sorted(contents.items()):
        place = Path(name)
        if name == "system.md":
            continue
        if place.parent != Path("tools"):
            raise VersionError(
                root / name, "is no prompt", "prompts are system.md and tools/<tool>.md"
            )
        tools.append(Document(name=place.stem, text=_text(root / name, content)))
    if "system.md" not in contents:
        raise VersionError(root / "system.md", "is missing", "write the system prompt")
    if not tools:
        raise VersionError(root / "tools", "holds no tool prompt", "write tools/<tool>.md")
    system = _text(root / "system.md", contents["system.md"])
    return Prompts(version=version, system=system, tools=tuple(tools))


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 (byte {error.start})"
        raise VersionError(path, what, "save it as UTF-8") from error


def _task_type(path: Path, text: str) -> str:
    """``task_type`` of the front matter between the first two ``---`` lines."""
    head, opened, rest = text.partition("---\n")
    front, closed, _ = rest.partition("\n---\n")
    if head or not opened or not closed:
        remedy = "begin with ---, name, description and task_type lines, ---"
        raise VersionError(path, "has no front matter", remedy)
    found = [
        value.strip()
        for key, colon, value in (line.partition(":") for line in front.split("\n"))
        if colon and key.strip() == "task_type"
    ]
    if len(found) != 1 or not slug(found[0]) or found[0][0] in "\"'":
        what = f"its front matter names the class as {found}"
        raise VersionError(path, what, "write one line `task_type: <class>`, without quotes")
    return found[0]


def _file_name(task_type: str) -> str:
    return f"{slug(task_type)}.md"


def _hashes(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {name: sha256_hex(content) for name, content in sorted(contents.items())}


def _fill(folder: Path, contents: Mapping[str, bytes], meta: VersionMeta) -> None:
    for name, content in sorted(contents.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / META).write_bytes(pretty_json(meta))
