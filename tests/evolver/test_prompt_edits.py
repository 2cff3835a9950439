"""The system prompt and tool prompts: every way that an edit can end, and what none can touch."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as fewer
from hypothesis import strategies as st

from actors.evolver.document import MARKERS, parse
from actors.evolver.pack_prompt import exposed_in
from actors.evolver.prompt_edits import (
    PromptMaterial,
    PromptResult,
    edit_prompt,
    frozen_headings,
    prompt_problems,
)
from prompts.templates import load_templates
from protocol.diagnoser import SystemPack, ToolPack
from protocol.documents import Document, text_hash
from protocol.evolver import Edit, EditStatus, NoProposal
from protocol.llm import ChatAnswer, ChatFailed
from protocol.rows import RejectedRow
from protocol.slow import SYSTEM, EvolvePrompt, PromptEdited
from tests.evolver.make import Editor, answer, edit, failed, question, settings
from tests.evolver.slow_make import (
    CHECK,
    IDS,
    SYSTEM_DOCUMENT,
    SYSTEM_TEXT,
    TOOL_DOCUMENT,
    TOOL_TEXT,
    edits_reply,
    pack_case,
    prompt_request,
    questions_of,
    rejected_row,
    span,
    system_pack,
    tool_pack,
)

TEMPLATES = load_templates(["evolve_system", "evolve_tool"])
SEEDS = Path(__file__).parents[2] / "seeds" / "demo" / "prompts" / "v1"


async def edited(
    *answers: ChatAnswer | ChatFailed,
    asked: EvolvePrompt | None = None,
    rejected: tuple[RejectedRow, ...] = (),
    **changes: int | float,
) -> tuple[PromptResult, Editor]:
    editor = Editor.scripted(*answers)
    material = PromptMaterial(
        request=asked or prompt_request(), rejected=rejected, settings=settings(**changes)
    )
    name = "evolve_system" if material.request.document.name == SYSTEM else "evolve_tool"
    return await edit_prompt(editor, TEMPLATES[name], material), editor


async def with_edits(
    *edits: Edit,
    asked: EvolvePrompt | None = None,
    rejected: tuple[RejectedRow, ...] = (),
    **changes: int | float,
) -> PromptEdited | NoProposal:
    result, _ = await edited(answer(edits_reply(*edits)), asked=asked, rejected=rejected, **changes)
    return result.reply


def statuses(reply: PromptEdited | NoProposal) -> list[EditStatus]:
    return [report.status for report in reply.reports]


# -- every way that it can end ----------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("document", [SYSTEM_DOCUMENT, TOOL_DOCUMENT], ids=["system", "tool"])
async def test_edits_are_applied(document: Document) -> None:
    result, editor = await edited(answer(edits_reply(CHECK)), asked=prompt_request(document))
    reply = result.reply
    assert isinstance(reply, PromptEdited)
    assert reply.document == Document(name=document.name, text=document.text + CHECK.content + "\n")
    assert (reply.editor_calls, reply.parse_failures) == (1, 0)
    assert reply.reports[0].edit.support == ("q-7-1",)
    assert editor.chats[0].role == "evolve"


@pytest.mark.anyio
async def test_one_re_ask_and_then_none() -> None:
    result, _ = await edited(answer("I would not."), answer(edits_reply(CHECK)))
    assert isinstance(result.reply, PromptEdited)
    assert (result.reply.editor_calls, result.reply.parse_failures) == (2, 1)

    result, _ = await edited(answer("{"), answer(edits_reply(CHECK), "length"))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.parse_failures) == ("editor_failed", 2)


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(TEMPLATES))
async def test_the_repeated_example_reaches_no_prompt(name: str) -> None:
    (example,) = [line for line in TEMPLATES[name].text.splitlines() if line.startswith('{"')]
    asked = prompt_request(SYSTEM_DOCUMENT if name == "evolve_system" else TOOL_DOCUMENT)
    result, _ = await edited(answer(example), answer(example), asked=asked)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "editor_failed"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        pytest.param(failed("rate_limit"), "editor_unreachable", id="outage"),
        pytest.param(
            msgspec.structs.replace(failed("quota"), fatal=True), "editor_refused", id="refused"
        ),
        pytest.param(failed("crash"), "editor_failed", id="crash"),
    ],
)
async def test_an_outage_is_none_of_the_editors_making(failure: ChatFailed, reason: str) -> None:
    result, _ = await edited(failure)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == reason
    assert result.failed.startswith(failure.kind)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("document", "pack"),
    [
        pytest.param(SYSTEM_DOCUMENT, SystemPack(answered=20, right=12, groups=()), id="no habit"),
        pytest.param(TOOL_DOCUMENT, tool_pack(good=(span(),)), id="good calls alone"),
    ],
)
async def test_without_failures_nobody_is_asked(
    document: Document, pack: SystemPack | ToolPack
) -> None:
    result, editor = await edited(asked=prompt_request(document, pack))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "no_cases"
    assert editor.chats == []


@pytest.mark.anyio
async def test_a_pack_of_another_document_is_an_error() -> None:
    for document, pack in (
        (SYSTEM_DOCUMENT, tool_pack(span())),
        (TOOL_DOCUMENT, system_pack()),
        (Document(name="search_similar", text=TOOL_TEXT), tool_pack(span())),
    ):
        with pytest.raises(ValueError, match="the pack is about"):
            await edited(asked=prompt_request(document, pack))


@pytest.mark.anyio
async def test_a_case_whose_question_is_lacking_is_an_error() -> None:
    """Nothing could be held against it: the leak check would say yes to everything."""
    with pytest.raises(ValueError, match=r"has cases of q-8-1, q-9-1, which lack"):
        await edited(asked=prompt_request(questions=questions_of("q-7-1")))


@pytest.mark.anyio
async def test_the_editor_may_have_nothing_to_say() -> None:
    reply = await with_edits()
    assert isinstance(reply, NoProposal)
    assert reply.reason == "no_edits"


@pytest.mark.anyio
async def test_budgets_hold() -> None:
    rules = [edit("append", "", f"- Rule number {n} about page {n * 3}.") for n in range(4)]
    reply = await with_edits(*rules)
    assert isinstance(reply, PromptEdited)
    assert statuses(reply) == ["applied", "applied", "over_budget", "over_budget"]
    long = edit("append", "", "- " + "word " * 30_000)
    assert statuses(await with_edits(long)) == ["too_long"]
    full = await with_edits(CHECK, max_prompt_chars=len(SYSTEM_TEXT))
    assert statuses(full) == ["too_long"]
    assert statuses(await with_edits(CHECK, max_growth=0.01)) == ["too_long"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(edit("replace", "You answer questions.", "You guess."), id="inside"),
        pytest.param(edit("insert_after", "## Capability", "You also guess."), id="behind a head"),
        pytest.param(edit("delete", "### Fields\n\n- `thought`"), id="a section below"),
        pytest.param(edit("replace", "## How to work", "More.\n\n## How to work"), id="from below"),
        pytest.param(edit("append", "", "## Output format\n\nProse."), id="a second section"),
        pytest.param(edit("replace", "# Answering", "# Guessing"), id="the title"),
        pytest.param(edit("delete", "nswer"), id="a part of it"),
        pytest.param(edit("delete", "# Answering\n\n## Capability"), id="over two"),
    ],
)
async def test_what_the_program_depends_on_stays(change: Edit) -> None:
    """Frozen headings (ALGORITHM.md section 4), and the title."""
    reply = await with_edits(change)
    assert isinstance(reply, NoProposal)
    assert statuses(reply)[0] in ("frozen", "ambiguous", "protected")
    crlf = Document(name=SYSTEM, text=SYSTEM_TEXT.replace("\n", "\r\n"))
    assert isinstance(await with_edits(change, asked=prompt_request(crlf)), NoProposal)


@pytest.mark.anyio
async def test_the_title_stays_also_where_one_edit_prepares_the_next() -> None:
    text = TOOL_TEXT.replace("\n\n## Input", "\n\nShows a node.\n\n## Input")
    asked = prompt_request(Document(name="view_node", text=text))
    reply = await with_edits(
        edit("replace", "Shows a node.", "Shows one node."),
        edit("delete", "view_node\n\nShows one node."),
        asked=asked,
    )
    assert isinstance(reply, NoProposal)
    assert "the title would change" in reply.detail


@pytest.mark.anyio
@pytest.mark.parametrize("title", ["Input", "Output"])
async def test_what_a_tool_takes_and_gives_stays(title: str) -> None:
    there = {"Input": "- `node_id`: an id.", "Output": "The whole card."}[title]
    reply = await with_edits(
        edit("replace", there, "Anything."), asked=prompt_request(TOOL_DOCUMENT)
    )
    assert statuses(reply) == ["frozen"]
    reply = await with_edits(
        edit("replace", "Copy ids.", "Make them up."), asked=prompt_request(TOOL_DOCUMENT)
    )
    assert statuses(reply) == ["applied"]


@pytest.mark.anyio
@pytest.mark.parametrize("bad", [m for pair in MARKERS.values() for m in pair] + ["momentum_end"])
async def test_p1_6_a_prompt_gets_no_regions(bad: str) -> None:
    """P1-6: a prompt is no skill file."""
    reply = await with_edits(edit("append", "", f"- Look.\n{bad}"))
    assert statuses(reply) == ["marker"]
    with_region = SYSTEM_TEXT + "\n<!-- APPENDIX_START -->\n- x\n<!-- APPENDIX_END -->\n"
    result, editor = await edited(asked=prompt_request(Document(name=SYSTEM, text=with_region)))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "none_applied"
    assert "a prompt has no regions" in result.reply.detail
    assert editor.chats == []


@pytest.mark.anyio
async def test_a_prompt_whose_promises_cannot_be_found_is_left_alone() -> None:
    text = "# Answering\n\nDo your best.\n"
    result, editor = await edited(asked=prompt_request(Document(name=SYSTEM, text=text)))
    assert isinstance(result.reply, NoProposal)
    assert "Capability, Output format, Video tree" in result.reply.detail
    assert editor.chats == []


@pytest.mark.anyio
@pytest.mark.parametrize("bad", ["DOCUMENT>>>", "<<<DOCUMENT", "\u200b", "\x1b[2J"])
async def test_no_edit_holds_a_fence_or_what_cannot_be_seen(bad: str) -> None:
    assert statuses(await with_edits(edit("append", "", f"- Look {bad} twice."))) == ["marker"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("- See q-8-1.", id="id"),
        pytest.param("- A boat enters the harbour slowly.", id="option"),
        pytest.param("- The keeper lights the lamp.", id="another option"),
    ],
)
async def test_an_edit_that_gives_a_question_away_is_refused(line: str) -> None:
    reply = await with_edits(edit("append", "", line), CHECK)
    assert isinstance(reply, PromptEdited)
    assert statuses(reply) == ["applied", "leak"]  # the supported one first
    assert line not in reply.document.text


@pytest.mark.anyio
async def test_what_the_pack_quotes_is_exposed() -> None:
    """Also a sentence with a short gold answer, which the pack cannot hide."""
    short = msgspec.structs.replace(question(), options=("Rain", "Snow", "Hail", "Fog"))
    said = "The keeper says that snow is falling on the pier."
    quote = edit("append", "", "- The keeper says that snow is falling on the pier.")
    for document, pack in (
        (SYSTEM_DOCUMENT, system_pack(pack_case(trace_text=f"Step 1\nObservation: {said}"))),
        (TOOL_DOCUMENT, tool_pack(span(observation=said))),
    ):
        reply = await with_edits(quote, asked=prompt_request(document, pack, (short,)))
        assert statuses(reply) == ["leak"]
    assert len(exposed_in(system_pack(), questions_of(*IDS, "q-1-1"))) == 4


@pytest.mark.anyio
async def test_two_edits_do_not_quote_together() -> None:
    """Neither quotes; side by side they do: the finished prompt is held against it too."""
    reply = await with_edits(
        edit("append", "", "- A boat enters"), edit("append", "", "- the harbour slowly")
    )
    assert isinstance(reply, NoProposal)
    assert reply.reason == "none_applied"
    assert "an option of" in reply.detail


@pytest.mark.anyio
async def test_a_short_id_that_the_prompt_has_always_held_stops_nothing() -> None:
    """Ids such as "1" are words of every prompt; an edit that brings one is refused still."""
    asked = prompt_request(pack=system_pack(pack_case("1")), questions=questions_of("1"))
    assert isinstance(await with_edits(CHECK, asked=asked), PromptEdited)
    assert statuses(await with_edits(edit("append", "", "- See 1."), asked=asked)) == ["leak"]


@pytest.mark.anyio
async def test_rejected_edits_are_not_tried_again() -> None:
    before = rejected_row(SYSTEM, edits=(CHECK,))
    for again in (
        CHECK.content,
        "- hold the answer against  every option",
        "- Always hold your answer against every option.",
    ):
        reply = await with_edits(edit("append", "", again), rejected=(before,))
        assert isinstance(reply, NoProposal)
        assert reply.reason == "already_rejected"
    other = edit("append", "", "- Read whole cards.")
    reply = await with_edits(CHECK, other, rejected=(before,))
    assert isinstance(reply, PromptEdited)
    assert CHECK.content not in reply.document.text
    whole = rejected_row(SYSTEM, hash_=text_hash(reply.document.text))
    reply = await with_edits(other, rejected=(whole,))
    assert isinstance(reply, NoProposal)
    assert reply.reason == "already_rejected"


@pytest.mark.anyio
async def test_support_is_what_was_shown() -> None:
    reply = await with_edits(edit("append", "", "- Look.", "q-7-1", "invented", "q-7-1"))
    assert reply.reports[0].edit.support == ("q-7-1",)


# -- the seed's own prompts -------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [SEEDS / "system.md", *sorted((SEEDS / "tools").glob("*.md"))], ids=lambda p: p.stem
)
def test_the_seed_prompts_can_be_edited_and_keep_their_promises(path: Path) -> None:
    document = Document(name=path.stem, text=path.read_text(encoding="utf-8"))
    assert prompt_problems(document) == ()
    parsed = parse(document.text, frozen_headings(document.name))
    assert len(parsed.frozen) == len(frozen_headings(document.name))
    assert not parsed.front
    assert parsed.body_text == document.text


ops = st.sampled_from(["append", "insert_after", "replace", "delete"])
pieces = st.sampled_from(
    ["# Answering", "## Capability", "## How to work", "- Stop", "## Video tree\n", "\n", "```\n",
     "### Fields", "---\n", "<!-- MOMENTUM_START -->", "- New rule.", "DOCUMENT>>>", "\r\n"]
)  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_p1_6_no_promise_changes_whatever_is_proposed(newline: str) -> None:
    """P1-6: title and frozen sections byte for byte, no region, for any edits."""
    text = SYSTEM_TEXT.replace("\n", newline)
    frozen = parse(text, frozen_headings(SYSTEM)).frozen_texts
    asked = prompt_request(Document(name=SYSTEM, text=text))
    cuts = st.tuples(st.integers(0, len(SYSTEM_TEXT)), st.integers(1, 40)).map(
        lambda cut: SYSTEM_TEXT[cut[0] : cut[0] + cut[1]]
    )
    contents = st.lists(pieces, max_size=3).map("".join)
    edits = st.lists(
        st.builds(edit, ops, st.one_of(cuts, pieces), contents), min_size=1, max_size=4
    )
    replies: list[list[Edit]] = []

    @fewer(max_examples=150, deadline=None)
    @given(edits)
    def collect(proposed: list[Edit]) -> None:
        replies.append(proposed)

    collect()
    changed = 0
    for proposed in replies:
        reply = await with_edits(*proposed, asked=asked)
        if isinstance(reply, NoProposal):
            continue
        changed += 1
        after = reply.document.text
        assert after.startswith(f"# Answering{newline}")
        assert parse(after, frozen_headings(SYSTEM)).frozen_texts == frozen
        assert prompt_problems(reply.document) == ()
        assert "<!--" not in after
        assert after.count("\n") == (after.count("\r\n") or after.count("\n"))
    assert changed
