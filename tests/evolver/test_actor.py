"""The evolver between ledger and editor."""

from __future__ import annotations

import msgspec
import pytest

from actors.evolver.actor import TEMPLATES, EvolverActor
from actors.runtime.errors import ActorCrashed
from prompts.trajectory import EmptyTrajectory
from protocol.base import Request
from protocol.evolver import NoProposal, Proposal, Propose
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Chat, ChatAnswer
from protocol.rows import EditRow, RejectedRow, TraceRow
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


@pytest.mark.anyio
async def test_another_documents_rejected_edits_are_not_this_skills() -> None:
    """A tool prompt's rejected edit says nothing about a skill."""
    before = rejected([edit("append", "", "- Compare start times.")])
    other = msgspec.structs.replace(before, document="view_node")
    llm = editor(reply([edit("append", "", "- compare start times")]))
    result = await EvolverActor(settings(), llm, Ledger(trace(), other).address).on_propose(REQUEST)
    assert isinstance(result, Proposal)


@pytest.mark.anyio
async def test_what_was_not_chosen_is_recorded_after_what_was() -> None:
    edits = [edit("append", "", f"- Rule {name}.", "q-7-1") for name in "abc"]
    llm = editor(reply(edits), '{"reasoning": "c first", "selected": [3, 1]}')
    ledger = Ledger(trace())
    result = await EvolverActor(settings(), llm, ledger.address).on_propose(REQUEST)
    assert isinstance(result, Proposal)
    assert result.editor_calls == 2
    assert [(row.position, row.content, row.status) for row in ledger.recorded] == [
        (0, "- Rule c.", "applied"),
        (1, "- Rule a.", "applied"),
        (2, "- Rule b.", "not_chosen"),
    ]


@pytest.mark.anyio
async def test_a_compacted_appendix_is_recorded_with_what_it_was() -> None:
    request = msgspec.structs.replace(REQUEST, defects=(), lapses=(case(cause="lapse"),))
    llm = editor(reply([], ["Look at it all."]), '{"notes": ["Read and look."]}')
    ledger = Ledger(trace())
    actor = EvolverActor(settings(consolidate_above=1), llm, ledger.address)
    result = await actor.on_propose(request)
    assert isinstance(result, Proposal)
    assert result.consolidated
    assert result.notes == ("Look at it all.",)
    note, compaction = ledger.recorded
    assert (note.op, note.content, note.detail) == (
        "note",
        "Look at it all.",
        "appendix, then compacted",
    )
    assert (compaction.op, compaction.position, compaction.document) == ("consolidate", 1, "skill")
    assert (compaction.target, compaction.content) == ("Read every option.", "Read and look.")
    assert compaction.detail == "2 notes became 1"


def test_templates_are_named_for_the_start_check() -> None:
    assert {"evolve_skill", "evolve_rank", "consolidate_appendix"} <= set(TEMPLATES)
