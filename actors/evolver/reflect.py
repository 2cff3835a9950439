"""From a comparison of an epoch's two ends to a class's new momentum region.

Knows the editor only as a ``chat`` callable and the ledger not at all. One conversation; every
way to end without a new region has its own reason, and an outage is none of the editor's making.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.evolver.asking import no_proposal, why_silent
from actors.evolver.compare_prompt import MomentumReply, Pair, exposed_by, momentum_prompt
from actors.evolver.document import validate
from actors.evolver.leak import Exposed, find_leak
from actors.evolver.momentum import Momentum, Screen, without_momentum, write_momentum
from actors.evolver.patch import Refusal
from actors.evolver.rejected import Memory
from actors.evolver.screen import narrowed
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.templates import Template
from protocol.base import Scope
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport, NoProposal, Reason
from protocol.rows import RejectedRow
from protocol.settings import EvolverSettings
from protocol.slow import MomentumWritten, WriteMomentum

__all__ = ["AskedRules", "Reflection", "SlowMaterial", "ask_for_rules", "leak_screen", "reflect"]

AskedRules = Understood[MomentumReply] | NotUnderstood | Unreachable


class SlowMaterial(msgspec.Struct, frozen=True):
    """What a region is written from.

    pairs: every compared question with its steps. rejected: the class's regions that were
    dropped before, with the row of each.
    """

    request: WriteMomentum
    pairs: tuple[Pair, ...]
    rejected: tuple[RejectedRow, ...]
    settings: EvolverSettings


class Reflection(msgspec.Struct, frozen=True):
    """The reply. reports: the region first if one was written, then every refused rule.

    failed: why the conversation brought nothing; empty if it did.
    """

    reply: MomentumWritten | NoProposal
    reports: tuple[EditReport, ...] = ()
    failed: str = ""


async def reflect(chat: ChatCall, template: Template, material: SlowMaterial) -> Reflection:
    """Ask the editor about the comparison and write the region."""
    request = material.request
    if not material.pairs:
        return Reflection(no_proposal("no_cases", "no question was compared"))
    problems = validate(request.skill.text)
    if problems:
        detail = f"the skill is damaged: {'; '.join(problems)}"
        return Reflection(no_proposal("none_applied", detail))
    asked = await ask_for_rules(
        chat, template, request.skill, material.pairs, material.settings, request.scope
    )
    if not isinstance(asked, Understood):
        reason, detail = why_silent(asked)
        return Reflection(no_proposal(reason, detail, asked), failed=detail)
    return _build(material, asked)


async def ask_for_rules(
    chat: ChatCall,
    template: Template,
    skill: Skill,
    pairs: Sequence[Pair],
    settings: EvolverSettings,
    scope: Scope,
) -> AskedRules:
    """One conversation about a comparison. pairs: every compared question; at least one."""
    return await ask_for(
        chat,
        "evolve",
        momentum_prompt(template, skill, pairs, settings),
        MomentumReply,
        scope,
        illustration=template.illustration,
    )


def leak_screen(pairs: Sequence[Pair], known: str) -> Screen:
    """Refuses rules that give the compared questions away. known: a text that may be quoted."""
    exposed: Sequence[Exposed] = narrowed([exposed_by(pair) for pair in pairs])

    def screen(rules: str) -> Refusal | None:
        leak = find_leak(rules, exposed, known)
        return Refusal("leak", leak) if leak else None

    return screen


def _build(material: SlowMaterial, asked: Understood[MomentumReply]) -> Reflection:
    """Write the rules, and hold the finished skill against everything."""
    skill, lines = material.request.skill, asked.value.momentum
    # Not against the old region: what it gave away would be kept for ever.
    screen = leak_screen(material.pairs, without_momentum(skill.text))
    written = write_momentum(
        skill.text,
        lines,
        max_chars=material.settings.max_momentum_chars,
        similarity=material.settings.similarity,
        screen=screen,
    )
    objection = _objection(material, written, lines)
    if objection is not None:
        return Reflection(no_proposal(*objection, asked, written.refused), written.refused)
    support = tuple(pair.compared.question.question_id for pair in material.pairs)
    reply = MomentumWritten(
        skill=Skill(task_type=skill.task_type, text=written.text),
        momentum=written.momentum,
        support=support,
        editor_calls=asked.calls,
        parse_failures=asked.parse_failures,
    )
    region = EditReport(edit=_as_edit(written, support), status="applied", detail="momentum")
    return Reflection(reply, (region, *written.refused))


def _as_edit(written: Momentum, support: tuple[str, ...]) -> Edit:
    """The region in the columns of an edit."""
    return Edit(
        op="momentum", target="", content=written.momentum, support=support, reason="momentum"
    )


def _objection(
    material: SlowMaterial, written: Momentum, lines: Sequence[str]
) -> tuple[Reason, str] | None:
    """Why the region must not be tried; None if it may."""
    skill = material.request.skill
    if written.text == skill.text:
        if not lines:
            return "no_edits", "the editor had no rule, and there was none"
        if not written.refused:
            return "none_applied", "the region says the same already"
        return "none_applied", f"no rule changed the region: {_causes(written.refused)}"
    if Skill(task_type=skill.task_type, text=written.text).hash in {
        row.candidate_hash for row in material.rejected
    }:
        return "already_rejected", "the skill as a whole was dropped before"
    memory = Memory.of(material.rejected, material.settings.similarity)
    before = memory.note_refusal(written.momentum) if written.momentum else None
    if before is not None:
        return "already_rejected", f"the region: {before}"
    problems = validate(written.text)
    if problems:
        return "none_applied", f"the finished skill is damaged: {'; '.join(problems)}"
    return None


def _causes(refused: Sequence[EditReport]) -> str:
    """``2 leak, 1 noop``"""
    counts: dict[str, int] = {}
    for report in refused:
        counts[report.status] = counts.get(report.status, 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
