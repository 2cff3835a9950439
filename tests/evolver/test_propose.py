"""From evidence to a candidate, with every way to end without one."""

from __future__ import annotations

import json

import anyio
import pytest

from actors.evolver.prompt import Evidence
from actors.evolver.propose import Material, Result, deal, propose
from actors.evolver.regions import notes_of
from prompts.conversation import ChatCall
from prompts.templates import load_templates
from prompts.trajectory import read_steps
from protocol.evolver import Case, Edit, NoProposal, Proposal, Propose
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rows import RejectedRow
from tests.evolver.make import (
    SKILL,
    Editor,
    answer,
    case,
    edit,
    failed,
    rejected,
    reply,
    settings,
    skill,
    trace,
)

TEMPLATES = load_templates(["evolve_skill", "evolve_rank", "consolidate_appendix"])
GOOD = edit("append", "", "- Compare start times.", "q-7-1")


async def run(
    chat: ChatCall,
    defects: tuple[Case, ...] = (case(),),
    lapses: tuple[Case, ...] = (),
    before: tuple[RejectedRow, ...] = (),
    text: str = SKILL,
    **changes: int | float,
) -> Result:
    evidence = [Evidence(item, "defect", read_steps([trace()])) for item in defects]
    evidence += [Evidence(item, "lapse", read_steps([trace()])) for item in lapses]
    request = Propose(
        run_key="e1/order/s1", skill=skill(text), defects=defects, lapses=lapses, edit_budget=2
    )
    material = Material(request, tuple(evidence), before, settings(**changes))
    return await propose(chat, TEMPLATES, material)


@pytest.mark.anyio
async def test_a_proposal() -> None:
    editor = Editor.scripted(answer(reply([GOOD], ["Read all of it."])))
    result = await run(editor, lapses=(case("q-8-1", "lapse"),))
    assert isinstance(result.reply, Proposal)
    assert "- Compare start times.\n" in result.reply.candidate.text
    assert "- Read all of it.\n<!-- APPENDIX_END -->" in result.reply.candidate.text
    assert [report.status for report in result.reply.reports] == ["applied"]
    assert result.reply.notes == ("Read all of it.",)
    assert (result.reply.editor_calls, result.reply.parse_failures) == (1, 0)
    (chat,) = editor.chats
    assert (chat.role, chat.cache_salt) == ("evolve", None)
    assert chat.json_schema is not None
    assert json.loads(chat.json_schema)["required"] == ["edits"]


@pytest.mark.anyio
async def test_no_cases() -> None:
    result = await run(Editor.scripted(), defects=())
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.editor_calls) == ("no_cases", 0)


@pytest.mark.anyio
async def test_an_empty_list_is_an_answer() -> None:
    result = await run(Editor.scripted(answer(reply())))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.parse_failures) == ("no_edits", 0)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("I would add a rule.", id="prose"),
        pytest.param("[" + reply()[:-1], id="array, cut off"),
        pytest.param(reply([GOOD])[:-3], id="cut off"),
        pytest.param('{"edits": []} is the form. ' + reply([GOOD])[:-3], id="decoy, cut off"),
        pytest.param('{"edits": 3}', id="wrong kind"),
    ],
)
async def test_peer_defect_4_an_unreadable_reply_is_asked_again_and_never_empty(bad: str) -> None:
    """Prose, arrays and cut-off JSON were taken for "no edits", without a re-ask."""
    editor = Editor.scripted(answer(bad), answer(reply([GOOD])))
    result = await run(editor)
    assert isinstance(result.reply, Proposal)
    assert (result.reply.editor_calls, result.reply.parse_failures) == (2, 1)
    _, said, again = editor.chats[1].messages
    assert (said.role, said.content) == ("assistant", bad)
    assert str(again.content).startswith("Your reply could not be read:")
    result = await run(Editor.scripted(answer(bad), answer(bad)))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "editor_failed"
    assert (result.reply.editor_calls, result.reply.parse_failures) == (2, 2)


@pytest.mark.anyio
async def test_a_reply_at_the_length_limit_is_a_failure_even_if_it_decodes() -> None:
    cut = answer(reply([GOOD]), finish="length")
    result = await run(Editor.scripted(cut, cut))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.parse_failures) == ("editor_failed", 2)
    assert "length limit" in result.reply.detail


@pytest.mark.anyio
async def test_a_failed_chat_is_counted_and_not_asked_again() -> None:
    result = await run(Editor.scripted(failed()))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.editor_calls) == ("editor_unreachable", 1)
    assert "timeout" in result.reply.detail


def _second_batch_gets(other: ChatAnswer | ChatFailed) -> Editor:
    return Editor(
        lambda chat: (
            answer(reply([GOOD])) if "Case q-7-0" in str(chat.messages[0].content) else other
        )
    )


