"""What the gate did not take before, so that it is not paid for twice. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

import msgspec

from protocol.evolver import Edit
from protocol.ledger import RejectedRow

__all__ = [
    "edits_of",
    "fingerprint",
    "fingerprints",
    "folded",
    "in_order",
    "notes_of",
    "rejected_notes",
]

_DIGITS = re.compile(r"(\d+)")


def fingerprint(edit: Edit) -> str:
    """SHA-256 of what an edit does: case, white space and final punctuation aside.

    The target of an append and the content of a delete do nothing and do not count.
    """
    target = "" if edit.op == "append" else edit.target
    content = "" if edit.op == "delete" else edit.content
    key = msgspec.json.encode([edit.op, folded(target), folded(content)])
    return hashlib.sha256(key).hexdigest()


def edits_of(row: RejectedRow) -> tuple[Edit, ...]:
    """The edits of a rejected candidate. Raises msgspec.DecodeError if the row is damaged."""
    return msgspec.json.decode(row.edits, type=tuple[Edit, ...])


def fingerprints(rows: Iterable[RejectedRow]) -> frozenset[str]:
    """Of every edit in the rejected ledger."""
    return frozenset(fingerprint(edit) for row in rows for edit in edits_of(row))


def notes_of(row: RejectedRow) -> tuple[str, ...]:
    """The notes of a rejected candidate. Raises msgspec.DecodeError if the row is damaged."""
    return msgspec.json.decode(row.notes, type=tuple[str, ...])


def rejected_notes(rows: Iterable[RejectedRow]) -> frozenset[str]:
    """The folded notes of candidates that carried nothing else, and so were rejected for them."""
    alone = [row for row in rows if not edits_of(row)]
    return frozenset(folded(note) for row in alone for note in notes_of(row))


def in_order(rows: Sequence[RejectedRow]) -> tuple[RejectedRow, ...]:
    """The rows as the run made them: epoch 2 before epoch 10."""
    return tuple(sorted(rows, key=lambda row: _natural(row.run_key)))


def _natural(key: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(key) if part
    )


def folded(text: str) -> str:
    """A text without what does not change its sense: case, white space, final punctuation."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;")
