"""The first skills and prompts: what training starts from."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from protocol.keys import slug
from tests.seeds.committed import documents, questions, skills

_SKILLS = {path: text for path, text in documents().items() if path.startswith("skills/")}
_FRONT = re.compile(r"---\nname: (\S+)\ndescription: (\S.*)\ntask_type: (\S.*)\n---\n(.*)", re.S)
_HEADINGS = ["## When to use", "## Steps", "## Checks", "## Pitfalls"]


def test_there_is_a_skill_for_every_class_and_a_default() -> None:
    """And no other: a skill without a class would never be trained."""
    names = {slug(question.task_type) for question in questions()} | {"_default"}
    assert set(_SKILLS) == {f"skills/v1/{name}.md" for name in names}


def test_there_is_a_system_prompt_and_one_per_tool() -> None:
    """The tools of the agent's contract."""
    tools = ("search_similar", "search_subtitles", "submit_answer", "view_node")
    expected = {"prompts/v1/system.md", *(f"prompts/v1/tools/{tool}.md" for tool in tools)}
    assert set(documents()) - set(_SKILLS) == expected
    for tool in tools:
        text = documents()[f"prompts/v1/tools/{tool}.md"]
        assert text.startswith(f"# Tool: {tool}\n")
        assert f'{{"tool": "{tool}", "args": ' in text


@pytest.mark.parametrize("name", sorted(skills()))
def test_front_matter(name: str) -> None:
    """Name, description and the exact class, in this order; then the headings in theirs."""
    match = _FRONT.fullmatch(skills()[name])
    assert match is not None
    stem, description, task_type, body = match.groups()
    assert (stem, task_type) == (slug(name), name)
    assert len(description) > 20
    assert [line for line in body.splitlines() if line.startswith("## ")] == _HEADINGS
    assert body.startswith(f"# {name}\n")


def test_the_default_has_front_matter_too() -> None:
    """It stands in for a class without a skill of its own."""
    assert _FRONT.fullmatch(documents()["skills/v1/_default.md"]) is not None


@pytest.mark.parametrize("path", sorted(documents()))
def test_bullets_are_unique(path: str) -> None:
    """An edit names its target by its words: no line may stand there twice."""
    bullets = Counter(
        line.strip() for line in documents()[path].splitlines() if line.lstrip().startswith("- ")
    )
    assert bullets
    assert [line for line, times in bullets.items() if times > 1] == []


@pytest.mark.parametrize("path", sorted(documents()))
def test_no_document_holds_a_region_or_an_odd_end(path: str) -> None:
    """Regions come with training; files end with one newline and hold no carriage return."""
    text = documents()[path]
    assert "<!--" not in text
    assert "-->" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\r" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
