"""From a case pack to an edited system prompt or tool prompt.

A prompt is no skill file: it has no front matter and no regions, and some of its sections are
a promise of the program (how to call, what comes back). Those are frozen, and a prompt in which
none of them can be found is not edited at all. One conversation per document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from actors.evolver.asking import no_proposal, why_silent
from actors.evolver.document import SkillDocument, parse
from actors.evolver.leak import Exposed, find_leak
from actors.evolver.merge import merge_edits
from actors.evolver.pack_prompt import (
    PromptReply,
    case_ids,
    exposed_in,
    has_failures,
    prompt_for,
)
from actors.evolver.patch import Limits, Patched, Refusal, apply_edits, growth_left
from actors.evolver.rejected import Memory
from actors.evolver.screen import edit_screen, holds_fence, narrowed
from prompts.conversation import ChatCall, Understood, ask_for
from prompts.templates import Template
from protocol.diagnoser import SystemPack
from protocol.documents import Document, text_hash
from protocol.evolver import Edit, NoProposal, Reason
from protocol.rows import RejectedRow
from protocol.settings import EvolverSettings
from protocol.slow import SYSTEM, EvolvePrompt, PromptEdited

__all__ = [
    "PromptMaterial",
    "PromptResult",
    "ask_editor",
    "edit_prompt",
    "frozen_headings",
    "objection_to",
    "patched_prompt",
    "prompt_problems",
]

_SYSTEM_FROZEN = ("Capability", "Output format", "Video tree")
_TOOL_FROZEN = ("Input", "Output")
_TITLE = re.compile(r"\A\ufeff?\s*#[ \t]+[^\r\n]*")


class PromptMaterial(msgspec.Struct, frozen=True):
    """What a prompt is edited from. rejected: the document's part of the rejected ledger."""

    request: EvolvePrompt
    rejected: tuple[RejectedRow, ...]
    settings: EvolverSettings

    @property
    def limits(self) -> Limits:
        """The budgets of one slow update."""
        return Limits(
            edits=self.request.edit_budget,
            max_chars=self.settings.max_prompt_chars,
            max_growth=self.settings.max_growth,
        )


class PromptResult(msgspec.Struct, frozen=True):
    """The reply. failed: why the conversation brought nothing; empty if it did."""

    reply: PromptEdited | NoProposal
    failed: str = ""


def frozen_headings(name: str) -> tuple[str, ...]:
    """Titles of the sections that stay as they are, of the document of that name."""
    return _SYSTEM_FROZEN if name == SYSTEM else _TOOL_FROZEN


def prompt_problems(document: Document) -> tuple[str, ...]:
    """Why a prompt cannot be edited, or must not be used; empty for a sound one."""
    titles = frozen_headings(document.name)
    parsed = parse(document.text, titles)
    problems = list(parsed.problems)
    if parsed.regions:
        problems.append("a prompt has no regions")
    if not parsed.frozen:
        problems.append(f"none of the sections {', '.join(titles)} is there to be kept")
    return tuple(problems)


async def edit_prompt(chat: ChatCall, template: Template, material: PromptMaterial) -> PromptResult:
    """Ask the editor about the pack and apply its edits.

    Raises ValueError if the pack is another document's, or a case's question is lacking.
    """
    exposed = narrowed(exposed_in(material.request.pack, material.request.questions))
    asked = await ask_editor(chat, template, material)
    if isinstance(asked, PromptResult):
        return asked
    return PromptResult(_build(material, asked, exposed))


