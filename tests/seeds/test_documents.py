"""The first skills and prompts: what training starts from."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from actors.rollout.tools import TOOLS, tool_specs
from protocol.keys import slug
from protocol.llm import ToolSpec
from tests.seeds.committed import documents, questions, skills

_SKILLS = {path: text for path, text in documents().items() if path.startswith("skills/")}
_FRONT = re.compile(r"---\nname: (\S+)\ndescription: (\S.*)\ntask_type: (\S.*)\n---\n(.*)", re.S)
_TOOL_HEADINGS = ["## Input", "## Output", "## Advice"]
_HEADINGS = ["## When to use", "## Steps", "## Checks", "## Pitfalls"]


def test_there_is_a_skill_for_every_class_and_a_default() -> None:
    """And no other: a skill without a class would never be trained."""
    names = {slug(question.task_type) for question in questions()} | {"_default"}
    assert set(_SKILLS) == {f"skills/v1/{name}.md" for name in names}


def test_there_is_a_system_prompt_and_one_per_tool() -> None:
    """The tools of the agent's contract, those too that are off by default."""
    expected = {"prompts/v1/system.md", *(f"prompts/v1/tools/{tool}.md" for tool in TOOLS)}
    assert set(documents()) - set(_SKILLS) == expected


@pytest.mark.parametrize("spec", tool_specs(TOOLS, "ABCD"), ids=TOOLS)
def test_a_tool_prompt_names_every_argument(spec: ToolSpec) -> None:
    """And no other: what is not read would be sent for nothing."""
    text = documents()[f"prompts/v1/tools/{spec.name}.md"]
    assert text.startswith(f"# Tool: {spec.name}\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == _TOOL_HEADINGS
    arguments = set(json.loads(spec.parameters)["properties"])
    inputs = text.partition("## Input\n")[2].partition("Arguments: ")[0]
    assert set(re.findall(r"`(\w+)`", inputs)) == arguments
    assert set(re.findall(r'"(\w+)": ', text)) == arguments


@pytest.mark.parametrize("path", sorted(documents()))
def test_no_document_holds_what_could_be_copied_into_an_answer(path: str) -> None:
    """Seen with a small model: the example's node id and words came back as evidence."""
    text = documents()[path]
    assert re.findall(r"_L[123]_\d", text) == []
    assert re.findall(r'"answer": *"[A-H]"', text) == []
    assert re.findall(r'"(?:query|node_id|evidence|thought)": *"(?!\.\.\.)', text) == []


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