@pytest.mark.anyio
async def test_one_minibatch_may_be_unreadable() -> None:
    defects = tuple(case(f"q-7-{n}") for n in range(4))
    result = await run(_second_batch_gets(answer("no JSON")), defects=defects, minibatch=2)
    assert isinstance(result.reply, Proposal)
    assert len(result.failed_calls) == 1
    assert result.reply.editor_calls == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (failed(), "editor_unreachable"),
        (ChatFailed(kind="auth", fatal=True, detail="401"), "editor_refused"),
        (ChatFailed(kind="retry_after_too_long", fatal=True, detail="503"), "editor_unreachable"),
    ],
    ids=["outage", "key", "retry-after"],
)
async def test_P1_4_a_proposal_never_depends_on_an_outage(failure: ChatFailed, reason: str) -> None:
    """P1-4: one analyst that infrastructure kept away, and nothing is proposed."""
    defects = tuple(case(f"q-7-{n}") for n in range(4))
    result = await run(_second_batch_gets(failure), defects=defects, minibatch=2)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == reason


@pytest.mark.anyio
async def test_minibatches_run_side_by_side_and_merge_in_order() -> None:
    defects = tuple(case(f"q-7-{n}") for n in range(4))
    both = anyio.Event()
    waiting = 0

    async def chat(request: Chat) -> ChatAnswer | ChatFailed:
        nonlocal waiting
        prompt = str(request.messages[0].content)
        if "\nCandidates:\n" in prompt:
            return answer('{"reasoning": "", "selected": [1, 2]}')
        waiting += 1
        if waiting == 2:
            both.set()
        await both.wait()
        first = "Case q-7-0" in prompt
        mine = edit("append", "", f"- {'first' if first else 'second'}", "q-7-1")
        return answer(reply([mine, edit("append", "", "- shared", f"q-7-{int(first)}")]))

    result = await run(chat, defects=defects, minibatch=2)
    assert [(report.edit.content, report.status) for report in result.reply.reports] == [
        ("- shared", "applied"),
        ("- first", "applied"),
        ("- second", "not_chosen"),
    ]


def test_dealing_spreads_defects_and_lapses() -> None:
    evidence = [
        Evidence(case(f"q{n}"), "defect" if n < 3 else "lapse", read_steps([trace()]))
        for n in range(10)
    ]
    batches = deal([*evidence[5:], *evidence[:5]], 8)
    assert all(batch[0].kind == "defect" for batch in batches)
    assert [len(batch) for batch in batches] == [5, 5]
    assert [sum(item.kind == "defect" for item in batch) for batch in batches] == [2, 1]
    assert {item.case.question.question_id for batch in batches for item in batch} == {
        f"q{n}" for n in range(10)
    }


@pytest.mark.anyio
async def test_lapses_alone_bring_notes_and_no_edits() -> None:
    editor = Editor.scripted(answer(reply([GOOD], ["Read all of it."])))
    result = await run(editor, defects=(), lapses=(case("q-8-1", "lapse"),))
    assert "\nEdit budget: 0\n" in str(editor.chats[0].messages[0].content)
    assert isinstance(result.reply, Proposal)
    assert "Compare start times" not in result.reply.candidate.text
    assert [report.status for report in result.reply.reports] == ["over_budget"]
    assert result.reply.notes == ("Read all of it.",)


@pytest.mark.anyio
async def test_an_edit_rejected_before_is_not_tried_again() -> None:
    before = (rejected([edit("append", "", "-  compare START times")]),)
    result = await run(Editor.scripted(answer(reply([GOOD]))), before=before)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "already_rejected"
    assert [report.status for report in result.reply.reports] == ["already_rejected"]


@pytest.mark.anyio
async def test_a_candidate_rejected_as_a_whole_is_not_tried_again() -> None:
    script = answer(reply([], ["Read all of it."]))
    lapses = (case("q-8-1", "lapse"),)
    first = await run(Editor.scripted(script), defects=(), lapses=lapses)
    assert isinstance(first.reply, Proposal)
    before = (rejected([], hash_=first.reply.candidate.hash),)
    again = await run(Editor.scripted(script), defects=(), lapses=lapses, before=before)
    assert isinstance(again.reply, NoProposal)
    assert again.reply.reason == "already_rejected"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (edit("append", "", "- As in q-7-1."), "leak"),
        (edit("append", "", "- The keeper lights the lamp."), "leak"),
        (edit("replace", "- Not there.", "- x"), "no_match"),
        (edit("append", "", "<!-- MOMENTUM_START -->"), "marker"),
    ],
)
async def test_none_applied(bad: Edit, status: str) -> None:
    result = await run(Editor.scripted(answer(reply([bad]))))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "none_applied"
    assert [report.status for report in result.reply.reports] == [status]


