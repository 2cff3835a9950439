"""The planted truth: what training can reach, and that nothing gives it away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from statistics import fmean

import pytest

from actors.twin.world import SKILL, Lesson, Trap, holds, true_accuracy
from tests.seeds.committed import documents, prompts, questions, skills, world

_MICRO = ("Information Synopsis", "Spatial Perception")
_TRAINABLE = tuple(name for name in skills() if name not in _MICRO)
_SKILL_LESSONS = tuple(lesson for lesson in world().lessons if lesson.document == SKILL)
_PROMPT_LESSONS = tuple(lesson for lesson in world().lessons if lesson.document != SKILL)
_SKILL_TRAPS = tuple(trap for trap in world().traps if trap.document == SKILL)
_PROMPT_TRAPS = tuple(trap for trap in world().traps if trap.document != SKILL)


def _accuracy(text_of: Callable[[str], str], *classes: str, beside: str = "") -> float:
    """The mean true accuracy over the questions of some classes (none named: of all).

    beside: a line that the prompts say beside their first text.
    """
    told = f"{prompts()}\n{beside}"
    task_types = {question.question_id: question.task_type for question in questions()}
    return fmean(
        true_accuracy(world(), planted, name, text_of(name), told)
        for planted in world().questions
        if (name := task_types[planted.question_id]) in (classes or tuple(skills()))
    )


def _first(name: str) -> str:
    return skills()[name]


def _with_lessons(name: str) -> str:
    lines = [lesson.text for lesson in world().lessons if lesson.task_type == name]
    return "\n".join([skills()[name], *lines])


def _with_fillers(name: str) -> str:
    lines = [filler.text for filler in world().fillers if filler.task_type == name]
    return "\n".join([skills()[name], *lines])


def test_every_question_is_planted_once() -> None:
    """The world and the questions are about the same ids."""
    ids = [planted.question_id for planted in world().questions]
    assert ids == [question.question_id for question in questions()]


def test_planted_accuracy_before_and_after() -> None:
    """About half is right at first, five sixths with all skill lessons, nine tenths with all."""
    taught = "\n".join(lesson.text for lesson in _PROMPT_LESSONS)
    assert _accuracy(_first) == pytest.approx(0.51, abs=0.015)
    assert _accuracy(_with_lessons) == pytest.approx(0.83, abs=0.015)
    assert _accuracy(_first, beside=taught) == pytest.approx(0.68, abs=0.015)
    assert _accuracy(_with_lessons, beside=taught) == pytest.approx(0.89, abs=0.015)


@pytest.mark.parametrize("name", _TRAINABLE)
def test_every_trainable_class_has_room(name: str) -> None:
    """Each one can gain 0.3 by its lessons; no class is hopeless and none is done."""
    assert _accuracy(_first, name) == pytest.approx(0.5, abs=0.03)
    assert _accuracy(_with_lessons, name) - _accuracy(_first, name) > 0.3


def test_micro_classes_have_nothing_to_learn() -> None:
    """Too small to test an edit on: they have no lesson, only traps."""
    assert not [lesson for lesson in world().lessons if lesson.task_type in _MICRO]
    assert _accuracy(_with_lessons, *_MICRO) == _accuracy(_first, *_MICRO)


@pytest.mark.parametrize("lesson", _SKILL_LESSONS, ids=lambda lesson: lesson.lesson_id)
def test_each_lesson_helps_its_own_class(lesson: Lesson) -> None:
    """Alone it raises its class, by what some of its questions need."""
    taught = _accuracy(lambda name: f"{skills()[name]}\n{lesson.text}", lesson.task_type)
    assert taught > _accuracy(_first, lesson.task_type) + 0.02


@pytest.mark.parametrize("lesson", _PROMPT_LESSONS, ids=lambda lesson: lesson.lesson_id)
def test_each_prompt_lesson_helps_over_all(lesson: Lesson) -> None:
    """In whichever document it is said; enough for val to see two or three together."""
    taught = _accuracy(_first, beside=lesson.text)
    assert taught > _accuracy(_first) + 0.03
    assert _accuracy(lambda name: f"{skills()[name]}\n{lesson.text}") == taught


@pytest.mark.parametrize("trap", _SKILL_TRAPS, ids=lambda trap: trap.trap_id)
def test_each_trap_harms_its_own_class(trap: Trap) -> None:
    """Alone it lowers its class."""
    harmed = _accuracy(lambda name: f"{skills()[name]}\n{trap.text}", trap.task_type)
    assert harmed < _accuracy(_first, trap.task_type) - 0.1


@pytest.mark.parametrize("trap", _PROMPT_TRAPS, ids=lambda trap: trap.trap_id)
def test_each_prompt_trap_harms_every_class(trap: Trap) -> None:
    """By about what a lesson of a prompt brings over all."""
    for name in skills():
        assert _accuracy(_first, name, beside=trap.text) < _accuracy(_first, name) - 0.02


def test_fillers_change_nothing() -> None:
    """Exactly nothing, in every class, and there are enough to choose from."""
    beside = "\n".join(filler.text for filler in world().fillers)
    assert all(
        _accuracy(_with_fillers, name, beside=beside) == _accuracy(_first, name)
        for name in skills()
    )
    assert min(Counter(filler.subject for filler in world().fillers).values()) >= 6


def test_the_documents_that_can_be_taught() -> None:
    """Two lessons in the system prompt, one in each of two tool prompts; traps beside them."""
    lessons = Counter(lesson.document for lesson in _PROMPT_LESSONS)
    assert lessons == {"system": 2, "view_node": 1, "search_similar": 1}
    assert {trap.document for trap in _PROMPT_TRAPS} == set(lessons)
    assert {filler.document for filler in world().fillers} == {SKILL, *lessons}


def test_needs_are_lessons_of_the_questions_class() -> None:
    """Every lesson is needed somewhere; a few questions need two."""
    classes = {lesson.lesson_id: lesson.task_type for lesson in _SKILL_LESSONS}
    prompt = {lesson.lesson_id for lesson in _PROMPT_LESSONS}
    task_types = {question.question_id: question.task_type for question in questions()}
    needs = {planted.question_id: planted.needs for planted in world().questions}
    for question_id, wanted in needs.items():
        own = [lesson_id for lesson_id in wanted if lesson_id not in prompt]
        assert all(classes[lesson_id] == task_types[question_id] for lesson_id in own)
        assert len(own) == 1 or own == list(wanted)  # a prompt's lesson stands beside one other
    wanted_by = Counter(lesson_id for wanted in needs.values() for lesson_id in wanted)
    assert set(wanted_by) == {*classes, *prompt}
    assert [wanted_by[lesson.lesson_id] for lesson in _PROMPT_LESSONS] == [40, 40, 28, 28]
    assert set(Counter(map(len, needs.values()))) == {0, 1, 2}


def test_a_key_is_said_by_its_own_line_alone() -> None:
    """Not by a first document, another lesson or trap, a filler or a question."""
    lines = {lesson.lesson_id: lesson.text for lesson in world().lessons}
    lines |= {trap.trap_id: trap.text for trap in world().traps}
    keys = {lesson.lesson_id: lesson.key for lesson in world().lessons}
    keys |= {trap.trap_id: trap.key for trap in world().traps}
    assert len(keys) == len(world().lessons) + len(world().traps)
    said = {**documents(), **lines}
    said |= {f"filler {filler.text}": filler.text for filler in world().fillers}
    said |= {q.question_id: "\n".join((q.question, *q.options)) for q in questions()}
    assert {
        owner: [place for place, text in said.items() if holds(text, key)]
        for owner, key in keys.items()
    } == {owner: [owner] for owner in keys}


def test_lines_are_single_bullets() -> None:
    """An editor can add each as it is: one line, a bullet, no region marker, all different."""
    lines = [lesson.text for lesson in world().lessons]
    lines += [trap.text for trap in world().traps]
    lines += [filler.text for filler in world().fillers]
    assert all(re.fullmatch(r"- \S.*[.!]", line) for line in lines)
    assert not [line for line in lines if "<!--" in line]
    assert len(set(lines)) == len(lines)
    present = {line for text in documents().values() for line in text.splitlines()}
    assert present.isdisjoint(lines)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[at : at + 4]) for at in range(len(words) - 3)}


def test_no_lesson_quotes_an_option() -> None:
    """No four words in a row: a lesson is a rule, not an answer."""
    options = {run for q in questions() for option in q.options for run in _runs(option)}
    assert len(options) > 100
    lines = [lesson.text for lesson in world().lessons] + [trap.text for trap in world().traps]
    assert [line for line in lines if _runs(line) & options] == []
