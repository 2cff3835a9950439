"""Edits that are proposed blind and stand alone, and documents with sets of them on."""

from __future__ import annotations

import msgspec
import pytest

from actors.evolver.actor import EvolverActor
from protocol.evolver import Edit, NoProposal
from protocol.factorial import ProposedEdits, ProposeEdits, RenderEdits
from protocol.ledger import Record, Select
from protocol.llm import Chat
from protocol.rows import RejectedRow
from tests.evolver.make import SKILL, case, edit, failed, rejected, reply, settings, skill, trace
from tests.evolver.test_actor import Ledger, editor
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

ONE = edit("append", "", "- Compare start times.", "q-7-1")
TWO = edit("insert_after", "- Look twice.", "- Then look away.", "q-7-1")
THREE = edit("replace", "- None yet.", "- Haste.", "q-7-1")
CLASH = edit("delete", "- None yet.", "", "q-7-1")


def asked(*earlier: Edit, n_edits: int = 4) -> ProposeEdits:
    """A request with one defect."""
    return ProposeEdits(
        run_key="e1/order/s1/proposal",
        base=skill(),
        earlier=earlier,
        defects=(case(),),
        lapses=(),
        n_edits=n_edits,
    )


async def test_edits_that_stand_alone_are_offered() -> None:
    """Each on the base; what does not apply is reported and recorded, nothing is composed.

    So is a note that no lapse stands behind.
    """
    lost = edit("replace", "- Not there.", "- x", "q-7-1")
    ledger = Ledger(trace())
    actor = EvolverActor(settings(), editor(reply([ONE, lost, TWO], ["a note"])), ledger.address)
    offered = await actor.on_propose_edits(asked())
    assert isinstance(offered, ProposedEdits)
    assert [one.content for one in offered.new] == [ONE.content, TWO.content]
    assert offered.groups == ()
    assert [(row.position, row.status) for row in ledger.recorded] == [
        (0, "applied"),
        (1, "applied"),
        (2, "no_match"),
        (3, "over_budget"),
    ]
    assert (ledger.recorded[3].op, ledger.recorded[3].content) == ("note", "a note")
    assert (offered.editor_calls, offered.parse_failures) == (1, 0)


async def test_edits_that_meet_are_one_group() -> None:
    """Also with earlier ones, by their places in canonical order."""
    actor = EvolverActor(settings(), editor(reply([TWO, CLASH])), Ledger(trace()).address)
    offered = await actor.on_propose_edits(asked(ONE, THREE))
    assert isinstance(offered, ProposedEdits)
    assert [one.op for one in offered.new] == ["insert_after", "delete"]
    assert offered.groups == ((1, 3),)


async def test_what_was_proposed_before_is_left_out() -> None:
    """Word for word or in other words: it would be the same edit twice."""
    same = edit("append", "", "- compare START times", "q-7-1")
    ledger = Ledger(trace())
    actor = EvolverActor(settings(), editor(reply([same, TWO])), ledger.address)
    offered = await actor.on_propose_edits(asked(ONE))
    assert isinstance(offered, ProposedEdits)
    assert [one.content for one in offered.new] == [TWO.content]
    assert [row.status for row in ledger.recorded] == ["applied", "not_chosen"]
    again = EvolverActor(settings(), editor(reply([same])), Ledger(trace()).address)
    nothing = await again.on_propose_edits(asked(ONE))
    assert isinstance(nothing, NoProposal)
    assert nothing.reason == "none_applied"


async def test_at_most_so_many() -> None:
    """The editor ranks where it offered more."""
    ranked = '{"reasoning": "", "selected": [3, 1]}'
    llm = editor(reply([ONE, TWO, THREE]), ranked)
    offered = await EvolverActor(settings(), llm, Ledger(trace()).address).on_propose_edits(
        asked(n_edits=2)
    )
    assert isinstance(offered, ProposedEdits)
    assert [one.content for one in offered.new] == [THREE.content, ONE.content]
    assert offered.editor_calls == 2


async def test_T7_the_proposer_is_blind() -> None:
    """No rejected ledger is read, and no earlier edit stands in what the editor is shown."""
    before = rejected([TWO])
    ledger = Ledger(trace(), before)
    llm = editor(reply([TWO]))
    offered = await EvolverActor(settings(), llm, ledger.address).on_propose_edits(asked(ONE))
    assert isinstance(offered, ProposedEdits)
    tables = {one.table for one in ledger.address.requests if isinstance(one, Select)}
    assert RejectedRow.TABLE not in tables
    (chat,) = llm.requests
    assert isinstance(chat, Chat)
    assert ONE.content not in str(chat.messages)


async def test_without_evidence_or_editor_there_are_no_edits() -> None:
    """An outage is told as one; nothing is proposed of it."""
    request = msgspec.structs.replace(asked(), defects=())
    actor = EvolverActor(settings(), editor(), Ledger().address)
    nothing = await actor.on_propose_edits(request)
    assert isinstance(nothing, NoProposal)
    assert nothing.reason == "no_cases"

    async def away(_: object) -> object:
        return failed()

    ledger = Ledger(trace())
    actor = EvolverActor(settings(), FakeAddress("llm", away), ledger.address)
    silent = await actor.on_propose_edits(asked())
    assert isinstance(silent, NoProposal)
    assert silent.reason == "editor_unreachable"
    assert not any(isinstance(one, Record) for one in ledger.address.requests)


async def test_documents_with_sets_of_edits() -> None:
    """Canonical order whatever the set's; the empty set is the base."""
    actor = EvolverActor(settings(), editor(), Ledger().address)
    request = RenderEdits(base=skill(), edits=(ONE, TWO, THREE), on=((), (0,), (2, 1), (0, 1, 2)))
    rendered = await actor.on_render_edits(request)
    texts = [one.text for one in rendered.skills]
    assert texts[0] == SKILL
    assert [ONE.content in text for text in texts] == [False, True, False, True]
    assert [TWO.content in text for text in texts] == [False, False, True, True]
    assert "- Haste." in texts[3]
    for on in ((3,), (0, 7)):
        with pytest.raises(ValueError, match="do not compose"):
            await actor.on_render_edits(msgspec.structs.replace(request, on=(on,)))
    both = RenderEdits(base=skill(), edits=(THREE, CLASH), on=((0, 1),))
    with pytest.raises(ValueError, match="exclusive"):
        await actor.on_render_edits(both)
