"""Notes and momentum rules that are proposed as edits of their own."""

from __future__ import annotations

import msgspec
import pytest

from actors.evolver.actor import EvolverActor
from actors.evolver.document import validate
from protocol.evolver import Edit, NoProposal
from protocol.factorial import ProposedEdits, ProposeEdits, RenderEdits
from protocol.ledger import Select
from protocol.llm import Chat
from protocol.rows import RejectedRow
from protocol.slow import Compared
from tests.evolver.make import case, edit, failed, reply, settings, skill, trace
from tests.evolver.slow_make import Ledger, compared, llm, momentum_reply, traces
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

ONE = edit("append", "", "- Compare start times.", "q-7-1")
NOTE = "Look at every scene that holds it."
RULE = "When two scenes fit, open both before you choose."
MORE = "Read the subtitles of the scene before the last one."
SKILL_TEXT = skill().text


def asked(
    *earlier: Edit, n_edits: int = 4, found: tuple[Compared, ...] = (), lapse: bool = True
) -> ProposeEdits:
    """A request with a defect and a lapse; found: of the epoch before and this one."""
    return ProposeEdits(
        run_key="e2/order/s1/proposal",
        base=skill(),
        earlier=earlier,
        defects=(case(),),
        lapses=(case("q-8-1", "lapse"),) if lapse else (),
        n_edits=n_edits,
        compared=found,
    )


def ledger() -> Ledger:
    """The steps of both cases, and of a question that was answered in two epochs."""
    return Ledger(trace(), trace("q-8-1"), *traces())


async def offered_by(
    request: ProposeEdits, *replies: str, **changes: int
) -> tuple[ProposedEdits, Ledger]:
    """What comes of these replies."""
    kept = ledger()
    actor = EvolverActor(settings(**changes), llm(*replies), kept.address)
    offered = await actor.on_propose_edits(request)
    assert isinstance(offered, ProposedEdits)
    return offered, kept


async def test_a_note_is_an_edit_of_its_own() -> None:
    """Behind the edits, with the lapse that stands behind it; on, off, and in no group."""
    offered, kept = await offered_by(asked(), reply([ONE], [f"- {NOTE}"]))
    assert [(one.op, one.content, one.support) for one in offered.new] == [
        ("append", ONE.content, ("q-7-1",)),
        ("note", NOTE, ("q-8-1",)),
    ]
    assert offered.groups == ()
    assert [(row.op, row.status, row.support) for row in kept.recorded] == [
        ("append", "applied", '["q-7-1"]'),
        ("note", "applied", '["q-8-1"]'),
    ]
    actor = EvolverActor(settings(), llm(), kept.address)
    rendered = await actor.on_render_edits(
        RenderEdits(base=skill(), edits=offered.new, on=((), (0,), (1,), (0, 1)))
    )
    assert [f"- {NOTE}\n" in one.text for one in rendered.skills] == [False, False, True, True]
    assert [ONE.content in one.text for one in rendered.skills] == [False, True, False, True]
    assert all(validate(one.text) == () for one in rendered.skills)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("The lamp: a boat enters the harbour slowly.", "leak"),
        ("read every option", "noop"),
        (NOTE.upper(), "not_chosen"),
        ("compare START times", "not_chosen"),
        ("x" * 301, "too_long"),
        ("APPENDIX_END", "marker"),
        ("", "empty"),
    ],
)
async def test_a_note_is_screened_as_ever(said: str, status: str) -> None:
    """It must give nothing away, say something new, and be one short line."""
    earlier = Edit(op="note", target="", content=NOTE, support=(), reason="lapse")
    offered, kept = await offered_by(asked(earlier), reply([ONE], [said]))
    assert [one.op for one in offered.new] == ["append"]
    assert [(row.op, row.status) for row in kept.recorded] == [
        ("append", "applied"),
        ("note", status),
    ]


async def test_notes_are_bounded() -> None:
    """By the places that the edits leave, and by what the appendix may hold with all of them on."""
    notes = [NOTE, RULE, MORE]
    offered, kept = await offered_by(asked(n_edits=2), reply([ONE], notes))
    assert [one.op for one in offered.new] == ["append", "note"]
    assert [row.status for row in kept.recorded] == ["applied"] * 2 + ["over_budget"] * 2
    earlier = Edit(op="note", target="", content=NOTE, support=(), reason="lapse")
    offered, kept = await offered_by(asked(earlier), reply([ONE], notes[1:]), max_notes=3)
    assert [one.content for one in offered.new] == [ONE.content, RULE]
    assert kept.recorded[-1].detail == "the appendix is full: 3 notes"


