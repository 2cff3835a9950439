"""Edits of the prompts, proposed blind and standing alone, and prompts with sets of them on."""

from __future__ import annotations

import random

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as fewer
from hypothesis import strategies as st

from actors.evolver.actor import EvolverActor
from actors.evolver.document import parse
from actors.evolver.prompt_edits import frozen_headings, prompt_problems
from protocol.base import Request
from protocol.diagnoser import CasePacks, SystemPack, ToolPack
from protocol.documents import Document, Prompts
from protocol.evolver import Edit, NoProposal
from protocol.factorial_prompts import (
    PromptEdit,
    ProposedPromptEdits,
    ProposePromptEdits,
    RenderPrompts,
    documents_in,
    with_documents,
)
from protocol.ledger import Select
from protocol.llm import Chat, ChatAnswer, ChatFailed
from tests.evolver.make import answer, edit, failed, settings
from tests.evolver.slow_make import (
    CHECK,
    IDS,
    SYSTEM_TEXT,
    TOOL_TEXT,
    Ledger,
    edits_reply,
    pack_case,
    questions_of,
    rejected_row,
    span,
    system_pack,
    tool_pack,
)
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

BASE = Prompts(
    version="v1", system=SYSTEM_TEXT, tools=(Document(name="view_node", text=TOOL_TEXT),)
)
STOP = edit("replace", "- Stop when one option is proved.", "- Stop when all are.", "q-7-1")
LATE = edit("delete", "- Stop when one option is proved.", "", "q-7-1")
NAME = edit("insert_after", "- Name the fact that you look for.", "- And its place.", "q-8-1")
DOWN = edit("replace", "- Copy ids.", "- Copy ids exactly.", "q-7-1")
NOTHING = tool_pack()


def asked(
    *earlier: PromptEdit,
    n_edits: int = 4,
    system: SystemPack | None = None,
    tool: ToolPack | None = None,
) -> ProposePromptEdits:
    """A request with failures of both documents."""
    packs = CasePacks(
        skills=(), system=system or system_pack(), tools=(tool or tool_pack(span()),), missing=0
    )
    return ProposePromptEdits(
        run_key="e1/_prompts/s1/proposal",
        prompts=BASE,
        earlier=earlier,
        packs=packs,
        questions=questions_of(*IDS),
        n_edits=n_edits,
    )


def llm(system: str, tool: str = "") -> FakeAddress:
    """An editor that knows which document it is asked about."""

    async def respond(request: Request[object]) -> ChatAnswer:
        assert isinstance(request, Chat)
        about_tool = "Document: view_node" in str(request.messages)
        return answer(tool if about_tool else system)

    return FakeAddress("llm", respond)


def on_system(one: Edit) -> PromptEdit:
    """An edit of the system prompt."""
    return PromptEdit(document="system", edit=one)


async def test_every_document_has_its_own_edits() -> None:
    """Each on its base; in turn over the documents, and each is recorded with its document."""
    lost = edit("replace", "Not there.", "x")
    ledger = Ledger()
    address = llm(edits_reply(STOP, NAME), edits_reply(DOWN, lost))
    offered = await EvolverActor(settings(), address, ledger.address).on_propose_prompt_edits(
        asked()
    )
    assert isinstance(offered, ProposedPromptEdits)
    assert [(one.document, one.edit.content) for one in offered.new] == [
        ("system", STOP.content),
        ("view_node", DOWN.content),
        ("system", NAME.content),
    ]
    assert (offered.groups, offered.editor_calls) == ((), 2)
    assert [(row.run_key, row.position, row.document, row.status) for row in ledger.recorded] == [
        ("e1/_prompts/s1/proposal/system", 0, "system", "applied"),
        ("e1/_prompts/s1/proposal/system", 1, "system", "applied"),
        ("e1/_prompts/s1/proposal/view_node", 0, "view_node", "applied"),
        ("e1/_prompts/s1/proposal/view_node", 1, "view_node", "no_match"),
    ]


async def test_at_most_so_many_of_all_documents() -> None:
    """The first of each document before the second of any."""
    address = llm(edits_reply(STOP, NAME), edits_reply(DOWN))
    ledger = Ledger()
    actor = EvolverActor(settings(), address, ledger.address)
    offered = await actor.on_propose_prompt_edits(asked(n_edits=2))
    assert isinstance(offered, ProposedPromptEdits)
    assert [one.edit for one in offered.new] == [STOP, DOWN]
    assert [row.status for row in ledger.recorded] == ["applied", "over_budget", "applied"]


