"""The evolver on the wire: reads what a proposal needs, asks the editor, keeps every edit.

The only file of the room that knows the runtime. Holds no state: what was rejected lies
in the ledger, what is current comes with the request.
"""

from __future__ import annotations

import anyio.to_thread
import structlog

from actors.evolver.compare_prompt import Pair
from actors.evolver.document import MOMENTUM
from actors.evolver.factorial import as_propose, documents_of, propose_edits
from actors.evolver.factorial_prompts import prompts_of, propose_prompt_edits
from actors.evolver.prompt import Evidence, Kind
from actors.evolver.prompt_edits import PromptMaterial, edit_prompt
from actors.evolver.propose import Material, propose
from actors.evolver.records import proposal_rows
from actors.evolver.reflect import SlowMaterial, reflect
from actors.evolver.rows import report_rows
from actors.runtime.actor import Actor, handles
from actors.runtime.address import Address, ask_or
from prompts.templates import load_templates
from prompts.trajectory import EmptyTrajectory, read_steps
from protocol.base import Scope
from protocol.evolver import Case, NoProposal, Proposal, Propose
from protocol.factorial import ProposedEdits, ProposeEdits, Rendered, RenderEdits
from protocol.factorial_prompts import (
    ProposedPromptEdits,
    ProposePromptEdits,
    RenderedPrompts,
    RenderPrompts,
)
from protocol.ledger import Record, Select, Where, rows_of
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rollout import Step
from protocol.rows import EditRow, RejectedRow, TraceRow
from protocol.settings import EvolverSettings
from protocol.slow import (
    SYSTEM,
    Compared,
    EvolvePrompt,
    MomentumWritten,
    PromptEdited,
    WriteMomentum,
)

__all__ = ["TEMPLATES", "EvolverActor"]

TEMPLATES = (
    "evolve_skill",
    "evolve_rank",
    "consolidate_appendix",
    "slow_momentum",
    "evolve_system",
    "evolve_tool",
)
_log = structlog.stdlib.get_logger(__name__)


