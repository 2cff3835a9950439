"""The request layout, and that nothing secret is in it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.rollout.library import library_of, skill_body
from actors.rollout.prompt import Material, opening_messages, opening_text, system_text
from actors.rollout.tools import ToolName, offered_tools
from protocol.dataset import PublicQuestion, Question
from protocol.documents import Document, Prompts, Skill
from tests.rollout.script import PROMPTS, QUESTION, SKILL, settings

SYSTEM = """\
# Agent

## Output format

One JSON object, like {"thought": ...}.

- Nothing else.

## How to work

- Think."""
OTHER = Skill(
    task_type="Counting Problem",
    text="---\nname: counting-problem\ndescription: Use it to count.\n"
    "task_type: Counting Problem\n---\n# Counting\n\n- One by one.\n",
)
GENERAL = Skill(task_type="_default", text="# No front matter\n")


def _material(
    prompts: Prompts = PROMPTS,
    tools: tuple[ToolName, ...] = ("view_node", "submit_answer"),
    *,
    manual: bool = False,
    native: bool = False,
) -> Material:
    return Material(
        prompts=prompts,
        skill=SKILL,
        others=(GENERAL, OTHER),
        tools=tools,
        manual=manual,
        native=native,
    )


def test_the_system_message_has_its_layout() -> None:
    assert system_text(_material()) == (
        "You answer questions about a video.\n\n# Tools\n\n"
        "view_node shows a node.\n\nsubmit_answer ends.\n\n"
        "# Strategy for this task type\n\n# Objects\n\n- Look twice.\n"
    )


def test_documents_of_tools_that_are_not_offered_are_left_out() -> None:
    """And a tool without a document is told by its form; other documents stay."""
    tools = (
        Document(name="house_rules", text="Knock first."),
        Document(name="observe_frame", text="observe_frame shows pictures."),
        Document(name="read_skill", text="read_skill reads."),
        Document(name="view_node", text="view_node shows a node."),
    )
    prompts = Prompts(version="v1", system="S.", tools=tools)
    blind = system_text(_material(prompts, offered_tools(settings())))
    assert "pictures" not in blind
    assert "read_skill" not in blind
    assert "view_node shows a node.\n\n# Tool: search_similar\n\nsearch_similar takes " in blind
    assert "\n\nKnock first.\n\n# Strategy" in blind
    seeing = settings(vision="inline", skill_routing="manual")
    both = system_text(_material(prompts, offered_tools(seeing), manual=True))
    assert "observe_frame shows pictures." in both
    assert "read_skill reads." in both


def test_with_manual_routing_the_agent_gets_a_list_and_no_label() -> None:
    """The class label is the benchmark's: with it the choice would be made."""
    system, first = opening_messages(_material(manual=True), QUESTION.public, "tree", "Budget.")
    assert isinstance(system.content, str)
    assert isinstance(first.content, str)
    assert system.content.endswith(
        "\n\n- counting-problem: Use it to count.\n- object-recognition: SECRET-FRONT\n"
        "- _default: _default"
    )
    assert "Look twice" not in system.content
    assert QUESTION.task_type not in first.content
    assert "Task type" not in first.content


def test_a_strategy_is_found_however_its_name_is_spelt() -> None:
    library = library_of((SKILL, OTHER, GENERAL, OTHER))
    assert library.names == ("counting-problem", "object-recognition", "_default")
    for name in ("object-recognition", "Object Recognition", " OBJECT RECOGNITION "):
        assert library.read(name) == "# Objects\n\n- Look twice.\n"
    assert library.read("") is None
    assert library.read("juggling") is None


def test_native_calls_replace_what_the_system_prompt_says_about_json() -> None:
    """Told of JSON, a model writes JSON into its text instead of calling."""
    prompts = Prompts(version="v1", system=SYSTEM, tools=PROMPTS.tools)
    text = system_text(_material(prompts, native=True))
    assert "JSON" not in text
    assert "## Output format\n\nCall exactly one tool per reply" in text
    assert "\n\n## How to work\n\n- Think.\n\n# Tools" in text
    assert SYSTEM in system_text(_material(prompts))
    bare = system_text(_material(native=True))
    assert bare.startswith("You answer questions about a video.\n\n## Output format\n\nCall ")


def test_the_first_user_message_has_its_layout() -> None:
    assert opening_text(QUESTION.public, "- n1 | L1", "Budget: 8 steps.", manual=False) == (
        "Video: -v1\nTask type: Object Recognition\n\n"
        "Question:\nWhat is shown?\n(second line)\n\n"
        "Options:\nA. A person walking a dog.\nB. A red car.\nC. A bunch of berries.\n"
        "D. A blue umbrella.\n\nVideo tree, top level:\n- n1 | L1\n\nBudget: 8 steps."
    )


def test_only_the_front_matter_of_a_skill_goes() -> None:
    assert skill_body("---\na: b\n---\n# X\n---\nrest\n") == "# X\n---\nrest\n"
    assert skill_body("---\r\na: b\r\n---\r\n\r\n# X") == "# X"
    assert skill_body("# X\n---\ny\n---\n") == "# X\n---\ny\n---\n"


def test_a_public_question_has_no_room_for_secrets() -> None:
    public = {field.name for field in msgspec.structs.fields(PublicQuestion)}
    assert public == {"video_id", "task_type", "question", "options"}


@given(answer=st.sampled_from("ABCD"), question_id=st.text(max_size=20))
def test_gold_and_id_change_no_byte_of_the_request(answer: str, question_id: str) -> None:
    other: Question = msgspec.structs.replace(
        QUESTION, answer=answer, question_id=question_id, domain="x", sub_category="y"
    )
    shown = opening_messages(_material(), other.public, "tree", "b")
    assert shown == opening_messages(_material(), QUESTION.public, "tree", "b")
    assert "SECRET" not in msgspec.json.encode(shown).decode()