@pytest.mark.anyio
async def test_a_candidate_differs_from_the_current_text() -> None:
    """Two edits that undo each other are no candidate."""
    pair = [edit("append", "", "- x"), edit("delete", "- x")]
    result = await run(Editor.scripted(answer(reply(pair))))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "none_applied"


@pytest.mark.anyio
async def test_leaking_notes_are_refused_by_name() -> None:
    notes = ["Two gulls fight over bread.", "Read all of it."]
    editor = Editor.scripted(answer(reply([], notes)))
    result = await run(editor, lapses=(case("q-8-1", "lapse"),))
    assert isinstance(result.reply, Proposal)
    assert result.reply.notes == ("Read all of it.",)
    assert [note.why for note in result.refused_notes] == ["it quotes an option of q-7-1"]


@pytest.mark.anyio
async def test_a_note_without_a_lapse_is_refused() -> None:
    """A real editor wrote a complaint about the agent into the appendix, of defects alone."""
    result = await run(Editor.scripted(answer(reply([], ["The skill cannot see the video."]))))
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "none_applied"
    assert [note.why for note in result.refused_notes] == ["no lapse stands behind it"]


@pytest.mark.anyio
async def test_p1_6_a_damaged_skill_costs_no_call() -> None:
    """P1-6: nothing is proposed on a skill whose markers are damaged."""
    result = await run(Editor.scripted(), text=SKILL.replace("APPENDIX_END", "APPENDIX_STOP"))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.editor_calls) == ("none_applied", 0)
    assert "damaged" in result.reply.detail


FOUR = [
    edit("append", "", "- Compare start times.", "q-7-1", "q-7-2"),
    edit("append", "", "- Look at the key frames.", "q-7-1"),
    edit("append", "", "- Name the node.", "q-7-1"),
    edit("replace", "- Not there.", "- x", "q-7-1"),
]


@pytest.mark.anyio
async def test_more_edits_than_the_learning_rate_are_ranked() -> None:
    editor = Editor.scripted(answer(reply(FOUR)), answer('{"selected": [3, 2]}'))
    result = await run(editor)
    assert isinstance(result.reply, Proposal)
    assert [(report.edit.content, report.status) for report in result.reply.reports] == [
        ("- Name the node.", "applied"),
        ("- Look at the key frames.", "applied"),
        ("- Compare start times.", "not_chosen"),
        ("- x", "no_match"),
    ]
    assert (result.reply.editor_calls, result.reply.parse_failures) == (2, 0)


@pytest.mark.anyio
async def test_without_a_readable_ranking_the_support_decides_and_it_is_told() -> None:
    editor = Editor.scripted(answer(reply(FOUR)), answer("the third"), answer("the third"))
    result = await run(editor)
    assert isinstance(result.reply, Proposal)
    assert [report.status for report in result.reply.reports] == [
        "applied",
        "applied",
        "not_chosen",
        "no_match",
    ]
    assert (result.reply.editor_calls, result.reply.parse_failures) == (3, 2)
    assert result.failed_calls == ("ranking: unreadable: the reply holds no JSON object",)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (failed(), "editor_unreachable"),
        (ChatFailed(kind="quota", fatal=True, detail="402"), "editor_refused"),
    ],
    ids=["outage", "quota"],
)
@pytest.mark.parametrize("lapse", [False, True], ids=["ranking", "compaction"])
async def test_P1_4_a_later_call_that_an_outage_takes_ends_the_proposal(
    failure: ChatFailed, reason: str, lapse: bool
) -> None:
    """P1-4: neither the choice of edits nor a compacted appendix depends on an outage."""
    if lapse:
        editor = Editor.scripted(answer(reply([], ["Look at it all."])), failure)
        lapses = (case("q-8-1", "lapse"),)
        result = await run(editor, defects=(), lapses=lapses, consolidate_above=1)
    else:
        result = await run(Editor.scripted(answer(reply(FOUR)), failure))
    assert isinstance(result.reply, NoProposal)
    assert (result.reply.reason, result.reply.editor_calls) == (reason, 2)
    assert len(result.failed_calls) == 1


@pytest.mark.anyio
async def test_a_crash_in_the_ranking_costs_the_ranking_only() -> None:
    result = await run(Editor.scripted(answer(reply(FOUR)), failed("crash")))
    assert isinstance(result.reply, Proposal)
    assert result.failed_calls == ("ranking: crash: no answer",)