class EvolverActor(Actor):
    """Proposes candidates; asks llm and ledger.

    Raises FileNotFoundError when it is built and an engine prompt is missing (row P0-1).
    """

    def __init__(self, settings: EvolverSettings, llm: Address, ledger: Address) -> None:
        self._settings = settings
        self._llm = llm
        self._ledger = ledger
        self._templates = load_templates(TEMPLATES)

    @handles(Propose)
    async def on_propose(self, request: Propose) -> Proposal | NoProposal:
        """Propose a candidate, and record every edit with what became of it."""
        material = Material(
            request=request,
            evidence=await self._all_evidence(request),
            rejected=await self._rejected(
                request.scope, document="skill", task_type=request.skill.task_type
            ),
            settings=self._settings,
        )
        result = await propose(self._chat, self._templates, material)
        for failure in result.failed_calls:
            _log.warning("evolver.call_failed", detail=failure)
        for refused in result.refused_notes:
            _log.info("evolver.note_refused", note=refused.note, why=refused.why)
        await self._keep(request.scope, proposal_rows(request, result.reply))
        return result.reply

    @handles(ProposeEdits)
    async def on_propose_edits(self, request: ProposeEdits) -> ProposedEdits | NoProposal:
        """Propose edits that stand alone, and record each with what became of it.

        The rejected ledger is not read: what the gate thinks of an edit is not known here.
        """
        asked = as_propose(request)
        material = Material(
            request=asked,
            evidence=await self._all_evidence(asked),
            rejected=(),
            settings=self._settings,
        )
        pairs = [await self._pair(request.scope, compared) for compared in request.compared]
        offer = await propose_edits(self._chat, self._templates, material, request.earlier, pairs)
        for failure in offer.failed_calls:
            _log.warning("evolver.call_failed", detail=failure)
        rows = report_rows(offer.reply.reports, request.run_key, task_type=asked.skill.task_type)
        await self._keep(request.scope, rows)
        return offer.reply

    @handles(RenderEdits)
    async def on_render_edits(self, request: RenderEdits) -> Rendered:
        """Documents with sets of edits on, off the event loop: there may be hundreds."""
        skills = await anyio.to_thread.run_sync(
            documents_of, request, self._settings.max_skill_chars
        )
        return Rendered(skills=skills)

    @handles(ProposePromptEdits)
    async def on_propose_prompt_edits(
        self, request: ProposePromptEdits
    ) -> ProposedPromptEdits | NoProposal:
        """Propose edits of the prompts that stand alone, and record each.

        Raises ValueError if a case's question is lacking.
        """
        offer = await propose_prompt_edits(self._chat, self._templates, request, self._settings)
        for failure in offer.failed:
            _log.warning("evolver.call_failed", detail=failure)
        for name in dict.fromkeys(one.document for one in offer.reports):
            own = [one.report for one in offer.reports if one.document == name]
            rows = report_rows(own, f"{request.run_key}/{name}", document=name)
            await self._keep(request.scope, rows)
        return offer.reply

    @handles(RenderPrompts)
    async def on_render_prompts(self, request: RenderPrompts) -> RenderedPrompts:
        """Prompts with sets of edits on, off the event loop."""
        made = await anyio.to_thread.run_sync(prompts_of, request, self._settings.max_prompt_chars)
        return RenderedPrompts(prompts=made)

    @handles(WriteMomentum)
    async def on_write_momentum(self, request: WriteMomentum) -> MomentumWritten | NoProposal:
        """Write a class's momentum region anew, and record it with the rules that were refused."""
        material = SlowMaterial(
            request=request,
            pairs=tuple(
                [await self._pair(request.scope, compared) for compared in request.compared]
            ),
            rejected=await self._rejected(
                request.scope, document=MOMENTUM, task_type=request.skill.task_type
            ),
            settings=self._settings,
        )
        result = await reflect(self._chat, self._templates["slow_momentum"], material)
        if result.failed:
            _log.warning("evolver.call_failed", detail=result.failed)
        rows = report_rows(
            result.reports, request.run_key, task_type=request.skill.task_type, op=MOMENTUM
        )
        await self._keep(request.scope, rows)
        return result.reply

    @handles(EvolvePrompt)
    async def on_evolve_prompt(self, request: EvolvePrompt) -> PromptEdited | NoProposal:
        """Edit the system prompt or a tool prompt, and record every edit.

        Raises ValueError if the pack is another document's, or a case's question is lacking.
        """
        name = request.document.name
        material = PromptMaterial(
            request=request,
            rejected=await self._rejected(request.scope, document=name),
            settings=self._settings,
        )
        template = self._templates["evolve_system" if name == SYSTEM else "evolve_tool"]
        result = await edit_prompt(self._chat, template, material)
        if result.failed:
            _log.warning("evolver.call_failed", detail=result.failed)
        rows = report_rows(result.reply.reports, request.run_key, document=name)
        await self._keep(request.scope, rows)
        return result.reply

    async def _chat(self, chat: Chat) -> ChatAnswer | ChatFailed:
        return await ask_or(self._llm, chat, lambda failure: chat.crashed(str(failure)))

    async def _all_evidence(self, request: Propose) -> tuple[Evidence, ...]:
        """The defects, then the lapses."""
        evidence = [await self._evidence(request, case, "defect") for case in request.defects]
        evidence += [await self._evidence(request, case, "lapse") for case in request.lapses]
        return tuple(evidence)

    async def _evidence(self, request: Propose, case: Case, kind: Kind) -> Evidence:
        """A case with its steps. Raises EmptyTrajectory: it was diagnosed, so it has some."""
        question_id = case.question.question_id
        return Evidence(case, kind, await self._steps(request.scope, case.run_key, question_id))

    async def _pair(self, scope: Scope, compared: Compared) -> Pair:
        """Both attempts. Raises EmptyTrajectory: the question was answered, so they have steps."""
        before, after = [
            await self._steps(scope, key, compared.question.question_id)
            for key in (compared.before_key, compared.after_key)
        ]
        return Pair(compared, before, after)

    async def _steps(self, scope: Scope, run_key: str, question_id: str) -> tuple[Step, ...]:
        """What an attempt did. Raises EmptyTrajectory naming it if nothing is stored (P0-2)."""
        selected = await self._ledger.ask(
            Select(
                scope=scope,
                table=TraceRow.TABLE,
                where=(
                    Where(column="run_key", value=run_key),
                    Where(column="question_id", value=question_id),
                ),
            )
        )
        try:
            return read_steps(rows_of(TraceRow, selected))
        except EmptyTrajectory as error:
            raise EmptyTrajectory(f"{question_id} in {run_key}: {error}") from error

    async def _rejected(self, scope: Scope, **columns: str) -> tuple[RejectedRow, ...]:
        """The rows of the rejected ledger with these values."""
        selected = await self._ledger.ask(
            Select(
                scope=scope,
                table=RejectedRow.TABLE,
                where=tuple(Where(column=name, value=value) for name, value in columns.items()),
            )
        )
        return rows_of(RejectedRow, selected)

    async def _keep(self, scope: Scope, rows: tuple[EditRow, ...]) -> None:
        if rows:
            await self._ledger.ask(Record(scope=scope, rows=rows))
