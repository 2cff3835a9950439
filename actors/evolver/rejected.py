"""What the gate did not take before, so that it is not paid for twice. Pure.

Two rules. An edit that was in a rejected candidate, case, white space and final punctuation
aside, is never tried again. An edit that says the same *in other words* is refused too, but
only where the evidence was not in favour (no more units won than lost): a candidate that won
more than it lost was rejected for want of evidence, perhaps by an unlucky draw, and its idea
deserves another try. The evidence of a candidate counts for each of its edits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from actors.evolver.likeness import Gist, alike, folded, gist
from actors.evolver.patch import Refusal
from protocol.evolver import Edit, Op, Writing
from protocol.rows import RejectedRow

__all__ = [
    "EditGist",
    "Memory",
    "edit_gist",
    "edits_of",
    "fingerprint",
    "folded",
    "in_order",
    "notes_of",
    "same_idea",
]

_DIGITS = re.compile(r"(\d+)")
_ADDING: tuple[Op | Writing, ...] = ("append", "insert_after", "note", "momentum")


class EditGist(msgspec.Struct, frozen=True):
    """What of an edit is compared."""

    op: Op | Writing
    target: Gist
    content: Gist


class Memory(msgspec.Struct, frozen=True):
    """The rejected ledger of a document, made ready to hold edits and notes against it.

    edits: by fingerprint, the run_key of the candidate that had the edit. notes: the same for
    the folded notes of candidates that carried nothing else, and so were rejected for them.
    edit_ideas, note_ideas: of the candidates with no more units won than lost, with run_key.
    """

    similarity: float
    edits: Mapping[str, str]
    notes: Mapping[str, str]
    edit_ideas: tuple[tuple[EditGist, str], ...]
    note_ideas: tuple[tuple[Gist, str], ...]

    @staticmethod
    def of(rows: Sequence[RejectedRow], similarity: float) -> Memory:
        """From the rows. Raises msgspec.DecodeError if one is damaged."""
        ordered = in_order(rows)
        alone = [row for row in ordered if not edits_of(row)]
        return Memory(
            similarity=similarity,
            edits={fingerprint(edit): row.run_key for row in ordered for edit in edits_of(row)},
            notes={folded(note): row.run_key for row in alone for note in notes_of(row)},
            edit_ideas=tuple(
                (edit_gist(edit), row.run_key)
                for row in ordered
                if row.losses >= row.wins
                for edit in edits_of(row)
            ),
            note_ideas=tuple(
                (gist(note), row.run_key)
                for row in alone
                if row.losses >= row.wins
                for note in notes_of(row)
            ),
        )

    def refusal(self, edit: Edit) -> Refusal | None:
        """Why an edit is not tried (again); None: it may be."""
        before = self.edits.get(fingerprint(edit))
        if before is not None:
            return Refusal("already_rejected", f"the gate rejected it in {before}")
        mine = edit_gist(edit)
        for idea, run_key in self.edit_ideas:
            if same_idea(mine, idea, self.similarity):
                return Refusal("like_rejected", f"it says in other words what {run_key} had")
        return None

    def note_refusal(self, note: str) -> str | None:
        """Why a note is not written (again); None: it may be."""
        before = self.notes.get(folded(note))
        if before is not None:
            return f"the gate rejected it in {before}"
        mine = gist(note)
        for idea, run_key in self.note_ideas:
            if alike(mine, idea, self.similarity):
                return f"it says in other words what {run_key} had"
        return None


def fingerprint(edit: Edit) -> str:
    """SHA-256 of what an edit does: case, white space and final punctuation aside.

    The target of an append and the content of a delete do nothing and do not count.
    """
    target = "" if edit.op == "append" else edit.target
    content = "" if edit.op == "delete" else edit.content
    key = msgspec.json.encode([edit.op, folded(target), folded(content)])
    return hashlib.sha256(key).hexdigest()


def edit_gist(edit: Edit) -> EditGist:
    """Take from an edit what is compared."""
    return EditGist(edit.op, gist(edit.target), gist(edit.content))


def same_idea(one: EditGist, other: EditGist, similarity: float) -> bool:
    """Whether two edits would have the document say the same.

    What is added counts wherever it is put. A replacement is what it takes away and what it
    gives; a deletion is what it takes away.
    """
    if one.op in _ADDING and other.op in _ADDING:
        return alike(one.content, other.content, similarity)
    if one.op != other.op or not alike(one.target, other.target, similarity):
        return False
    return one.op == "delete" or alike(one.content, other.content, similarity)


def edits_of(row: RejectedRow) -> tuple[Edit, ...]:
    """The edits of a rejected candidate. Raises msgspec.DecodeError if the row is damaged."""
    return msgspec.json.decode(row.edits, type=tuple[Edit, ...])


def notes_of(row: RejectedRow) -> tuple[str, ...]:
    """The notes of a rejected candidate. Raises msgspec.DecodeError if the row is damaged."""
    return msgspec.json.decode(row.notes, type=tuple[str, ...])


def in_order(rows: Sequence[RejectedRow]) -> tuple[RejectedRow, ...]:
    """The rows as the run made them: epoch 2 before epoch 10."""
    return tuple(sorted(rows, key=lambda row: _natural(row.run_key)))


def _natural(key: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(key) if part
    )
