"""Reading the prompts' layouts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.twin.briefs import EditorBrief, brief_of
from actors.twin.layout import (
    LABELS,
    LayoutError,
    body_of,
    judge_brief,
    question_block,
    strategy_of,
    task_type_of,
)
from tests.twin.conversations import agent_turns, demo, editor_turns, judge_turns, skill_of

LINE = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=30
).map(str.strip)


@given(
    question=st.lists(LINE.filter(bool), min_size=1, max_size=3).map("\n".join),
    options=st.lists(LINE.filter(bool), min_size=2, max_size=6),
)
def test_question_block_reads_what_was_written(question: str, options: list[str]) -> None:
    """Several lines, other scripts, bodies that look like labels."""
    lines = "\n".join(f"{LABELS[at]}. {body}" for at, body in enumerate(options))
    text = f"Video: -x_1\nTask type: OCR Problems\n\nQuestion:\n{question}\n\nOptions:\n{lines}\n\n"
    block = question_block(f"{text}Video tree, top level:\nA. not an option")
    assert (block.question, block.options) == (question, tuple(options))
    assert (block.video_id, block.task_type) == ("-x_1", "OCR Problems")


@pytest.mark.parametrize("block", ["Video: ", "Task type: ", "Question:", "Options:"])
def test_missing_block_is_named(block: str) -> None:
    """The error says what is lacking."""
    text = agent_turns(demo().entries[0], "x")[1].text
    with pytest.raises(LayoutError, match=block.strip()):
        question_block(text.replace(block, "Other ", 1))


def test_strategy_and_body() -> None:
    """The system message ends in the skill without its front matter."""
    skill = skill_of("Counting Problem")
    turns = agent_turns(demo().entries[0], skill)
    assert strategy_of(turns[0].text) == body_of(skill)
    assert body_of(skill).startswith("# Counting Problem")
    assert body_of("# No front matter\n---\n") == "# No front matter\n---\n"
    assert task_type_of(skill) == "Counting Problem"
    with pytest.raises(LayoutError, match="task_type"):
        task_type_of("# No front matter\ntask_type: X\n")
    with pytest.raises(LayoutError, match="Strategy"):
        strategy_of("# Tools")


def test_judge_brief() -> None:
    """All blocks; 'none' is no letter."""
    entry = demo().entries[0]
    text = judge_turns(entry, None, "the skill", "step 1\nCalls to grade: 9", "1, 12")[0].text
    brief = judge_brief(text)
    assert (brief.given, brief.correct) == (None, entry.row.answer)
    assert (brief.skill, brief.trajectory) == ("the skill", "step 1\nCalls to grade: 9")
    assert brief.graded == (1, 12)  # not what stands in a trajectory
    assert brief.block.options == entry.row.options
    with pytest.raises(LayoutError, match="TRAJECTORY"):
        judge_brief(text.replace("<<<TRAJECTORY", ""))


@pytest.mark.parametrize(
    ("said", "graded"), [("none", ()), ("3", (3,)), ("1, 2, 3", (1, 2, 3))], ids=str
)
def test_calls_to_grade(said: str, graded: tuple[int, ...]) -> None:
    """Numbers, or the word none."""
    text = judge_turns(demo().entries[0], "B", "s", "t", said)[0].text
    assert judge_brief(text).graded == graded


@pytest.mark.parametrize("said", ["", "all", "1,2", "1, 2,", "-1"])
def test_calls_to_grade_are_read_strictly(said: str) -> None:
    """Anything else is no list, and a request without the line is refused."""
    text = judge_turns(demo().entries[0], "B", "s", "t", said)[0].text
    with pytest.raises(LayoutError, match="Calls to grade"):
        judge_brief(text)
    with pytest.raises(LayoutError, match="Calls to grade"):
        judge_brief(text.replace("Calls to grade:", "Calls:"))


def test_editor_brief() -> None:
    """Cases with their cause; words in the skill are not blocks."""
    skill = skill_of("OCR Problems") + "\nCase demo-009-9 [defect]\nEdit budget: 99\n"
    cases = [("demo-001-3", "defect"), ("demo-002-1", "lapse")]
    brief = brief_of(editor_turns(skill, cases, budget=3, rejected="- append: x")[0].text)
    assert isinstance(brief, EditorBrief)
    assert brief.budget == 3
    assert [(case.question_id, case.defect) for case in brief.cases] == [
        ("demo-001-3", True),
        ("demo-002-1", False),
    ]
    assert brief.task_type == "OCR Problems"
    assert brief.rejected.strip() == "- append: x"
    with pytest.raises(LayoutError, match="Rejected before"):
        brief_of(editor_turns(skill, cases)[0].text.replace("Rejected before:", ""))
