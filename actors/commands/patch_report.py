"""What ``trm patch`` reads and reports: documents, edits, and what became of each. Pure but for
the reading."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal

import msgspec

from actors.evolver.document import validate
from actors.evolver.patch import Limits, Splice, apply_edits
from actors.evolver.prompt_edits import frozen_headings, prompt_problems
from protocol.documents import Document, text_hash
from protocol.evolver import Edit, EditStatus, Op, Writing

__all__ = [
    "Edits",
    "InputError",
    "Kind",
    "PatchReport",
    "PatchedEdit",
    "guess_kind",
    "patch_document",
    "read_document",
    "read_edits",
]

Kind = Literal["skill", "system", "tool"]
_WANTED = (
    'wanted: [{"op": "append|insert_after|replace|delete", "target": "...", "content": "...", '
    '"support": [...], "reason": "..."}, ...] or {"edits": [...]}'
)


class InputError(ValueError):
    """A file cannot be used; the message names it, the place in it, and what to do."""


class _GivenEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit as it stands in the file; by hand nobody writes what is empty."""

    op: Op
    target: str = ""
    content: str = ""
    support: tuple[str, ...] = ()
    reason: str = ""


class Edits(msgspec.Struct, frozen=True):
    """The edits in their order. ignored: keys beside ``edits`` that hold something else."""

    edits: tuple[Edit, ...]
    ignored: tuple[str, ...] = ()


class PatchedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one edit. position: from 0, in the order given."""

    position: int
    op: Op | Writing
    target: str
    status: EditStatus
    detail: str


class PatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of ``trm patch``.

    document_ok: the document was sound, and the patched one is. problems: what is wrong with it.
    sha256, chars: of the patched document, whether written or not. inverse: splices that restore
    the input byte for byte, in the order to apply them; start counts characters.
    written: where the document went; null: nowhere.
    """

    kind: Kind
    edits: tuple[PatchedEdit, ...]
    applied: int
    document_ok: bool
    problems: tuple[str, ...]
    sha256: str
    chars: int
    inverse: tuple[Splice, ...]
    ignored: tuple[str, ...] = ()
    written: str | None = None


def read_document(path: Path) -> str:
    """The document, line ends and byte order mark included. Raises InputError."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def guess_kind(path: Path, text: str) -> Kind:
    """What a document is, by how it begins. Raises InputError if that cannot be said."""
    lines = text.lstrip("\ufeff").splitlines()
    if lines and lines[0].rstrip() == "---":
        return "skill"
    headings = [line.strip().casefold() for line in lines if line.startswith("#")]
    if headings and headings[0].startswith("# tool:"):
        return "tool"
    if "## capability" in headings:
        return "system"
    raise InputError(
        f"{path}: has no front matter, no `# Tool:` and no section Capability; say what it is "
        "with --kind skill, system or tool"
    )


def read_edits(path: Path) -> Edits:
    """The edits of a file, or of stdin for ``-``. Raises InputError naming line or key."""
    name = "stdin" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if name == "stdin" else path.read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    return decode_edits(name, data)


def decode_edits(name: str, data: bytes) -> Edits:
    """A list of edits, or an object with the key ``edits``. Raises InputError."""
    try:
        given = json.loads(data)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{name}: {where}: not JSON: {error.msg}; {_WANTED}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}: line {line}: not UTF-8; save it as UTF-8") from error
    except RecursionError as error:
        raise InputError(f"{name}: nested too deeply; {_WANTED}") from error
    ignored: tuple[str, ...] = ()
    key = "$"
    if isinstance(given, dict):
        if "edits" not in given:
            raise InputError(f"{name}: has no key 'edits'; {_WANTED}")
        ignored = tuple(sorted(key for key, value in given.items() if key != "edits" and value))
        given, key = given["edits"], "edits"
    try:
        edits = msgspec.convert(given, tuple[_GivenEdit, ...])
    except msgspec.ValidationError as error:
        text = str(error).replace("`$", f"`{key}")
        raise InputError(f"{name}: {text}; {_WANTED}") from error
    return Edits(tuple(_checked(name, index, edit) for index, edit in enumerate(edits)), ignored)


def _checked(name: str, index: int, edit: _GivenEdit) -> Edit:
    for key in ("target", "content", "reason"):
        try:
            getattr(edit, key).encode("utf-8")
        except UnicodeEncodeError as error:
            what = "holds half of a surrogate pair, which is no character"
            raise InputError(f"{name}: edits[{index}].{key}: {what}; write it out") from error
    return Edit(
        op=edit.op,
        target=edit.target,
        content=edit.content,
        support=edit.support,
        reason=edit.reason,
    )


def patch_document(text: str, given: Edits, limits: Limits, kind: Kind) -> tuple[str, PatchReport]:
    """The patched text and the report; nothing is written."""
    frozen = () if kind == "skill" else frozen_headings(kind)
    patched = apply_edits(text, given.edits, limits, screen=lambda _: None, frozen_headings=frozen)
    problems = _problems(text, kind) or _problems(patched.text, kind)
    return patched.text, PatchReport(
        kind=kind,
        edits=tuple(
            PatchedEdit(
                position=position,
                op=report.edit.op,
                target=report.edit.target,
                status=report.status,
                detail=report.detail,
            )
            for position, report in enumerate(patched.reports)
        ),
        applied=patched.applied,
        document_ok=not problems,
        problems=problems,
        sha256=text_hash(patched.text),
        chars=len(patched.text),
        inverse=patched.inverse,
        ignored=given.ignored,
    )


def _problems(text: str, kind: Kind) -> tuple[str, ...]:
    """Why training would not use the document."""
    if kind == "skill":
        return validate(text)
    return prompt_problems(Document(name=kind, text=text))
