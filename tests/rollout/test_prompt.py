"""The request layout, and that nothing secret is in it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.rollout.prompt import opening_messages, opening_text, skill_body, system_text
from protocol.dataset import PublicQuestion, Question
from tests.rollout.script import PROMPTS, QUESTION, SKILL


def test_the_system_message_has_its_layout() -> None:
    assert system_text(PROMPTS, SKILL) == (
        "You answer questions about a video.\n\n# Tools\n\n"
        "view_node shows a node.\n\nsubmit_answer ends.\n\n"
        "# Strategy for this task type\n\n# Objects\n\n- Look twice.\n"
    )


def test_the_first_user_message_has_its_layout() -> None:
    assert opening_text(QUESTION.public, "- n1 | L1") == (
        "Video: -v1\nTask type: Object Recognition\n\n"
        "Question:\nWhat is shown?\n(second line)\n\n"
        "Options:\nA. A person walking a dog.\nB. A red car.\nC. A bunch of berries.\n"
        "D. A blue umbrella.\n\nVideo tree, top level:\n- n1 | L1"
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
    shown = opening_messages(PROMPTS, SKILL, other.public, "tree")
    assert shown == opening_messages(PROMPTS, SKILL, QUESTION.public, "tree")
    assert "SECRET" not in msgspec.json.encode(shown).decode()