async def test_a_rule_of_momentum_is_an_edit_of_its_own() -> None:
    """From the same questions in two epochs, at most two of them, behind edits and notes."""
    found = (compared(change="persistent"),)
    offered, kept = await offered_by(
        asked(found=found), reply([ONE], [NOTE]), momentum_reply(RULE, MORE, "Stay calm, always.")
    )
    assert [(one.op, one.content) for one in offered.new] == [
        ("append", ONE.content),
        ("note", NOTE),
        ("momentum", RULE),
        ("momentum", MORE),
    ]
    assert offered.new[2].support == ("q-7-1",)
    assert (offered.groups, offered.editor_calls) == ((), 2)
    last = kept.recorded[-1]
    assert (last.op, last.status, last.content) == ("momentum", "over_budget", "Stay calm, always.")
    actor = EvolverActor(settings(), llm(), kept.address)
    rendered = await actor.on_render_edits(
        RenderEdits(base=skill(), edits=offered.new, on=((2,), (3,), (0, 1, 2, 3)))
    )
    assert [f"- {RULE}\n" in one.text for one in rendered.skills] == [True, False, True]
    assert all("Keep comparing start times.\n- " in one.text for one in rendered.skills)
    assert all(validate(one.text) == () for one in rendered.skills)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("A boat enters the harbour slowly, so look.", "leak"),
        ("Keep comparing start times.", "noop"),
        (RULE.upper(), "noop"),
        ("Look at EVERY scene that holds it", "not_chosen"),
        ("x" * 401, "too_long"),
        ("MOMENTUM_END", "marker"),
    ],
)
async def test_a_rule_is_screened_as_ever(said: str, status: str) -> None:
    """Against what the editor read in both attempts, the document, and the edits before."""
    earlier = [
        Edit(op="momentum", target="", content=RULE, support=(), reason="momentum"),
        Edit(op="note", target="", content=NOTE, support=(), reason="lapse"),
    ]
    request = asked(*earlier, found=(compared(),), lapse=False)
    offered, kept = await offered_by(request, reply([ONE]), momentum_reply(said))
    assert [one.op for one in offered.new] == ["append"]
    assert (kept.recorded[-1].op, kept.recorded[-1].status) == ("momentum", status)


async def test_rules_are_bounded_by_their_region() -> None:
    """With every earlier one on; what became of those is not asked."""
    earlier = Edit(op="momentum", target="", content=RULE, support=(), reason="momentum")
    request = asked(earlier, found=(compared(),))
    offered, kept = await offered_by(
        request, reply([ONE]), momentum_reply(MORE), max_momentum_chars=100
    )
    assert [one.op for one in offered.new] == ["append"]
    assert kept.recorded[-1].detail == "the region may have 100 characters"


async def test_without_a_place_no_rule_is_asked_for() -> None:
    """Nor in the first epoch, which has no earlier answers."""
    full = asked(n_edits=1, found=(compared(),))
    offered, _ = await offered_by(full, reply([ONE]))
    assert (len(offered.new), offered.editor_calls) == (1, 1)
    first, _ = await offered_by(asked(), reply([ONE]))
    assert first.editor_calls == 1


async def test_rules_come_without_a_wrong_answer_too() -> None:
    """A question that is right now may be worth a rule; no rule is told as no cases."""
    request = msgspec.structs.replace(asked(found=(compared(change="improved"),)), defects=())
    request = msgspec.structs.replace(request, lapses=())
    offered, _ = await offered_by(request, momentum_reply(RULE))
    assert [(one.op, one.content) for one in offered.new] == [("momentum", RULE)]
    kept = ledger()
    nothing = await EvolverActor(settings(), llm(momentum_reply()), kept.address).on_propose_edits(
        request
    )
    assert isinstance(nothing, NoProposal)
    assert (nothing.reason, nothing.editor_calls) == ("no_cases", 1)


async def test_an_outage_of_the_second_conversation_decides_nothing() -> None:
    """What it cannot say is not proposed later; a reply that cannot be read only costs the rule."""
    replies = [reply([ONE])]

    async def away(sent: object) -> object:
        assert isinstance(sent, Chat)
        return await llm(replies.pop()).ask(sent) if replies else failed()

    request = asked(found=(compared(),))
    silent = await EvolverActor(
        settings(), FakeAddress("llm", away), ledger().address
    ).on_propose_edits(request)
    assert isinstance(silent, NoProposal)
    assert (silent.reason, silent.reports) == ("editor_unreachable", ())
    unread, _ = await offered_by(request, reply([ONE]), "no JSON", "again none")
    assert [one.op for one in unread.new] == ["append"]
    assert (unread.editor_calls, unread.parse_failures) == (3, 2)


async def test_T7_the_writer_of_rules_is_blind() -> None:
    """It reads neither the rejected ledger nor an undecided rule: the base, and two attempts."""
    earlier = Edit(op="momentum", target="", content=MORE, support=(), reason="momentum")
    editor = llm(reply([ONE]), momentum_reply(RULE))
    kept = ledger()
    actor = EvolverActor(settings(), editor, kept.address)
    await actor.on_propose_edits(asked(earlier, found=(compared(),)))
    tables = {one.table for one in kept.address.requests if isinstance(one, Select)}
    assert RejectedRow.TABLE not in tables
    _, chat = editor.requests
    assert isinstance(chat, Chat)
    shown = chat.messages[0].content
    assert SKILL_TEXT in str(shown)
    assert MORE not in str(chat.messages)
