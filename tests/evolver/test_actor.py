"""The evolver between ledger and editor."""

from __future__ import annotations

import pytest

from actors.evolver.actor import TEMPLATES, EvolverActor
from actors.runtime.errors import ActorCrashed
from prompts.trajectory import EmptyTrajectory
from protocol.base import Request
from protocol.evolver import NoProposal, Proposal, Propose
from protocol.ledger import EditRow, Record, Recorded, RejectedRow, Select, Selected, TraceRow
from protocol.llm import Chat, ChatAnswer
from tests.evolver.make import answer, case, edit, rejected, reply, settings, skill, trace
from tests.support.fakes import FakeAddress

REQUEST = Propose(run_key="e1/order/s1", skill=skill(), defects=(case(),), lapses=(), edit_budget=2)


class Ledger:
    """Keeps rows, answers selections by equality."""

    def __init__(self, *rows: TraceRow | RejectedRow) -> None:
        self.rows = list(rows)
        self.recorded: list[EditRow] = []
        self.address = FakeAddress("ledger", self._answer)

    async def _answer(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            chosen = [
                row
                for row in self.rows
                if request.table == row.TABLE
                and all(getattr(row, where.column) == where.value for where in request.where)
            ]
            return Selected(rows=tuple(chosen))
        assert isinstance(request, Record)
        self.recorded += [row for row in request.rows if isinstance(row, EditRow)]
        return Recorded(rows=len(request.rows))


def editor(*replies: str) -> FakeAddress:
    waiting = list(replies)

    async def respond(request: Request[object]) -> ChatAnswer:
        assert isinstance(request, Chat)
        return answer(waiting.pop(0))

    return FakeAddress("llm", respond)


@pytest.mark.anyio
async def test_every_edit_is_recorded_with_its_fate() -> None:
    edits = [
        edit("append", "", "- Compare start times.", "q-7-1", "q-7-1"),
        edit("replace", "- Not there.", "- x"),
    ]
    ledger = Ledger(trace(), trace("other"))
    actor = EvolverActor(settings(), editor(reply(edits)), ledger.address)
    result = await actor.on_propose(REQUEST)
    assert isinstance(result, Proposal)
    assert [(row.run_key, row.position, row.status) for row in ledger.recorded] == [
        ("e1/order/s1", 0, "applied"),
        ("e1/order/s1", 1, "no_match"),
    ]
    assert ledger.recorded[0].support == '["q-7-1"]'
    assert ledger.recorded[0].task_type == "Order"


@pytest.mark.anyio
async def test_the_rejected_ledger_of_the_class_is_read() -> None:
    before = rejected([edit("append", "", "- Compare start times.")])
    llm = editor(reply([edit("append", "", "- compare start times")]))
    ledger = Ledger(trace(), before)
    result = await EvolverActor(settings(), llm, ledger.address).on_propose(REQUEST)
    assert isinstance(result, NoProposal)
    assert result.reason == "already_rejected"
    assert [row.status for row in ledger.recorded] == ["already_rejected"]
    (chat,) = llm.requests
    assert isinstance(chat, Chat)
    assert '"- Compare start times." (reject: 1 won' in str(chat.messages[0].content)


@pytest.mark.anyio
async def test_without_edits_nothing_is_recorded() -> None:
    ledger = Ledger(trace())
    result = await EvolverActor(settings(), editor(reply()), ledger.address).on_propose(REQUEST)
    assert isinstance(result, NoProposal)
    assert not any(isinstance(request, Record) for request in ledger.address.requests)


@pytest.mark.anyio
async def test_p0_2_a_case_without_steps_is_an_error() -> None:
    """P0-2: never an empty trajectory in a prompt."""
    llm = editor()
    with pytest.raises(EmptyTrajectory, match="q-7-1 in e1/order/s1"):
        await EvolverActor(settings(), llm, Ledger().address).on_propose(REQUEST)
    assert llm.requests == []


@pytest.mark.anyio
async def test_a_crashed_editor_proposes_nothing_and_says_so() -> None:
    """One chat's crash costs one proposal, not the run."""

    async def crash(_: Request[object]) -> object:
        raise ActorCrashed("llm", "boom")

    actor = EvolverActor(settings(), FakeAddress("llm", crash), Ledger(trace()).address)
    reply = await actor.on_propose(REQUEST)
    assert isinstance(reply, NoProposal)
    assert reply.reason == "editor_failed"
    assert "boom" in reply.detail


def test_templates_are_named_for_the_start_check() -> None:
    assert TEMPLATES == ("evolve_skill",)