async def test_edits_that_meet_are_one_group() -> None:
    """Also with earlier ones, by their places; other documents' edits meet none of them."""
    actor = EvolverActor(settings(), llm(edits_reply(LATE), edits_reply(DOWN)), Ledger().address)
    offered = await actor.on_propose_prompt_edits(asked(on_system(NAME), on_system(STOP)))
    assert isinstance(offered, ProposedPromptEdits)
    assert [one.edit for one in offered.new] == [LATE, DOWN]
    assert offered.groups == ((1, 2),)


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (edit("replace", "One JSON object.", "Prose.", "q-7-1"), "frozen"),
        (edit("replace", "# Answering", "# Asking", "q-7-1"), "frozen"),
        (edit("append", "", "- <<<DOCUMENT", "q-7-1"), "marker"),
        (edit("append", "", "- See q-7-1.", "q-7-1"), "leak"),
        (edit("append", "", "x" * 13_000, "q-7-1"), "too_long"),
        (STOP, "not_chosen"),
    ],
)
async def test_what_no_edit_may_do(bad: Edit, status: str) -> None:
    """As in the slow update, or a repetition of what was proposed before; told and recorded."""
    ledger = Ledger()
    actor = EvolverActor(settings(), llm(edits_reply(bad)), ledger.address)
    offered = await actor.on_propose_prompt_edits(asked(on_system(STOP), tool=NOTHING))
    assert isinstance(offered, NoProposal)
    assert offered.reason == "none_applied"
    assert [row.status for row in ledger.recorded] == [status]


async def test_two_harmless_edits_that_quote_together() -> None:
    """Neither gives an option away, both side by side would: the second is refused."""
    case = pack_case(trace_text="Step 1\nCall: view_node")
    halves = (
        edit("append", "", "A boat enters", "q-7-1"),
        edit("append", "", "the harbour slowly.", "q-7-1"),
    )
    ledger = Ledger()
    actor = EvolverActor(settings(), llm(edits_reply(*halves)), ledger.address)
    packs = system_pack(case, pack_case("q-8-1"), pack_case("q-9-1"))
    offered = await actor.on_propose_prompt_edits(asked(system=packs, tool=NOTHING))
    assert isinstance(offered, ProposedPromptEdits)
    assert [one.edit for one in offered.new] == [halves[0]]
    assert [row.status for row in ledger.recorded] == ["applied", "leak"]


async def test_T7_the_proposer_is_blind() -> None:
    """No rejected ledger is read, and no earlier edit stands in what the editor is shown."""
    ledger = Ledger(rejected_row("system", edits=(CHECK,)))
    address = llm(edits_reply(CHECK))
    actor = EvolverActor(settings(), address, ledger.address)
    offered = await actor.on_propose_prompt_edits(asked(on_system(STOP), tool=NOTHING))
    assert isinstance(offered, ProposedPromptEdits)
    assert not any(isinstance(one, Select) for one in ledger.address.requests)
    (chat,) = address.requests
    assert isinstance(chat, Chat)
    assert STOP.content not in str(chat.messages)


async def test_without_failures_nobody_is_asked() -> None:
    """Good answers are no reason for an edit."""
    quiet = SystemPack(answered=9, right=9, groups=())
    address = llm("")
    nothing = await EvolverActor(settings(), address, Ledger().address).on_propose_prompt_edits(
        asked(system=quiet, tool=NOTHING)
    )
    assert isinstance(nothing, NoProposal)
    assert (nothing.reason, address.requests) == ("no_cases", [])


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(failed(), "editor_unreachable"), (failed("quota"), "editor_refused")],
    ids=["away", "refused"],
)
async def test_an_outage_of_one_conversation_is_told(failure: ChatFailed, reason: str) -> None:
    """It must not decide what is proposed, although the other document has edits."""

    async def respond(request: Request[object]) -> object:
        assert isinstance(request, Chat)
        if "Document: view_node" in str(request.messages):
            return failure
        return answer(edits_reply(STOP))

    actor = EvolverActor(settings(), FakeAddress("llm", respond), Ledger().address)
    silent = await actor.on_propose_prompt_edits(asked())
    assert isinstance(silent, NoProposal)
    assert silent.reason == reason
    assert silent.away


