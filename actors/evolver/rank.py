"""The learning rate: which edits are tried where more came than the step may apply.

The editor is asked only where there is something to choose: more edits that would pass every
check on their own than the budget has places. If no choice can be read out of its replies,
the support of the edits decides, and the caller is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.patch import Limits, Refusal, apply_edits
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.templates import Template
from prompts.trajectory import quoted
from protocol.base import Scope
from protocol.documents import Skill
from protocol.evolver import Edit, EditReport

__all__ = ["MAX_CANDIDATES", "Choice", "RankReply", "choose", "rank_prompt"]

MAX_CANDIDATES = 40
"""Shown to the editor; the least supported beyond are not chosen."""

_MAX_CHARS = 1000  # of a target or a content, as shown


class RankReply(msgspec.Struct, frozen=True):
    """The reply that ``prompts/evolve_rank.md`` asks for. selected: numbers, best first."""

    selected: tuple[int, ...]
    reasoning: str = ""


class Choice(msgspec.Struct, frozen=True):
    """What to apply, in this order, and a report on every edit that is left out.

    asked: the conversation, None if there was nothing to choose.
    """

    edits: tuple[Edit, ...]
    left_out: tuple[EditReport, ...] = ()
    asked: Understood[RankReply] | NotUnderstood | Unreachable | None = None


async def choose(
    chat: ChatCall,
    template: Template,
    skill: Skill,
    edits: Sequence[Edit],
    limits: Limits,
    screen: Callable[[Edit], Refusal | None],
    scope: Scope,
) -> Choice:
    """Choose among merged edits, the most supported first, as many as the budget has places.

    Without a choice to make, every edit is handed on: the patch engine reports on each.
    """
    single = msgspec.structs.replace(limits, edits=1)
    alone = [apply_edits(skill.text, [edit], single, screen=screen).reports[0] for edit in edits]
    able = [report.edit for report in alone if report.status == "applied"]
    if limits.edits < 1 or len(able) <= limits.edits:
        return Choice(tuple(edits))
    shown = able[:MAX_CANDIDATES]
    most = min(limits.edits, len(shown))
    asked = await ask_for(
        chat,
        "evolve",
        rank_prompt(template, skill, shown, most),
        RankReply,
        scope,
        illustration=template.illustration,
        check=lambda reply: _objection(reply.selected, len(shown), most),
    )
    if isinstance(asked, Understood):
        chosen = tuple(shown[number - 1] for number in asked.value.selected)
        why = "the ranking preferred others"
    else:
        chosen = tuple(shown[:most])
        why = "without a ranking: others have more support"
    beyond = f"only the {MAX_CANDIDATES} most supported are compared"
    left_out = tuple(
        EditReport(
            edit=report.edit,
            status="not_chosen",
            detail=why if report.edit in shown else beyond,
        )
        if report.status == "applied"
        else report
        for report in alone
        if report.edit not in chosen
    )
    return Choice(chosen, left_out, asked)


def rank_prompt(template: Template, skill: Skill, edits: Sequence[Edit], most: int) -> str:
    """The filled template: one numbered line per edit."""
    return template.fill(
        skill=skill.text,
        choose=str(most),
        candidates="\n".join(_line(number, edit) for number, edit in enumerate(edits, 1)),
    )


def _line(number: int, edit: Edit) -> str:
    texts = f"{quoted(edit.target, _MAX_CHARS)} -> {quoted(edit.content, _MAX_CHARS)}"
    return f"{number}. {edit.op} {texts} (support: {len(edit.support)})"


def _objection(selected: Sequence[int], candidates: int, most: int) -> str | None:
    """What is wrong with the numbers, in a sentence to the model."""
    if not selected:
        return f"`selected` is empty; give from 1 to {most} numbers"
    unknown = [number for number in selected if not 1 <= number <= candidates]
    if unknown:
        return f"there is no candidate {unknown[0]}; they are numbered from 1 to {candidates}"
    if len(set(selected)) < len(selected):
        return "`selected` names a candidate twice"
    if len(selected) > most:
        return f"`selected` names {len(selected)} candidates; at most {most} may be chosen"
    return None
