"""Finding the line of a skill that a judge quotes."""

from __future__ import annotations

import pytest

from actors.diagnoser.rules import find_rule, rule_lines, says_none
from tests.twin.conversations import demo, skill_of

SKILL = (
    "---\nname: order\ndescription: Search for the event first.\ntask_type: Order\n---\n"
    "# Order\n\n## Steps\n\n- Search for the event named in the question.\n"
    "* Open the scene that holds it.\n3. Compare the start times of both.\n\nLook twice.\n"
    "<!-- APPENDIX_START -->\n- Read every option.\n<!-- APPENDIX_END -->\n"
)


def test_lines_that_can_be_followed() -> None:
    """No front matter, no headings, no markers; notes of the appendix are rules too."""
    assert rule_lines(SKILL) == (
        "Search for the event named in the question.",
        "Open the scene that holds it.",
        "Compare the start times of both.",
        "Look twice.",
        "Read every option.",
    )


@pytest.mark.parametrize(
    ("quoted", "line"),
    [
        ("- Search for the event named in the question.", 0),
        ("search for the event named in the question", 0),
        ('"Search for the event named ..."', 0),
        ("Steps: Open the scene that holds it", 1),
        ("3. Compare the start times of both.", 2),
        ("Look twice", 3),
        ("Open the scene that holds it. Compare the start times of both.", 1),
        ("Read every option.", 4),
    ],
)
def test_quotations(quoted: str, line: int) -> None:
    """Bullets, case, a missing end, or two lines at once."""
    assert find_rule(SKILL, quoted) == rule_lines(SKILL)[line]


@pytest.mark.parametrize(
    "quoted",
    [
        "Search the subtitles for numbers before anything else.",
        "The agent should look at all events.",
        "description: first",
        "the",
        "...",
        "",
    ],
)
def test_what_is_not_in_the_skill_is_no_rule(quoted: str) -> None:
    """Neither what was made up, nor a word that stands in every line."""
    assert find_rule(SKILL, quoted) is None


@pytest.mark.parametrize("quoted", ["none", "None.", "", "  ", "N/A", "no rule", "(nothing)"])
def test_no_rule(quoted: str) -> None:
    assert says_none(quoted)


@pytest.mark.parametrize("quoted", ["Look twice.", "None of the events may be skipped."])
def test_a_rule(quoted: str) -> None:
    assert not says_none(quoted)


def test_every_line_of_the_demos_skills_finds_itself() -> None:
    for task_type in sorted({entry.row.task_type for entry in demo().entries}):
        text = skill_of(task_type)
        assert rule_lines(text)
        assert all(find_rule(text, f"- {line}") == line for line in rule_lines(text))


def test_a_skill_without_lines_has_no_rule() -> None:
    assert find_rule("---\nname: x\n---\n# Title\n", "Look twice.") is None