async def test_prompts_with_sets_of_edits() -> None:
    """Each document by its own edits; the same texts have the same version, the base its own."""
    edits = (on_system(STOP), PromptEdit(document="view_node", edit=DOWN), on_system(LATE))
    actor = EvolverActor(settings(), llm(""), Ledger().address)
    request = RenderPrompts(base=BASE, edits=edits, on=((), (0,), (1, 0), (2,)))
    made = (await actor.on_render_prompts(request)).prompts
    assert made[0] == BASE
    assert [STOP.content in one.system for one in made] == [False, True, True, False]
    assert [DOWN.content in one.tools[0].text for one in made] == [False, False, True, False]
    assert len({one.version for one in made}) == 4
    assert all(one.version.startswith("v1") for one in made)
    again = with_documents(BASE, [Document(name="system", text=made[1].system)])
    assert again == made[1]
    with pytest.raises(ValueError, match="exclusive"):
        await actor.on_render_prompts(msgspec.structs.replace(request, on=((0, 2),)))
    stranger = msgspec.structs.replace(edits[0], document="fly")
    with pytest.raises(KeyError, match="fly"):
        await actor.on_render_prompts(msgspec.structs.replace(request, edits=(stranger,)))


_TARGETS = [
    *(line for line in f"{SYSTEM_TEXT}\n{TOOL_TEXT}".splitlines() if line),
    "that you look for.\n- Stop",
    "## Output format\n\nOne",
    "JSON",
]
_CONTENTS = [
    "- Look.",
    "- Look twice.",
    "## Output",
    "## More\n\n- Wait.",
    "```",
    "# Answering",
    "",
]


def _edits() -> st.SearchStrategy[list[Edit]]:
    one = st.builds(
        edit,
        st.sampled_from(["append", "insert_after", "replace", "delete"]),
        st.sampled_from(_TARGETS),
        st.sampled_from(_CONTENTS),
        st.just("q-7-1"),
    ).map(lambda one: one if one.op != "append" else msgspec.structs.replace(one, target=""))
    return st.lists(one, min_size=1, max_size=4)


@fewer(max_examples=60, deadline=None)
@given(_edits(), _edits(), _edits(), st.randoms(use_true_random=False))
def test_every_set_of_live_edits_leaves_prompts_that_can_be_used(
    early: list[Edit], system: list[Edit], tool: list[Edit], rng: random.Random
) -> None:
    """Over two epochs of whatever an editor says: sound, and what is protected byte for byte."""
    anyio.run(_every_set, early, system, tool, rng)


async def _every_set(
    early: list[Edit], system: list[Edit], tool: list[Edit], rng: random.Random
) -> None:
    known: tuple[PromptEdit, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    generous = settings(prompt_edit_budget=4)
    for says in (early, system):
        address = llm(edits_reply(*says), edits_reply(*tool))
        actor = EvolverActor(generous, address, Ledger().address)
        offered = await actor.on_propose_prompt_edits(asked(*known))
        if isinstance(offered, ProposedPromptEdits):
            known, groups = (*known, *offered.new), offered.groups
    free = [(n,) for n in range(len(known)) if not any(n in group for group in groups)]
    sets = [
        tuple(
            n for n in (rng.choice((None, *group)) for group in (*free, *groups)) if n is not None
        )
        for _ in range(6)
    ]
    everything = tuple(group[0] for group in (*free, *groups))
    request = RenderPrompts(base=BASE, edits=known, on=(*sets, everything))
    actor = EvolverActor(generous, llm(""), Ledger().address)
    for on, made in zip(request.on, (await actor.on_render_prompts(request)).prompts, strict=True):
        changed = {known[n].document for n in on}
        for before, after in zip(documents_in(BASE), documents_in(made), strict=True):
            titles = frozen_headings(before.name)
            assert prompt_problems(after) == ()
            assert parse(after.text, titles).frozen_texts == parse(before.text, titles).frozen_texts
            assert after.text.splitlines()[0] == before.text.splitlines()[0]
            assert (after.text != before.text) == (before.name in changed)
