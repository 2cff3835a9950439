"""From diagnosed failures to a candidate: analyst calls side by side.

Knows the editor only as a ``chat`` callable and the ledger not at all. Every way to end
without a candidate has its own reason; a reply that could not be read is never taken for
an empty list of edits. What becomes of the edits is said in ``candidate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import anyio

from actors.evolver.candidate import Desk, Harvest, Material, Result, build, nothing
from actors.evolver.document import parse, validate
from actors.evolver.patch import growth_left
from actors.evolver.prompt import EditorReply, Evidence, editor_prompt
from prompts.conversation import ChatCall, NotUnderstood, Understood, Unreachable, ask_for
from prompts.templates import Template
from protocol.evolver import Edit, Reason

__all__ = ["Material", "Result", "deal", "gather", "propose"]

Asked = Understood[EditorReply] | NotUnderstood | Unreachable


def deal(evidence: Sequence[Evidence], size: int) -> tuple[tuple[Evidence, ...], ...]:
    """Minibatches of at most ``size`` trajectories, defects and lapses spread evenly.

    Defects come first in each: what an edit has to mend is read before what a note recalls.
    """
    ordered = sorted(evidence, key=lambda item: item.kind != "defect")
    count = -(-len(ordered) // size)
    return tuple(tuple(ordered[index::count]) for index in range(count))


async def propose(chat: ChatCall, templates: Mapping[str, Template], material: Material) -> Result:
    """Ask the editor about the evidence and build the candidate.

    templates: ``evolve_skill``, ``evolve_rank`` and ``consolidate_appendix``.
    """
    gathered = await gather(chat, templates["evolve_skill"], material)
    if isinstance(gathered, Result):
        return gathered
    return await build(Desk.of(chat, templates, material), gathered)


async def gather(chat: ChatCall, template: Template, material: Material) -> Harvest | Result:
    """What the editor says to the evidence, or why there can be no proposal."""
    request = material.request
    if not material.evidence:
        return nothing("no_cases", "no wrong answer to learn from")
    problems = validate(request.skill.text)
    if problems:
        return nothing("none_applied", f"the skill is damaged: {'; '.join(problems)}")
    batches = deal(material.evidence, material.settings.minibatch)
    asked = await _ask_all(chat, template, material, batches)
    harvest = _collect(batches, asked)
    away = [outcome.failure for outcome in asked if isinstance(outcome, Unreachable)]
    outages = [failure for failure in away if failure.kind != "crash"]  # a crash is this chat's own
    if outages:
        refused = any(failure.lasting for failure in outages)
        reason: Reason = "editor_refused" if refused else "editor_unreachable"
        return nothing(reason, "; ".join(harvest.failed), harvest)
    if len(harvest.failed) == len(batches):
        return nothing("editor_failed", "; ".join(harvest.failed), harvest)
    return harvest


async def _ask_all(
    chat: ChatCall,
    template: Template,
    material: Material,
    batches: Sequence[Sequence[Evidence]],
) -> list[Asked]:
    """One conversation per minibatch, side by side; outcomes in the order of the minibatches."""
    skill, limits = material.request.skill, material.limits
    growth = growth_left(parse(skill.text), limits)
    outcomes: dict[int, Asked] = {}

    async def one(index: int, batch: Sequence[Evidence]) -> None:
        prompt = editor_prompt(
            template,
            skill,
            batch,
            material.rejected,
            edit_budget=limits.edits if _has_defect(batch) else 0,
            growth_chars=growth,
            max_trace_chars=material.settings.max_trace_chars,
        )
        outcomes[index] = await ask_for(
            chat,
            "evolve",
            prompt,
            EditorReply,
            material.request.scope,
            illustration=template.illustration,
        )

    async with anyio.create_task_group() as group:
        for index, batch in enumerate(batches):
            group.start_soon(one, index, batch)
    return [outcomes[index] for index in range(len(batches))]


def _has_defect(batch: Iterable[Evidence]) -> bool:
    return any(item.kind == "defect" for item in batch)


def _lapses(batch: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(item.case.question.question_id for item in batch if item.kind == "lapse")


def _collect(batches: Sequence[Sequence[Evidence]], asked: Sequence[Asked]) -> Harvest:
    edits: list[Edit] = []
    unbacked: list[Edit] = []
    notes: list[str] = []
    idle: list[str] = []
    lapses: list[tuple[str, ...]] = []
    failed: list[str] = []
    for batch, outcome in zip(batches, asked, strict=True):
        match outcome:
            case Understood(value=reply):
                (edits if _has_defect(batch) else unbacked).extend(
                    proposed.edit for proposed in reply.edits
                )
                # a note brings an existing rule back to mind; without a lapse none was overlooked
                seen = _lapses(batch)
                (notes if seen else idle).extend(reply.notes)
                lapses += [seen] * len(reply.notes) if seen else []
            case NotUnderstood(problem=problem):
                failed.append(f"unreadable: {problem}")
            case Unreachable(failure=failure):
                failed.append(failure.why)
    return Harvest(
        edits=tuple(edits),
        unbacked=tuple(unbacked),
        notes=tuple(notes),
        idle_notes=tuple(idle),
        made=sum(outcome.calls for outcome in asked),
        parse_failures=sum(outcome.parse_failures for outcome in asked),
        failed=tuple(failed),
        lapses=tuple(lapses),
    )
