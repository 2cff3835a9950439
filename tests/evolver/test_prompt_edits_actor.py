"""Edits of prompts between ledger and editor."""

from __future__ import annotations

import pytest

from actors.evolver.actor import EvolverActor
from actors.runtime.errors import ActorCrashed
from protocol.base import Request
from protocol.documents import Document
from protocol.evolver import NoProposal
from protocol.slow import SYSTEM, PromptEdited
from tests.evolver.make import edit, settings
from tests.evolver.slow_make import (
    CHECK,
    SYSTEM_DOCUMENT,
    TOOL_DOCUMENT,
    Ledger,
    edits_reply,
    llm,
    prompt_request,
    rejected_row,
)
from tests.support.fakes import FakeAddress


@pytest.mark.anyio
@pytest.mark.parametrize("document", [SYSTEM_DOCUMENT, TOOL_DOCUMENT], ids=["system", "tool"])
async def test_every_edit_is_recorded_under_its_document(document: Document) -> None:
    ledger = Ledger()
    edits = (CHECK, edit("replace", "Not there.", "x"))
    actor = EvolverActor(settings(), llm(edits_reply(*edits)), ledger.address)
    reply = await actor.on_evolve_prompt(prompt_request(document))
    assert isinstance(reply, PromptEdited)
    assert [
        (row.run_key, row.position, row.document, row.task_type, row.op, row.status, row.support)
        for row in ledger.recorded
    ] == [
        (f"e1/slow/{document.name}", 0, document.name, "", "append", "applied", '["q-7-1"]'),
        (f"e1/slow/{document.name}", 1, document.name, "", "replace", "no_match", "[]"),
    ]


@pytest.mark.anyio
async def test_only_the_documents_own_rejections_are_read() -> None:
    for name, expected in ((SYSTEM, NoProposal), ("view_node", PromptEdited)):
        ledger = Ledger(rejected_row(name, edits=(CHECK,)))
        actor = EvolverActor(settings(), llm(edits_reply(CHECK)), ledger.address)
        assert isinstance(await actor.on_evolve_prompt(prompt_request()), expected)


@pytest.mark.anyio
async def test_refused_edits_are_recorded_without_a_prompt() -> None:
    ledger = Ledger()
    actor = EvolverActor(
        settings(), llm(edits_reply(edit("append", "", "- See q-7-1."))), ledger.address
    )
    assert isinstance(await actor.on_evolve_prompt(prompt_request()), NoProposal)
    assert [row.status for row in ledger.recorded] == ["leak"]


@pytest.mark.anyio
async def test_a_crashed_editor_edits_no_prompt() -> None:
    async def crash(_: Request[object]) -> object:
        raise ActorCrashed("llm", "boom")

    actor = EvolverActor(settings(), FakeAddress("llm", crash), Ledger().address)
    reply = await actor.on_evolve_prompt(prompt_request())
    assert isinstance(reply, NoProposal)
    assert reply.reason == "editor_failed"
