"""JSON files to typed structs, with errors that name the file and the key."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from actors.workspace.errors import BadFile

__all__ = ["pretty_json", "read_bytes", "read_json", "sha256_hex"]

T = TypeVar("T", bound=msgspec.Struct)


def read_bytes(path: Path, remedy: str) -> bytes:
    """The file's bytes. Raises BadFile with the remedy if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})", remedy) from error


def read_json(path: Path, kind: type[T], remedy: str) -> T:
    """The file as ``kind``. Raises BadFile naming the key that does not fit."""
    data = read_bytes(path, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFile(path, str(error), remedy) from error


def pretty_json(value: msgspec.Struct) -> bytes:
    """Indented UTF-8 in the order of the fields, with a final newline; no clock, no chance."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def sha256_hex(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()
