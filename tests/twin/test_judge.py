"""The simulated judge."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from actors.twin.catalog import Entry
from actors.twin.judge import Verdict, judge_reply
from actors.twin.layout import LayoutError
from actors.twin.wire import Turn
from actors.twin.world import holds
from tests.twin.conversations import demo, judge_turns, skill_of

TRACE = "search_similar -> {0}_L2_001\n{0}_L2_001 shown again, beside {0}_L3_004"


def needy() -> list[Entry]:
    """Questions that need a lesson."""
    return [entry for entry in demo().entries if entry.planted.needs]


def full_skill(entry: Entry) -> str:
    """The seed's skill of the class, with every lesson."""
    task_type = entry.row.task_type
    lessons = "".join(f"{lesson.text}\n" for lesson in demo().lessons_of(task_type))
    return skill_of(task_type) + lessons


def verdict(entry: Entry, skill: str, noise: float = 0.0, seed: int | None = None) -> Verdict:
    """A verdict as the diagnoser reads it, asked again if it must be."""
    given = "B" if entry.row.answer != "B" else "A"
    turns = judge_turns(entry, given, skill, TRACE.format(entry.row.video_id), "1, 3")
    raw = judge_reply(demo(), 7, noise, turns, seed)
    try:
        return msgspec.json.decode(raw, type=Verdict)
    except msgspec.DecodeError:
        more = (Turn("assistant", raw), Turn("user", "Your reply could not be read: broken"))
        return msgspec.json.decode(
            judge_reply(demo(), 7, noise, (*turns, *more), seed), type=Verdict
        )


def test_missing_lesson_is_a_defect_by_its_topic() -> None:
    """The topic is named; lesson, letter and options are not."""
    for entry in needy():
        lesson = demo().lessons[entry.planted.needs[0]]
        found = verdict(entry, skill_of(entry.row.task_type))
        assert found.cause == "defect"
        assert lesson.topic in found.finding


def test_findings_never_leak() -> None:
    """No letter, no option, no lesson key in any finding, noise included."""
    for entry in demo().entries:
        found = verdict(entry, skill_of(entry.row.task_type), noise=0.5)
        words = found.finding.replace(".", " ").replace(",", " ").split()
        assert not {"A", "B", "C", "D"} & set(words[1:])
        for option in entry.row.options:
            assert len(option.split()) < 2 or option.rstrip(".") not in found.finding
        assert not any(holds(found.finding, lesson.key) for lesson in demo().world.lessons)
        assert entry.row.question_id not in found.finding


def test_trap_is_a_defect_and_the_rest_a_lapse() -> None:
    """Once the lessons are there, a trap misleads; without one it was a slip."""
    entry = needy()[0]
    full = full_skill(entry)
    slip = verdict(entry, full)
    assert (slip.cause, slip.followed) == ("lapse", "no")
    trap = demo().traps_of(entry.row.task_type)[0]
    misled = verdict(entry, f"{full}{trap.text}\n")
    assert (misled.cause, misled.followed) == ("defect", "yes")
    assert misled.rule == trap.text.removeprefix("- ")
    assert "misleads" in misled.finding


def test_the_rule_is_a_line_of_the_skill_or_none() -> None:
    """A lapse names the lesson that was there; a gap names no rule."""
    for entry in needy():
        known = verdict(entry, full_skill(entry))
        lessons = [demo().lessons[name] for name in entry.planted.needs]
        assert f"- {known.rule}" in {lesson.text for lesson in lessons}
        gap = verdict(entry, skill_of(entry.row.task_type))
        assert (gap.rule, gap.followed) == ("none", "none")


def test_the_calls_that_were_asked_for_are_graded() -> None:
    """No other, and never so badly that extraction would have failed."""
    for entry in needy():
        found = verdict(entry, skill_of(entry.row.task_type))
        assert [call.step for call in found.calls] == [1, 3]
        assert {call.kept for call in found.calls} <= {"all", "most", "half"}
        assert {call.invented for call in found.calls} <= {"nothing", "little"}


@pytest.mark.parametrize("skill", [lambda e: skill_of(e.row.task_type), full_skill])
def test_noise_has_its_rate(skill: Callable[[Entry], str]) -> None:
    """One verdict in ten names another cause, whatever the true one is."""
    told = [
        (verdict(entry, skill(entry), 0.1, seed), verdict(entry, skill(entry), 0.0, seed))
        for entry in needy()
        for seed in range(6)
    ]
    wrong = [noisy for noisy, true in told if noisy.finding != true.finding]
    (truth,) = {true.cause for _, true in told}
    assert 0.06 < len(wrong) / len(told) < 0.14
    assert {found.cause for found in wrong} == {"defect", "lapse", "uncertain"} - {truth}


def test_first_reply_is_rarely_broken_and_never_the_second() -> None:
    """One re-ask is enough."""
    broken = 0
    asked = [
        judge_turns(entry, None, skill_of(entry.row.task_type), "x") for entry in demo().entries
    ]
    for turns in asked:
        raw = judge_reply(demo(), 7, 0.1, turns, None)
        assert raw == judge_reply(demo(), 7, 0.1, turns, None)
        if not raw.endswith("}"):
            broken += 1
    assert 1 <= broken <= 20
    assert all(verdict(entry, skill_of(entry.row.task_type)) for entry in demo().entries)


def test_missed_nodes_were_in_the_trajectory() -> None:
    """A node that the judge names is one that was shown."""
    named = [
        (entry, node)
        for entry in needy()
        for node in verdict(entry, skill_of(entry.row.task_type)).missed_nodes
    ]
    assert named
    assert all(node == f"{entry.row.video_id}_L3_004" for entry, node in named)


def test_request_without_user_message_is_refused() -> None:
    """There is nothing to judge."""
    with pytest.raises(LayoutError, match="user message"):
        judge_reply(demo(), 7, 0.1, (Turn("system", "x"),), None)


def test_what_a_prompt_lacks_is_no_defect_of_the_skill() -> None:
    """The judge is shown the skill alone: where it says all it can, the failure is a lapse."""
    prompts = {lesson.lesson_id for lesson in demo().world.lessons if lesson.document != "skill"}
    entries = [entry for entry in needy() if prompts & {*entry.planted.needs}]
    assert len(entries) == 136
    for entry in entries[:20]:
        assert verdict(entry, full_skill(entry)).cause == "lapse"
        found = verdict(entry, skill_of(entry.row.task_type))
        assert not any(demo().lessons[name].topic in found.finding for name in prompts)
