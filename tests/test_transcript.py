"""Rollouts as Markdown."""

from __future__ import annotations

import msgspec

from actors.rollout.outcome import Broken, Ended
from actors.rollout.record import outcome_row
from actors.transcript import render_messages, render_transcript
from protocol.llm import ChatMessage, ImagePart, TextPart, ToolCall
from protocol.rollout import Step
from tests.rollout.script import QUESTION, request

LOOK = Step(
    index=1,
    thought="I look.\nTwice.",
    tool="view_node",
    arguments='{"node_id": "n"}',
    observation="a sign:\n```\nOPEN\n```",
    raw="{}",
    node_ids=("n",),
    prompt_tokens=100,
    completion_tokens=10,
    seconds=1.25,
    notice="Step 1 of 8.",
    flags=("repeated",),
    dropped=2,
)
MUMBLE = msgspec.structs.replace(LOOK, index=2, tool=None, raw="hm", observation="What?", flags=())


def test_a_transcript_tells_everything() -> None:
    ended = Ended("C", "a letter alone", "C", 0.8, "submitted", (LOOK, MUMBLE), "steps")
    text = render_transcript(QUESTION, outcome_row(request(), ended, 3.0), ended.steps)
    assert text.startswith("# SECRET-QUESTION-ID: wrong (C, right is B, forced by steps)\n")
    assert "- B. A red car. **(right)**\n- C. A bunch of berries. **(answered)**" in text
    assert (
        "| unreadable replies | 1 |\n| repeated calls | 1 |\n| observations left out | 4 |" in text
    )
    assert "## 1. view_node (repeated, 2 observations left out)\n\n> I look.\n> Twice." in text
    assert "*Step 1 of 8.*\n\n````\na sign:\n```\nOPEN\n```\n````" in text
    assert "## 2. unreadable reply (2 observations left out)\n\n```\nhm\n```" in text
    assert text.endswith("## End\n\nsubmitted: a letter alone\n")


def test_a_missing_question_says_what_is_missing() -> None:
    broken = Broken("tree", "L3_000.jpg: no readable picture", (LOOK,))
    text = render_transcript(QUESTION, outcome_row(request(), broken, 3.0), broken.steps)
    assert text.startswith("# SECRET-QUESTION-ID: missing (tree)\n")
    assert text.endswith("missing: L3_000.jpg: no readable picture\n")


def test_messages_are_shown_as_they_are_sent() -> None:
    made = ToolCall(call_id="c", name="view_node", arguments="{}")
    picture = (TextPart(text="n, at 0 s:"), ImagePart(url="data:image/jpeg;base64,AAAA"))
    text = render_messages(
        [
            ChatMessage(role="assistant", content="", tool_calls=(made,)),
            ChatMessage(role="user", content=picture),
        ]
    )
    assert text == (
        "## assistant (calls view_node)\n\n```\nview_node {}\n```\n\n"
        "## user\n\n```\nn, at 0 s:\n[picture, 27 characters]\n```"
    )
