"""The parts of a slow candidate: asked for side by side, saved together, refused one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio
import msgspec

from actors.trainer.peers import Peers
from actors.trainer.score import McNemar
from protocol.base import Refused, Scope
from protocol.dataset import ClassWork, Question
from protocol.diagnoser import CasePacks, GetCasePacks, SystemPack, ToolPack
from protocol.documents import Document, Package, PackageTexts, text_hash
from protocol.evolver import NoProposal
from protocol.keys import slug, step_key
from protocol.ledger import Record
from protocol.rows import DocumentRow, RejectedRow
from protocol.settings import Config
from protocol.slow import (
    SYSTEM,
    Compared,
    EvolvePrompt,
    MomentumWritten,
    PromptEdited,
    WriteMomentum,
)
from protocol.workspace import OpenPackage, SavePrompts, SaveSkills

__all__ = ["Drafts", "Plan", "draft", "saved", "tried"]


class Plan(Protocol):
    """What is needed of a slow update's plan."""

    @property
    def config(self) -> Config: ...
    @property
    def epoch(self) -> int: ...
    @property
    def works(self) -> tuple[ClassWork, ...]: ...
    @property
    def fast(self) -> PackageTexts: ...
    @property
    def key(self) -> str: ...
    @property
    def scope(self) -> Scope: ...


@dataclass(frozen=True)
class Drafts:
    """What came of the asks. why: where nothing came, what the editor said.

    editor_calls, parse_failures: of all asks together.
    """

    skills: tuple[MomentumWritten, ...]
    prompts: tuple[PromptEdited, ...]
    why: str
    editor_calls: int
    parse_failures: int

    @property
    def any(self) -> bool:
        """Whether there is a candidate at all."""
        return bool(self.skills or self.prompts)

    @property
    def prompt_edits(self) -> int:
        """Edits applied to the system prompt and the tool prompts."""
        return sum(
            report.status == "applied" for edited in self.prompts for report in edited.reports
        )

    def documents(self) -> tuple[DocumentRow, ...]:
        """Every text, for later questions about where a line comes from."""
        skills = [
            DocumentRow(hash=s.skill.hash, task_type=s.skill.task_type, text=s.skill.text)
            for s in self.skills
        ]
        prompts = [
            DocumentRow(hash=text_hash(p.document.text), task_type="", text=p.document.text)
            for p in self.prompts
        ]
        return (*skills, *prompts)

    def rejected(self, key: str, paired: McNemar) -> tuple[RejectedRow, ...]:
        """The rejected ledger's rows when val did not take the candidate."""
        momentum = [
            _rejected(
                f"{key}/momentum/{slug(written.skill.task_type)}",
                written.skill.task_type,
                written.skill.hash,
                paired,
                document="momentum",
                notes=(written.momentum,),
            )
            for written in self.skills
        ]
        prompts = [
            _rejected(
                f"{key}/{edited.document.name}",
                "",
                text_hash(edited.document.text),
                paired,
                document=edited.document.name,
                edits=tuple(r.edit for r in edited.reports if r.status == "applied"),
            )
            for edited in self.prompts
        ]
        return (*momentum, *prompts)


def _rejected(
    run_key: str,
    task_type: str,
    candidate_hash: str,
    paired: McNemar,
    *,
    document: str,
    edits: tuple[object, ...] = (),
    notes: tuple[str, ...] = (),
) -> RejectedRow:
    return RejectedRow(
        run_key=run_key,
        task_type=task_type,
        candidate_hash=candidate_hash,
        edits=msgspec.json.encode(edits).decode(),
        notes=msgspec.json.encode(notes).decode(),
        verdict="dropped",
        e_value=paired.e_value,
        wins=paired.wins,
        losses=paired.losses,
        document=document,
    )


