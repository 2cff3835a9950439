"""What a command line means by a document: a class, a file's name, a prompt, a path."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec

from actors.commands.seed_options import OptionError
from actors.commands.workspace_view import Kind, find_workspace, texts_of
from actors.places import launcher, shown_path
from actors.workspace.manifest import MANIFEST, read_manifest
from protocol.keys import slug

__all__ = ["Found", "documents_there_are", "find_document", "named"]

_PLACE = re.compile(r"(skills|prompts)/(v[1-9][0-9]*)/(?:tools/)?([^/]+)\.md$")


class Found(msgspec.Struct, frozen=True):
    """A document of a version. name: a class, ``system`` or a tool."""

    workspace: Path
    kind: Kind
    version: str
    name: str


def find_document(given: str, workspace: Path | None, version: str | None, command: str) -> Found:
    """The document that ``given`` names.

    version: None: of the manifest's best package. command: the one that asks, for its lines.
    Raises OptionError naming the documents there are; WorkspaceError if manifest or version cannot
    be read.
    """
    path = Path(given)
    if path.suffix == ".md" or "/" in given:
        return _by_path(path, workspace, version)
    root = find_workspace(workspace, command)
    best = read_manifest(root).best_hard
    known: list[str] = []
    places: tuple[tuple[Kind, str], ...] = (("skills", best.skills), ("prompts", best.prompts))
    for kind, standing in places:
        there = texts_of(root, kind, standing)
        name = named(given, there)
        if name is not None:
            return Found(root, kind, version or standing, _held(root, kind, version, name))
        known += there
    raise OptionError(f"{given}: there is no such document in {root}; it has {', '.join(known)}")


def documents_there_are(folder: Path | None, workspace: Path | None, command: str) -> str:
    """What to say where a folder was given for a document, or none: those of the best package.

    folder: None: none was given. command: as there. Raises as ``find_document``.
    """
    root = find_workspace(folder or workspace, command)
    best = read_manifest(root).best_hard
    skills = list(texts_of(root, "skills", best.skills))
    prompts = list(texts_of(root, "prompts", best.prompts))
    said = "name a document" if folder is None else f"{folder}: is a workspace; name its document"
    example = f"{launcher('blame')} {shlex.quote(skills[-1])} --workspace {shown_path(root)}"
    return (
        f"{said}, such as\n  {example}\n"
        f"skills ({best.skills}): {', '.join(skills)}\nprompts ({best.prompts}): "
        f"{', '.join(prompts)}"
    )


def named(given: str, there: dict[str, str] | list[str]) -> str | None:
    """The name among those there are: as it is, or as the name of its file."""
    if given in there:
        return given
    return next((name for name in there if slug(name) == slug(given)), None)


def _held(root: Path, kind: Kind, version: str | None, name: str) -> str:
    """The name, if the version that was asked for holds it. Raises OptionError."""
    if version is not None and name not in (there := texts_of(root, kind, version)):
        raise OptionError(f"{kind}/{version} has no {name}; it has {', '.join(there)}")
    return name


def _by_path(path: Path, workspace: Path | None, version: str | None) -> Found:
    """A file ``skills/vN/NAME.md`` or ``prompts/vN/...`` of a workspace."""
    if not path.is_file():
        raise OptionError(
            f"{path}: there is no such file; give a class, `system`, a tool or a file"
        )
    whole = path.resolve()
    place = _PLACE.search(whole.as_posix())
    root = Path(whole.as_posix()[: place.start()]) if place else None
    if place is None or root is None or not (root / MANIFEST).is_file():
        raise OptionError(
            f"{path}: lies in no workspace's skills/vN or prompts/vN, so that nothing is recorded "
            "of it; bin/trm diff compares two files"
        )
    if workspace is not None and workspace.resolve() != root:
        raise OptionError(f"{path}: lies in {root}; leave out --workspace, or name that one")
    if version not in (None, place[2]):
        raise OptionError(f"{path}: is of {place[2]}; leave out --version, or name a class")
    kind: Kind = "skills" if place[1] == "skills" else "prompts"
    name = named(place[3], texts_of(root, kind, place[2]))
    if name is None:
        raise OptionError(f"{path}: is no document of {kind}/{place[2]}")
    return Found(root, kind, place[2], name)
