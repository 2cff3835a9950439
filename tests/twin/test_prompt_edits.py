"""The simulated editor of system prompt and tool prompts."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from actors.twin.document import frozen_headings, shape_of
from actors.twin.editing import DocumentOut, EditOut
from actors.twin.editor import editor_reply
from actors.twin.shares import Shares
from actors.twin.truth import classify
from actors.twin.wire import Turn
from actors.twin.world import Subject, holds
from tests.twin.conversations import SHARES, demo, skill_of
from tests.twin.requests import document_turns, prompt_text
from tests.twin.test_editor import COMPLAINT, apply

DOCUMENTS = ("system", "view_node", "search_similar")
OPEN = {"system": "## How to work", "view_node": "## Advice", "search_similar": "## Advice"}
HELPFUL = Shares(1.0, 0.0, 0.0, 0.0)


def cases(document: str, n: int = 4) -> list[tuple[str, str]]:
    """Cases of questions that need a lesson of the document."""
    lessons = {lesson.lesson_id for lesson in demo().lessons_for(Subject.prompt(document))}
    kind = "early_submit" if document == "system" else "failing"
    names = [e.row.question_id for e in demo().entries if lessons & {*e.planted.needs}]
    return [(name, kind) for name in names[:n]]


def said(turns: tuple[Turn, ...], shares: Shares = SHARES) -> str:
    return editor_reply(demo(), 7, shares, turns, None, hostile=0.0).text


def read(raw: str) -> DocumentOut | None:
    try:
        reply = msgspec.json.decode(raw, type=DocumentOut)
    except msgspec.DecodeError:
        return None
    return None if any(edit.op == "rewrite" for edit in reply.edits) else reply


def accuracy(prompts: str) -> float:
    """The mean truth of all questions under the first skills and these prompts."""
    values = [demo().accuracy(e, skill_of(e.row.task_type), prompts) for e in demo().entries]
    return sum(values) / len(values)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_shares_are_the_stated_ones(document: str) -> None:
    """The true worth of each first edit is what its slot was drawn for."""
    text = prompt_text(document)
    before = accuracy(text)
    kinds: Counter[str] = Counter()
    worth: dict[str, str] = {}
    for at in range(400):
        turns = document_turns(document, cases(document), budget=1, tag=str(at))
        reply = read(said(turns))
        if reply is None:
            kinds["malformed"] += 1
            continue
        (edit,) = reply.edits
        line = edit.content.split("\n")[-1]
        if line not in worth:
            worth[line] = classify(accuracy(apply(text, edit)) - before)
        kinds[worth[line]] += 1
    for kind in ("helpful", "useless", "harmful", "malformed"):
        assert kinds[kind] / 400 == pytest.approx(getattr(SHARES, kind), abs=0.075), kinds


@pytest.mark.parametrize("document", DOCUMENTS)
def test_only_lessons_of_the_document_are_proposed(document: str) -> None:
    """Those that the cases need; the line goes into a section that is not frozen."""
    others = [x for x in demo().world.lessons if x.document != document]
    text = prompt_text(document)
    for at in range(20):
        reply = read(said(document_turns(document, cases(document), tag=str(at)), HELPFUL))
        assert reply is not None
        edited = text
        for edit in reply.edits:
            edited = apply(edited, edit)
            assert not any(holds(edit.content, lesson.key) for lesson in others)
            assert set(edit.support) <= {name for name, _ in cases(document)}
        open_from = text.index(OPEN[document])
        assert edited[:open_from] == text[:open_from]
        first = reply.edits[0].content
        own = demo().lessons_for(Subject.prompt(document))
        assert any(holds(first, lesson.key) for lesson in own)


def test_the_reply_has_the_form_of_its_template() -> None:
    """Suggestions and edits, no notes; a good call is no reason for an edit."""
    raw = said(document_turns("view_node", cases("view_node")), HELPFUL)
    assert set(msgspec.json.decode(raw)) == {"suggestions", "edits"}
    good = [(name, "good") for name, _ in cases("view_node")]
    reply = read(said(document_turns("view_node", good), HELPFUL))
    assert reply is not None
    assert reply.edits == ()


def test_a_tool_that_the_world_says_nothing_of_gets_stock_lines() -> None:
    """Without effect, and at last none."""
    named = [(name, "failing") for name, _ in cases("view_node")]
    reply = read(said(document_turns("submit_answer", named), HELPFUL))
    assert reply is not None
    assert reply.edits
    text = prompt_text("submit_answer")
    for edit in reply.edits:
        text = apply(text, edit)
    assert accuracy(text) == accuracy(prompt_text("submit_answer"))


def test_traps_are_taken_out() -> None:
    """A helpful editor removes what misleads in its own document."""
    trap = demo().traps_for(Subject.prompt("system"))[0]
    text = f"{prompt_text('system')}{trap.text}\n"
    removed = 0
    for at in range(40):
        turns = document_turns("system", cases("system"), text=text, budget=1, tag=str(at))
        reply = read(said(turns, HELPFUL))
        assert reply is not None
        removed += any(edit.op == "delete" and edit.target == trap.text for edit in reply.edits)
    assert removed > 5


def test_later_slots_aim_at_nothing_or_at_what_is_frozen() -> None:
    """Both occur: a target that is not there, and one of a frozen section."""
    text = prompt_text("system")
    frozen = set(shape_of(text, frozen_headings("system")).frozen)
    assert "## Output format" in frozen
    aims: Counter[str] = Counter()
    for at in range(60):
        turns = document_turns("system", cases("system"), budget=4, tag=str(at))
        reply = read(said(turns, Shares(0.5, 0.0, 0.0, 0.5)))
        for edit in reply.edits if reply is not None else ():
            if edit.target in frozen:
                aims["frozen"] += 1
            elif edit.target not in text:
                aims["nothing"] += 1
    assert min(aims["frozen"], aims["nothing"]) > 5


def test_a_complaint_is_answered_with_a_sound_reply() -> None:
    """As for a skill."""
    for at in range(20):
        turns = document_turns("system", cases("system"), tag=str(at))
        again = (*turns, Turn("assistant", "?"), COMPLAINT)
        reply = read(said(again, Shares(0.5, 0.0, 0.0, 0.5)))
        assert reply is not None
        assert reply.edits


def test_rejected_edits_never_come_again() -> None:
    """Three wordings of each lesson, then something else."""
    rejected: list[str] = []
    for at in range(30):
        shown = "\n".join(f"- append {msgspec.json.encode(x).decode()}" for x in rejected) or "none"
        reply = read(said(document_turns("system", cases("system"), rejected=shown, tag=str(at))))
        for edit in reply.edits if reply is not None else ():
            line = edit.content.split("\n")[-1]
            assert line not in rejected
            rejected += [line] if edit.target in prompt_text("system") else []
    lessons = demo().lessons_for(Subject.prompt("system"))
    taught = [line for line in rejected if any(holds(line, lesson.key) for lesson in lessons)]
    assert len(taught) == 6


def test_edit_out_is_the_protocols() -> None:
    """The fields that the template names, in its order."""
    assert EditOut.__struct_fields__ == ("op", "target", "content", "support", "reason")