async def draft(peers: Peers, plan: Plan, compared: Sequence[Compared]) -> Drafts | Refused:
    """Ask for every part, side by side; the order of the parts is that of their names.

    Refused: the editor was away for any of them, or stored steps are missing.
    """
    packs = await _packs(peers, plan)
    if isinstance(packs, Refused):
        return packs
    replies: dict[str, MomentumWritten | PromptEdited | NoProposal] = {}

    async def momentum(task_type: str, own: tuple[Compared, ...]) -> None:
        request = WriteMomentum(
            scope=msgspec.structs.replace(plan.scope, task_type=task_type),
            run_key=f"{plan.key}/momentum/{slug(task_type)}",
            skill=plan.fast.skill_for(task_type),
            compared=own,
        )
        replies[f"momentum/{task_type}"] = await peers.evolver.ask(request)

    async def prompt(document: Document, pack: SystemPack | ToolPack) -> None:
        request = EvolvePrompt(
            scope=plan.scope,
            run_key=f"{plan.key}/{document.name}",
            document=document,
            pack=pack,
            questions=_shown(plan.works),
            edit_budget=plan.config.evolver.prompt_edit_budget,
        )
        replies[f"prompt/{document.name}"] = await peers.evolver.ask(request)

    async with anyio.create_task_group() as group:
        for work in plan.works:
            own = tuple(one for one in compared if one.question.task_type == work.task_type)
            if any(one.change != "stable" for one in own):
                group.start_soon(momentum, work.task_type, own)
        group.start_soon(prompt, Document(name=SYSTEM, text=plan.fast.prompts.system), packs.system)
        for tool in packs.tools:
            document = next(one for one in plan.fast.prompts.tools if one.name == tool.tool)
            group.start_soon(prompt, document, tool)
    return _sorted_out(plan, [replies[name] for name in sorted(replies)])


def _sorted_out(
    plan: Plan, replies: Sequence[MomentumWritten | PromptEdited | NoProposal]
) -> Drafts | Refused:
    nothing = [reply for reply in replies if isinstance(reply, NoProposal)]
    away = [reply for reply in nothing if reply.away]
    if away:
        return Refused(
            what=f"{plan.key}: the editor gave no answer",
            remedy="mend what the reason names, then resume; the slow update begins anew",
            details=tuple(dict.fromkeys(reply.detail for reply in away)),
            passing=all(reply.reason == "editor_unreachable" for reply in away),
        )
    reasons = sorted({f"{reply.reason}: {reply.detail}" for reply in nothing})
    return Drafts(
        skills=tuple(reply for reply in replies if isinstance(reply, MomentumWritten)),
        prompts=tuple(reply for reply in replies if isinstance(reply, PromptEdited)),
        why="; ".join(reasons) or "no question was compared",
        editor_calls=sum(reply.editor_calls for reply in replies),
        parse_failures=sum(reply.parse_failures for reply in replies),
    )


async def _packs(peers: Peers, plan: Plan) -> CasePacks | Refused:
    """The epoch's cases, of its design folds alone."""
    keys = [
        f"{step_key(plan.epoch, work.task_type, step)}/rollout"
        for work in plan.works
        for step in range(1, len(work.batches) + 1)
    ]
    return await peers.diagnoser.ask(
        GetCasePacks(
            scope=plan.scope,
            run_keys=tuple(keys),
            questions=_shown(plan.works),
            tools=tuple(tool.name for tool in plan.fast.prompts.tools),
        )
    )


def _shown(works: Sequence[ClassWork]) -> tuple[Question, ...]:
    return tuple(question for work in works for batch in work.batches for question in batch)


async def saved(peers: Peers, plan: Plan, drafts: Drafts) -> PackageTexts | Refused:
    """The candidate as new versions, and its texts in the ledger."""
    await peers.ledger.ask(Record(scope=plan.scope, rows=drafts.documents()))
    package = plan.fast.package
    trigger = f"epoch-{plan.epoch}-slow"
    skills, prompts = package.skills, package.prompts
    if drafts.skills:
        written = tuple(one.skill for one in drafts.skills)
        skills = (
            await peers.workspace.ask(
                SaveSkills(scope=plan.scope, parent=skills, skills=written, trigger=trigger)
            )
        ).version
    if drafts.prompts:
        edited = tuple(one.document for one in drafts.prompts)
        prompts = (
            await peers.workspace.ask(
                SavePrompts(scope=plan.scope, parent=prompts, documents=edited, trigger=trigger)
            )
        ).version
    return await tried(peers, Package(skills=skills, prompts=prompts))


async def tried(peers: Peers, package: Package) -> PackageTexts | Refused:
    """A package's texts."""
    return await peers.workspace.ask(OpenPackage(package=package))
