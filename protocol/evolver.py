"""From diagnosed failures to an edited document: optimizer.step."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Request
from protocol.dataset import Question
from protocol.diagnoser import Diagnosis
from protocol.documents import Skill

__all__ = [
    "Case",
    "Edit",
    "EditReport",
    "EditStatus",
    "NoProposal",
    "Op",
    "Proposal",
    "Propose",
    "Reason",
    "Writing",
]

Reason = Literal[
    "no_cases",
    "no_edits",
    "none_applied",
    "already_rejected",
    "editor_failed",
    "editor_unreachable",
    "editor_refused",
]
Op = Literal["append", "insert_after", "replace", "delete"]
Writing = Literal["note", "momentum"]
"""An edit that is a line of its own in the appendix, or in the momentum region."""
EditStatus = Literal[
    "applied",
    "no_match",
    "ambiguous",
    "protected",
    "marker",
    "frozen",
    "empty",
    "noop",
    "too_long",
    "leak",
    "over_budget",
    "not_chosen",
    "already_rejected",
    "like_rejected",
]


class Case(Message, frozen=True, kw_only=True, tag=True):
    """One wrong answer as evidence; its steps lie in the ledger under ``run_key``."""

    run_key: str
    question: Question
    diagnosis: Diagnosis


class Edit(Message, frozen=True, kw_only=True, tag=True):
    """One change to a document. ``target`` occurs exactly once in it, or is empty for append.

    op: a ``Writing`` only where edits are switched on and off one by one (``protocol.factorial``);
        its content is the line without a bullet, its target is empty.
    support: the question ids that it answers.
    """

    op: Op | Writing
    target: str
    content: str
    support: tuple[str, ...]
    reason: str


class EditReport(Message, frozen=True, kw_only=True, tag=True):
    """What became of an edit, and why."""

    edit: Edit
    status: EditStatus
    detail: str


class Proposal(Message, frozen=True, kw_only=True, tag=True):
    """A candidate that passed every check: ready for the gate.

    notes: appendix notes that the candidate carries, beside its applied edits.
    consolidated: the appendix was compacted on the way.
    """

    candidate: Skill
    reports: tuple[EditReport, ...]
    notes: tuple[str, ...]
    editor_calls: int
    parse_failures: int
    consolidated: bool = False


class NoProposal(Message, frozen=True, kw_only=True, tag=True):
    """Nothing to test, and why; never an empty list of edits in disguise.

    reason: ``editor_failed``: no reply could be read; ``editor_unreachable``: infrastructure kept
    at least one reply away, so that a proposal would depend on the outage; ``editor_refused``: the
    endpoint does not take our requests (key, quota, context), which no waiting mends.
    """

    reason: Reason
    detail: str
    reports: tuple[EditReport, ...]
    editor_calls: int
    parse_failures: int

    @property
    def away(self) -> bool:
        """Whether the editor was not there: then nothing may be decided."""
        return self.reason in ("editor_unreachable", "editor_refused")


class Propose(Request[Proposal | NoProposal], frozen=True, kw_only=True, tag=True):
    """Propose a candidate for a class.

    defects: evidence for edits; lapses: for appendix notes (ALGORITHM.md section 4).
    edit_budget: the learning rate, the most edits that may be applied.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    skill: Skill
    defects: tuple[Case, ...]
    lapses: tuple[Case, ...]
    edit_budget: int
