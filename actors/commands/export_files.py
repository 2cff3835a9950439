"""The files of a published package: documents as other agents read them. Pure."""

from __future__ import annotations

import re

import msgspec
import yaml

from actors.commands.export_parts import Published
from actors.evolver.document import MARKERS
from protocol.keys import slug
from protocol.slow import SYSTEM

__all__ = ["Files", "FrontError", "files_of", "without_markers"]

_MARKER = "|".join(re.escape(marker) for pair in MARKERS.values() for marker in pair)
_MARKER_LINE = re.compile(rf"^[ \t]*(?:{_MARKER})[ \t]*(?:\r?\n|\Z)|(?:{_MARKER})", re.MULTILINE)
_FIELD = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*?)[ \t]*$")


class FrontError(ValueError):
    """A skill's front matter cannot be made readable; the message names file and line."""


class Files(msgspec.Struct, frozen=True):
    """Texts by path inside the package. changed: what is not as the run has it, a line each."""

    texts: dict[str, str]
    seeds: dict[str, str]
    changed: tuple[str, ...]


def files_of(made: Published, *, plain: bool) -> Files:
    """The documents by path, and what they were in the seed. Raises FrontError."""
    texts: dict[str, str] = {}
    seeds: dict[str, str] = {}
    changed: list[str] = []
    for held in made.documents:
        history = held.history
        text = without_markers(history.text) if plain else history.text
        if history.kind == "skills":
            path = f"skills/{slug(history.name)}.md"
            text, done = _readable(path, text, history.name)
            changed += done
        elif history.name == SYSTEM:
            path = "prompts/system.md"
        else:
            path = f"prompts/tools/{history.name}.md"
        texts[path], seeds[path] = text, history.seed
    return Files(texts, seeds, tuple(changed))


def without_markers(text: str) -> str:
    """The text without the comments that mark regions; what stands between them stays."""
    return _MARKER_LINE.sub("", text)


def _readable(path: str, text: str, task_type: str) -> tuple[str, list[str]]:
    """The skill with a front matter that has a name and a description and is YAML to others."""
    head, opening, rest = text.partition("---\n")
    front, closing, body = rest.partition("\n---\n")
    if head or not opening or not closing:
        raise FrontError(f"{path}: has no front matter; begin with ---, name, description, ---")
    lines = front.split("\n")
    done = []
    keys = {match[1] for line in lines if (match := _FIELD.match(line))}
    for key, value in (
        ("name", slug(task_type)),
        ("description", f"How to answer questions of the type {task_type} about a video."),
    ):
        if key not in keys:
            lines.insert(0 if key == "name" else 1, f"{key}: {value}")
            done.append(f"{path} was given a {key}")
    if not _is_mapping(lines):
        lines = [_quoted(line) for line in lines]
        done.append(f"the front matter of {path} was quoted, for it was no YAML")
        if not _is_mapping(lines):
            raise FrontError(f"{path}: its front matter is no YAML; write `key: value` lines")
    return "---\n" + "\n".join(lines) + "\n---\n" + body, done


def _is_mapping(lines: list[str]) -> bool:
    try:
        read = yaml.safe_load("\n".join(lines))
    except yaml.YAMLError:
        return False
    return isinstance(read, dict) and all(isinstance(value, str) for value in read.values())


def _quoted(line: str) -> str:
    """``key: value`` with the value as a JSON string, which is YAML too."""
    found = _FIELD.match(line)
    if found is None or found[2][:1] in ("'", '"'):
        return line
    return f"{found[1]}: {msgspec.json.encode(found[2]).decode()}"
