"""The slow update at the end of an epoch: momentum regions, system prompt, tool prompts.

Looks further than a step: at the same questions under the epoch's first and its last package.
What comes of it is one candidate package (ALGORITHM.md section 6.2); every part of it stays an
edit or a region of its own, so that it can be applied, left out and traced alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from protocol.base import Message, Request
from protocol.dataset import Question
from protocol.diagnoser import SystemPack, ToolPack
from protocol.documents import Document, Skill
from protocol.evolver import EditReport, NoProposal

__all__ = [
    "SYSTEM",
    "Change",
    "Compared",
    "EvolvePrompt",
    "MomentumWritten",
    "PromptEdited",
    "WriteMomentum",
    "change_of",
    "changed_first",
]

SYSTEM = "system"
"""The name of the system prompt among the documents; every other name is a tool's."""

Change = Literal["regressed", "persistent", "improved", "stable"]
_ORDER: tuple[Change, ...] = ("regressed", "persistent", "improved", "stable")


def change_of(*, before: bool, after: bool) -> Change:
    """What became of a question: right or wrong under the first package, and under the last."""
    if before:
        return "stable" if after else "regressed"
    return "improved" if after else "persistent"


class Compared(Message, frozen=True, kw_only=True, tag=True):
    """One question under both packages; its steps lie in the ledger under the two keys."""

    question: Question
    change: Change
    before_key: str
    after_key: str


def changed_first(compared: Iterable[Compared]) -> tuple[Compared, ...]:
    """Regressed, persistent, improved, stable; the order within a group is kept."""
    return tuple(sorted(compared, key=lambda one: _ORDER.index(one.change)))


class MomentumWritten(Message, frozen=True, kw_only=True, tag=True):
    """The skill with its momentum region replaced; all else is byte for byte the same.

    momentum: what stands in the region now. support: the question ids that were compared.
    """

    skill: Skill
    momentum: str
    support: tuple[str, ...]
    editor_calls: int
    parse_failures: int


class WriteMomentum(Request[MomentumWritten | NoProposal], frozen=True, kw_only=True, tag=True):
    """Write a class's momentum region anew from how its questions fared over the epoch."""

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    skill: Skill
    compared: tuple[Compared, ...]


class PromptEdited(Message, frozen=True, kw_only=True, tag=True):
    """The system prompt or a tool prompt with its applied edits."""

    document: Document
    reports: tuple[EditReport, ...]
    editor_calls: int
    parse_failures: int


class EvolvePrompt(Request[PromptEdited | NoProposal], frozen=True, kw_only=True, tag=True):
    """Edit the system prompt or a tool prompt from its case pack.

    questions: every question that the pack's cases come from, for the leak check alone.
    edit_budget: the most edits that may be applied.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    document: Document
    pack: SystemPack | ToolPack
    questions: tuple[Question, ...]
    edit_budget: int