@pytest.mark.anyio
async def test_near_duplicates_of_two_analysts_take_one_place() -> None:
    """No ranking is needed, and the support of both counts."""
    same = edit("append", "", "- Please compare the start times!", "q-7-2")
    defects = (case("q-7-1"), case("q-7-2"))
    result = await run(Editor.scripted(answer(reply([FOUR[1], FOUR[0], same]))), defects=defects)
    assert isinstance(result.reply, Proposal)
    assert [report.status for report in result.reply.reports] == ["applied", "applied"]
    applied = result.reply.reports[0]
    assert (applied.edit.content, applied.edit.support) == (
        "- Compare start times.",
        ("q-7-1", "q-7-2"),
    )


@pytest.mark.anyio
async def test_an_edit_like_a_rejected_one_is_refused_with_its_row() -> None:
    before = (rejected([edit("append", "", "- compare the start times")]),)
    again = edit("append", "", "- Keep in mind: compare start times.", "q-7-1")
    result = await run(Editor.scripted(answer(reply([again]))), before=before)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "already_rejected"
    (report,) = result.reply.reports
    assert report.status == "like_rejected"
    assert "e1/order/s0" in report.detail
    turned = edit("append", "", "- Never compare start times.", "q-7-1")
    result = await run(Editor.scripted(answer(reply([turned]))), before=before)
    assert isinstance(result.reply, Proposal)


@pytest.mark.anyio
async def test_a_note_that_the_gate_rejected_is_refused_aloud() -> None:
    before = (rejected([], notes=["Read all of it."]),)
    notes = ["read all of it", "Remember: read all of it!", "Look at it."]
    lapses = (case("q-8-1", "lapse"),)
    result = await run(
        Editor.scripted(answer(reply([], notes))), defects=(), lapses=lapses, before=before
    )
    assert isinstance(result.reply, Proposal)
    assert result.reply.notes == ("Look at it.",)
    assert [(refused.note, refused.why) for refused in result.refused_notes] == [
        (notes[0], "the gate rejected it in e1/order/s0"),
        (notes[1], "it says in other words what e1/order/s0 had"),
    ]


NOTES = ["Look at it all.", "Name the node.", "Quote the card."]
COMPACT = '{"notes": ["Read, look, name and quote."]}'


async def run_notes(
    *more: ChatAnswer | ChatFailed, consolidate_above: int, max_notes: int = 5
) -> Result:
    editor = Editor.scripted(answer(reply([], NOTES)), *more)
    return await run(
        editor,
        defects=(),
        lapses=(case("q-8-1", "lapse"),),
        consolidate_above=consolidate_above,
        max_notes=max_notes,
    )


@pytest.mark.anyio
async def test_too_many_notes_are_compacted_and_the_candidate_is_one_text() -> None:
    result = await run_notes(answer(COMPACT), consolidate_above=3)
    assert isinstance(result.reply, Proposal)
    assert result.reply.consolidated
    assert notes_of(result.reply.candidate.text) == ("Read, look, name and quote.",)
    assert result.reply.notes == tuple(NOTES)
    assert (result.reply.editor_calls, result.failed_calls) == (2, ())


@pytest.mark.anyio
async def test_few_notes_cost_no_call() -> None:
    result = await run_notes(consolidate_above=4)
    assert isinstance(result.reply, Proposal)
    assert not result.reply.consolidated
    assert notes_of(result.reply.candidate.text) == ("Read every option.", *NOTES)


@pytest.mark.anyio
async def test_a_full_appendix_takes_new_notes_by_compaction() -> None:
    """A note that finds no room is not lost while the others can be compacted."""
    result = await run_notes(answer(COMPACT), consolidate_above=3, max_notes=2)
    assert isinstance(result.reply, Proposal)
    assert (result.reply.notes, result.refused_notes) == (tuple(NOTES), ())
    result = await run_notes(answer("x"), answer("x"), consolidate_above=3, max_notes=2)
    assert isinstance(result.reply, Proposal)
    assert result.reply.notes == (NOTES[0],)
    assert [refused.why for refused in result.refused_notes] == [
        "the appendix is full: 2 notes"
    ] * 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    "bad", ['{"notes": []}', '{"notes": ["Two gulls fight over bread."]}', "none"]
)
async def test_notes_stay_when_their_compaction_fails(bad: str) -> None:
    result = await run_notes(answer(bad), answer(bad), consolidate_above=3)
    assert isinstance(result.reply, Proposal)
    assert not result.reply.consolidated
    assert notes_of(result.reply.candidate.text) == ("Read every option.", *NOTES)
    assert (result.reply.editor_calls, result.reply.parse_failures) == (3, 2)
    assert [failure.split(":")[0] for failure in result.failed_calls] == ["compaction"]


@pytest.mark.anyio
async def test_a_compaction_that_takes_the_new_notes_back_is_no_candidate() -> None:
    result = await run_notes(answer('{"notes": ["Read every option."]}'), consolidate_above=3)
    assert isinstance(result.reply, NoProposal)
    assert result.reply.reason == "none_applied"
