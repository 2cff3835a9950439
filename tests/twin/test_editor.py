"""The simulated editor."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.evolver.likeness import alike, gist
from actors.twin.editing import EditOut, ReplyOut
from actors.twin.editor import editor_reply
from actors.twin.layout import LayoutError, body_of
from actors.twin.shares import Shares
from actors.twin.truth import class_accuracy, classify
from actors.twin.wire import Turn
from actors.twin.world import holds
from tests.twin.conversations import (
    SHARES,
    demo,
    editor_turns,
    entries_of,
    questions,
    skill_of,
)

TASK_TYPE = "Action Recognition"
SOUND = Shares(0.5, 0.3, 0.2, 0.0)
COMPLAINT = Turn("user", "Your reply could not be read: broken")


def defects(n: int = 6, task_type: str = TASK_TYPE) -> list[tuple[str, str]]:
    """Cases of questions that need a lesson."""
    names = [e.row.question_id for e in entries_of(task_type) if e.planted.needs]
    return [(name, "defect") for name in names[:n]]


def said(turns: tuple[Turn, ...], shares: Shares = SHARES, seed: int | None = None) -> str:
    """What the editor says, not hostile."""
    return editor_reply(demo(), 7, shares, turns, seed, hostile=0.0).text


def read(raw: str) -> ReplyOut | None:
    """The reply, or None if it cannot be read."""
    try:
        reply = msgspec.json.decode(raw, type=ReplyOut)
    except msgspec.DecodeError:
        return None
    known = {"append", "insert_after", "replace", "delete"}
    return reply if all(edit.op in known for edit in reply.edits) else None


def sound(skill: str, cases: list[tuple[str, str]], **more: str | int) -> ReplyOut:
    """A reply of an editor that never errs in form."""
    turns = editor_turns(skill, cases, **more)  # type: ignore[arg-type]  # budget, rejected, tag
    reply = read(said(turns, SOUND))
    assert reply is not None
    return reply


def apply(text: str, edit: EditOut) -> str:
    """What the edit makes of a text. Fails if the target does not occur exactly once."""
    if edit.op == "append":
        assert edit.target == ""
        return f"{text.rstrip()}\n{edit.content}\n"
    assert text.count(edit.target) == 1, edit
    new = {"insert_after": edit.target + edit.content, "replace": edit.content, "delete": ""}
    return text.replace(edit.target, new[edit.op], 1)


def test_shares_are_the_stated_ones() -> None:
    """Of 1,500 first slots; the true worth of each edit is what its slot was drawn for."""
    skill = skill_of(TASK_TYPE)
    before = class_accuracy(demo().world, questions(), TASK_TYPE, skill)
    kinds: Counter[str] = Counter()
    for at in range(1500):
        turns = editor_turns(skill, defects(), budget=1, tag=str(at))
        reply = read(said(turns))
        if reply is None:
            kinds["malformed"] += 1
            continue
        (edit,) = reply.edits
        after = class_accuracy(demo().world, questions(), TASK_TYPE, apply(skill, edit))
        kinds[classify(after - before)] += 1
    share = {kind: n / 1500 for kind, n in kinds.items()}
    for kind in ("helpful", "useless", "harmful", "malformed"):
        assert share[kind] == pytest.approx(getattr(SHARES, kind), abs=0.04), share


def test_every_sound_reply_applies_in_order() -> None:
    """Targets are there exactly once, ops vary, new rules are lines of their own."""
    ops: Counter[str] = Counter()
    trap = demo().traps_of(TASK_TYPE)[0].text
    skill = f"{skill_of(TASK_TYPE).rstrip()}\n{trap}\n"
    for at in range(200):
        reply = sound(skill, defects(), tag=str(at))
        assert 1 <= len(reply.edits) <= 4
        text = skill
        for edit in reply.edits:
            ops[edit.op] += 1
            text = apply(text, edit)
            assert edit.reason
            assert edit.support
            assert set(edit.support) <= {name for name, _ in defects()}
            if edit.op == "delete":
                assert edit.target == trap
            else:
                assert edit.content.split("\n")[-1] in text.split("\n")
    assert all(ops[op] > 10 for op in ("append", "insert_after", "replace", "delete")), ops


def test_lessons_of_the_cases_come_first() -> None:
    """A helpful first edit teaches what the cases need."""
    lesson = demo().lessons_of(TASK_TYPE)[2]
    cases = [
        (entry.row.question_id, "defect")
        for entry in entries_of(TASK_TYPE)
        if lesson.lesson_id in entry.planted.needs
    ][:3]
    for at in range(20):
        turns = editor_turns(skill_of(TASK_TYPE), cases, budget=1, tag=str(at))
        reply = read(said(turns, Shares(1.0, 0.0, 0.0, 0.0)))
        assert reply is not None
        assert holds(reply.edits[0].content, lesson.key)
        assert reply.edits[0].support == tuple(name for name, _ in cases)


def test_targets_lie_outside_the_regions() -> None:
    """Appendix and momentum are not the editor's, and front matter is not a rule."""
    tail = "<!-- APPENDIX_START -->\n- A note of its own.\n<!-- APPENDIX_END -->\n"
    skill = f"{skill_of(TASK_TYPE).rstrip()}\n\n{tail}"
    rules = body_of(skill).partition("<!-- APPENDIX_START -->")[0]
    for at in range(100):
        for edit in sound(skill, defects(), tag=str(at)).edits:
            assert edit.target in rules


