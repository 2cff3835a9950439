"""The planted world, its files and the truth of an edit."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.twin.catalog import LoadError, NotPlanted, load_catalog
from actors.twin.layout import question_block
from actors.twin.truth import class_accuracy, classify, package_accuracy, prompts_text
from actors.twin.world import Subject, holds, problems
from protocol.documents import Document, Package, PackageTexts, Prompts, Skill
from tests.twin.conversations import QUESTIONS, WORLD, agent_turns, demo, questions, skill_of


def test_holds_evens_out_case_and_space() -> None:
    """A key broken over lines is still said."""
    assert holds("Keep a\n  RUNNING total.", "keep a running  total")
    assert not holds("Keep running.", "keep a running total")


def test_demo_world_is_consistent() -> None:
    """And ``problems`` names what is not."""
    world = demo().world
    assert problems(world) == []
    lesson, trap = world.lessons[0], world.traps[0]
    broken = msgspec.structs.replace(
        world,
        lessons=(*world.lessons, msgspec.structs.replace(lesson, text="no bullet", gain=-1.0)),
        traps=(msgspec.structs.replace(trap, text=f"{trap.text} {lesson.key}"),),
        questions=(msgspec.structs.replace(world.questions[0], needs=("nothing",)),),
    )
    found = "\n".join(problems(broken))
    odd = msgspec.structs.replace(world, fillers=(*world.fillers, world.fillers[0]))
    assert problems(odd) == []  # a filler may be there twice, it does nothing
    odd = msgspec.structs.replace(
        world, traps=(*world.traps[1:], msgspec.structs.replace(trap, document="system"))
    )
    assert "a skill's line has a task_type, a prompt's has none" in "\n".join(problems(odd))
    for what in ("2 times", "gain is -1.0", "one Markdown bullet", "unknown lesson", "key"):
        assert what in found


@pytest.mark.parametrize(
    ("break_world", "break_questions", "named"),
    [
        ('"gain":2.7', None, "lessons[0].gain"),
        ('"demo-001-1"', None, "demo-001-1"),
        (None, '"answer":"A"', "answer"),
        (None, '"task_type"', "task_type"),
        (None, '"question_id":"demo-001-1"', "question_id"),
    ],
)
def test_load_errors_name_file_and_key(
    tmp_path: Path, break_world: str | None, break_questions: str | None, named: str
) -> None:
    """The operator is told where to look."""
    world, lines = WORLD.read_text(encoding="utf-8"), QUESTIONS.read_text(encoding="utf-8")
    if break_world is not None:
        broken = '"gain":"x"' if "gain" in break_world else '"demo-000-0"'
        world = world.replace(break_world, broken, 1)
    if break_questions is not None:
        name, _, value = break_questions.partition(":")
        broken = f'{name}:"E"' if value else '"x"'
        lines = lines.replace(break_questions, broken, 1)
    (tmp_path / "world.json").write_text(world, encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(lines, encoding="utf-8")
    with pytest.raises(LoadError) as caught:
        load_catalog(tmp_path / "world.json", tmp_path / "questions.jsonl")
    assert named in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_missing_file_is_a_load_error(tmp_path: Path) -> None:
    """With its path."""
    with pytest.raises(LoadError, match="nowhere"):
        load_catalog(tmp_path / "nowhere.json", QUESTIONS)


def test_catalog_wants_exactly_its_questions() -> None:
    """Other options or another class are another question."""
    entry = demo().entries[0]
    block = question_block(agent_turns(entry, "x")[1].text)
    assert demo().find(block) is entry
    for change in (
        {"options": ("8", "7", "9", "11")},
        {"task_type": "OCR Problems"},
        {"video_id": "other"},
    ):
        with pytest.raises(NotPlanted):
            demo().find(msgspec.structs.replace(block, **change))


def test_truth_of_edits() -> None:
    """A lesson helps, a filler does nothing, a trap harms; front matter counts for nothing."""
    world, task_type = demo().world, "Counting Problem"
    skill = skill_of(task_type)
    before = class_accuracy(world, questions(), task_type, skill)
    lesson = demo().lessons_of(task_type)[0].text
    lines = {
        "helpful": lesson,
        "useless": demo().fillers_of(task_type)[0],
        "harmful": demo().traps_of(task_type)[0].text,
    }
    for worth, line in lines.items():
        after = class_accuracy(world, questions(), task_type, f"{skill}\n{line}\n")
        assert classify(after - before) == worth
    fronted = skill.replace("description:", f"description: {lesson}", 1)
    assert class_accuracy(world, questions(), task_type, fronted) == before


def test_truth_needs_known_questions() -> None:
    """No silent mean over nothing."""
    world = demo().world
    with pytest.raises(ValueError, match="Nothing"):
        class_accuracy(world, questions(), "Nothing", "x")
    stranger = msgspec.structs.replace(questions()[0], question_id="demo-999-9")
    with pytest.raises(KeyError, match="demo-999-9"):
        class_accuracy(world, [stranger], stranger.task_type, "x")


def test_truth_of_a_package() -> None:
    """Skill, system prompt and tool prompts together; a key counts wherever it is told."""
    world = demo().world
    lesson = demo().lessons_for(Subject.prompt("system"))[0]
    names = sorted({question.task_type for question in questions()})
    texts = PackageTexts(
        package=Package(skills="v1", prompts="v1"),
        skills=tuple(Skill(task_type=name, text=skill_of(name)) for name in names),
        prompts=Prompts(
            version="v1", system="System.", tools=(Document(name="view_node", text="Opens."),)
        ),
    )
    first = package_accuracy(world, questions(), texts)
    assert first == pytest.approx(0.51, abs=0.015)
    for prompts in (
        msgspec.structs.replace(texts.prompts, system=f"System.\n{lesson.text}"),
        msgspec.structs.replace(
            texts.prompts, tools=(Document(name="view_node", text=lesson.text),)
        ),
    ):
        taught = msgspec.structs.replace(texts, prompts=prompts)
        after = package_accuracy(world, questions(), taught)
        assert after > first + 0.04
        told = prompts_text(prompts)
        assert class_accuracy(world, questions(), names[0], skill_of(names[0]), told) > (
            class_accuracy(world, questions(), names[0], skill_of(names[0]))
        )
    with pytest.raises(ValueError, match="no question"):
        package_accuracy(world, [], texts)