async def ask_editor(
    chat: ChatCall, template: Template, material: PromptMaterial
) -> Understood[PromptReply] | PromptResult:
    """What the editor proposes for the pack; a result where it was not asked, or said nothing.

    Raises ValueError if the pack is another document's.
    """
    request = material.request
    document, pack = request.document, request.pack
    about = SYSTEM if isinstance(pack, SystemPack) else pack.tool
    if about != document.name:
        raise ValueError(f"the pack is about {about!r}, the document is {document.name!r}")
    if not has_failures(pack):
        return PromptResult(no_proposal("no_cases", "nothing failed that this prompt could mend"))
    problems = prompt_problems(document)
    if problems:
        detail = f"{document.name} cannot be edited: {'; '.join(problems)}"
        return PromptResult(no_proposal("none_applied", detail))
    titles = frozen_headings(document.name)
    asked = await ask_for(
        chat,
        "evolve",
        prompt_for(
            template,
            document,
            pack,
            material.rejected,
            locked=titles,
            edit_budget=request.edit_budget,
            growth_chars=growth_left(parse(document.text, titles), material.limits),
            max_trace_chars=material.settings.max_trace_chars,
        ),
        PromptReply,
        request.scope,
        illustration=template.illustration,
    )
    if not isinstance(asked, Understood):
        reason, detail = why_silent(asked)
        return PromptResult(no_proposal(reason, detail, asked), detail)
    return asked


def _build(
    material: PromptMaterial, asked: Understood[PromptReply], exposed: Sequence[Exposed]
) -> PromptEdited | NoProposal:
    """Merge, screen, patch, and hold the finished prompt against everything."""
    document = material.request.document
    edits = merge_edits(
        [proposed.edit for proposed in asked.value.edits],
        case_ids(material.request.pack),
        material.settings.similarity,
    )
    patched = patched_prompt(material, edits, exposed)
    edited = Document(name=document.name, text=patched.text)
    objection = objection_to(material, edited, patched, exposed)
    if objection is not None:
        return no_proposal(*objection, asked, patched.reports)
    return PromptEdited(
        document=edited,
        reports=patched.reports,
        editor_calls=asked.calls,
        parse_failures=asked.parse_failures,
    )


def patched_prompt(
    material: PromptMaterial, edits: Sequence[Edit], exposed: Sequence[Exposed]
) -> Patched:
    """The document with these edits, one after the other, as far as they may be applied."""
    document = material.request.document
    memory = Memory.of(material.rejected, material.settings.similarity)
    common = edit_screen(memory, exposed, document.text)
    plain = document.text.replace("\r\n", "\n")
    title = _title(plain)

    def screen(edit: Edit) -> Refusal | None:
        if holds_fence(edit.content):
            return Refusal("marker", "it holds a fence of the engine's prompts")
        aimed = edit.target.replace("\r\n", "\n").strip("\n")
        if edit.op in ("replace", "delete") and aimed and 0 <= plain.find(aimed) < len(title):
            return Refusal("frozen", "the target meets the title")
        return common(edit)

    return apply_edits(
        document.text,
        edits,
        material.limits,
        screen=screen,
        frozen_headings=frozen_headings(document.name),
    )


def _title(text: str) -> str:
    """The text up to the end of its title; empty if it begins with something else."""
    found = _TITLE.match(text)
    return found[0] if found else ""


def objection_to(
    material: PromptMaterial, edited: Document, patched: Patched, exposed: Sequence[Exposed]
) -> tuple[Reason, str] | None:
    """Why the prompt must not be tried; None if it may."""
    current = material.request.document
    if edited.text == current.text:
        if not patched.reports:
            return "no_edits", "the editor proposed nothing"
        known = ("already_rejected", "like_rejected")
        if all(report.status in known for report in patched.reports):
            return "already_rejected", "every edit was rejected before"
        return "none_applied", "no edit changed the prompt"
    if text_hash(edited.text) in {row.candidate_hash for row in material.rejected}:
        return "already_rejected", "the prompt as a whole was dropped before"
    before, after = _parts(current), _parts(edited)
    problems = prompt_problems(edited)
    if not problems and before.frozen_texts != after.frozen_texts:
        problems = ("a section that stays as it is would change",)
    if not problems and not edited.text.startswith(_title(current.text)):
        problems = ("the title would change",)
    # Two harmless edits side by side can quote what neither of them does. A short id, such as
    # "20", that the prompt has always held is no news.
    leak = find_leak(edited.text, exposed, current.text)
    if leak and find_leak(current.text, exposed, current.text) is None:
        problems = (*problems, leak)
    if problems:
        return "none_applied", f"the finished prompt cannot be used: {'; '.join(problems)}"
    return None


def _parts(document: Document) -> SkillDocument:
    return parse(document.text, frozen_headings(document.name))