def test_rejected_texts_never_come_again() -> None:
    """Three wordings of each idea, then something else; at last nothing."""
    rejected: list[str] = []
    for at in range(150):
        shown = "\n".join(f"- {json.dumps(line)} (e = 0.4)" for line in rejected) or "none"
        reply = sound(skill_of(TASK_TYPE), defects(), rejected=shown, tag=str(at))
        for edit in reply.edits:
            line = edit.content.split("\n")[-1]
            assert line not in rejected
            rejected.append(line)
    taught = [x for x in rejected if any(holds(x, y.key) for y in demo().lessons_of(TASK_TYPE))]
    assert len(taught) == 3 * len(demo().lessons_of(TASK_TYPE))
    assert len(rejected) == len(set(rejected)) > 40
    assert sound(skill_of(TASK_TYPE), defects(), rejected="\n".join(rejected)).edits == ()


def test_lapses_give_notes_only() -> None:
    """A note says an existing rule again, not a misleading one, not twice."""
    lapses = [(name, "lapse") for name, _ in defects()]
    trap = demo().traps_of(TASK_TYPE)[0]
    skill = f"{skill_of(TASK_TYPE).rstrip()}\n{trap.text}\n"
    reply = sound(skill, lapses)
    assert reply.edits == ()
    assert 1 <= len(reply.notes) <= 3
    for note in reply.notes:
        assert note.removeprefix("Do not skip this: ") in skill
        assert not holds(note, trap.key)
    tail = "".join(f"- {note}\n" for note in reply.notes)
    again = sound(f"{skill}\n<!-- APPENDIX_START -->\n{tail}<!-- APPENDIX_END -->\n", lapses)
    assert not set(reply.notes) & set(again.notes)


def test_mixed_cases_give_both() -> None:
    """Edits for the defects, notes for the lapses."""
    cases = [*defects(2), (entries_of(TASK_TYPE)[-1].row.question_id, "lapse")]
    reply = sound(skill_of(TASK_TYPE), cases)
    assert reply.edits
    assert len(reply.notes) == 1


def test_reask_mends_the_reply() -> None:
    """All three ways to spoil a reply occur; the second reply is sound."""
    only_bad = Shares(0.5, 0.0, 0.0, 0.5)
    ways: Counter[str] = Counter()
    for at in range(60):
        turns = editor_turns(skill_of(TASK_TYPE), defects(), budget=1, tag=str(at))
        raw = said(turns, only_bad)
        if read(raw) is None:
            ways["prose" if "{" not in raw else "op" if raw.endswith("}") else "cut"] += 1
            mended = said((*turns, Turn("assistant", raw), COMPLAINT), only_bad)
            assert read(mended) is not None
    assert set(ways) == {"prose", "op", "cut"}


def test_later_slots_misaim() -> None:
    """A malformed edit beside sound ones has a target that is not there."""
    skill = skill_of(TASK_TYPE)
    missed = 0
    for at in range(100):
        turns = editor_turns(skill, defects(), tag=str(at))
        reply = read(said(turns))
        for slot, edit in enumerate(reply.edits if reply is not None else ()):
            if edit.target not in skill:
                missed += 1
                assert slot > 0
    assert missed > 5


def test_wordings_of_a_lesson_are_not_taken_for_one_another() -> None:
    """A good lesson that was refused by bad luck gets a second chance in words of its own."""
    lines = {
        line
        for at in range(40)
        for rejected in ("none", json.dumps(demo().lessons_of(TASK_TYPE)[0].text))
        for edit in sound(skill_of(TASK_TYPE), defects(), rejected=rejected, tag=str(at)).edits
        if holds(line := edit.content.split("\n")[-1], demo().lessons_of(TASK_TYPE)[0].key)
    }
    assert len(lines) == 2
    first, second = (gist(line) for line in lines)
    assert not alike(first, second, 0.85)


@given(seed=st.integers(0, 2**31), budget=st.integers(1, 6), n=st.integers(0, 8))
def test_reply_is_pure_and_leaks_nothing(seed: int, budget: int, n: int) -> None:
    """Equal requests, equal replies; no option and no question id in what enters a document."""
    for task_type in ("Object Recognition", "Information Synopsis"):
        cases = [(e.row.question_id, "defect") for e in entries_of(task_type)[:n]]
        turns = editor_turns(skill_of(task_type), cases, budget=budget)
        raw = said(turns, SHARES, seed)
        assert raw == said(turns, SHARES, seed)
        reply = read(raw)
        if reply is None:
            continue
        assert len(reply.edits) <= budget
        entered = "\n".join([edit.content + edit.reason for edit in reply.edits])
        for entry in entries_of(task_type):
            assert entry.row.question_id not in entered
            assert entry.row.question not in entered
            assert not any(len(x.split()) > 3 and x in entered for x in entry.row.options)


def test_default_skill_gets_stock_lines() -> None:
    """A skill without a class of the world is edited too, without effect."""
    skill = skill_of("_default")
    reply = sound(skill, defects(2))
    assert reply.edits
    assert all(edit.content.split("\n")[-1].startswith("- ") for edit in reply.edits)


def test_request_without_user_message_is_refused() -> None:
    """There is nothing to edit."""
    with pytest.raises(LayoutError, match="user message"):
        said((Turn("system", "x"),))
