"""Edits of the system prompt and the tool prompts under the factorial gate, like any other edits.

They belong to no class: each flips its coin in every pair of every class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from protocol.base import Message, Request
from protocol.dataset import Question
from protocol.diagnoser import CasePacks
from protocol.documents import Document, Prompts, text_hash
from protocol.evolver import Edit, EditReport, NoProposal
from protocol.slow import SYSTEM

__all__ = [
    "PromptEdit",
    "PromptReport",
    "ProposePromptEdits",
    "ProposedPromptEdits",
    "RenderPrompts",
    "RenderedPrompts",
    "documents_in",
    "prompts_text",
    "with_documents",
]


def documents_in(prompts: Prompts) -> tuple[Document, ...]:
    """The system prompt, then the tool prompts: the order in which documents are told of."""
    return (Document(name=SYSTEM, text=prompts.system), *prompts.tools)


def prompts_text(prompts: Prompts) -> str:
    """All documents in one text, each under its name; its hash stands for all of them."""
    return "\n\n".join(f"[{one.name}]\n{one.text}" for one in documents_in(prompts))


def with_documents(prompts: Prompts, changed: Iterable[Document]) -> Prompts:
    """The prompts with these documents in their place.

    Where a text differs the version is the old one with the hash of all texts behind it
    (``v1+0123456789ab``): the same texts have the same version, whoever makes them.

    Raises KeyError for a document that is none of these prompts'.
    """
    texts = {one.name: one.text for one in documents_in(prompts)}
    for document in changed:
        if document.name not in texts:
            raise KeyError(document.name)
        texts[document.name] = document.text
    made = Prompts(
        version=prompts.version,
        system=texts[SYSTEM],
        tools=tuple(Document(name=one.name, text=texts[one.name]) for one in prompts.tools),
    )
    if made == prompts:
        return prompts
    version = f"{prompts.version}+{text_hash(prompts_text(made))[:12]}"
    return msgspec.structs.replace(made, version=version)


class PromptEdit(Message, frozen=True, kw_only=True, tag=True):
    """An edit of the document of that name."""

    document: str
    edit: Edit


class PromptReport(Message, frozen=True, kw_only=True, tag=True):
    """What became of an edit of that document."""

    document: str
    report: EditReport


class ProposedPromptEdits(Message, frozen=True, kw_only=True, tag=True):
    """New edits that can each be on or off, beside the earlier ones; as of ``ProposedEdits``."""

    new: tuple[PromptEdit, ...]
    groups: tuple[tuple[int, ...], ...]
    reports: tuple[PromptReport, ...]
    editor_calls: int
    parse_failures: int


class ProposePromptEdits(
    Request[ProposedPromptEdits | NoProposal], frozen=True, kw_only=True, tag=True
):
    """Propose edits of the prompts from the case packs of the editor's draws.

    earlier: all that there were in this run, in canonical order, whatever became of them.
    questions: every question that the packs' cases come from, for the leak check alone.
    n_edits: the most, over all documents.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    prompts: Prompts
    earlier: tuple[PromptEdit, ...]
    packs: CasePacks
    questions: tuple[Question, ...]
    n_edits: int


class RenderedPrompts(Message, frozen=True, kw_only=True, tag=True):
    """One version of the prompts per set of edits, in the order asked."""

    prompts: tuple[Prompts, ...]


class RenderPrompts(Request[RenderedPrompts], frozen=True, kw_only=True, tag=True):
    """The base prompts with some of their edits on; edits and on as of ``RenderEdits``."""

    IDEMPOTENT: ClassVar[bool] = True

    base: Prompts
    edits: tuple[PromptEdit, ...]
    on: tuple[tuple[int, ...], ...]
