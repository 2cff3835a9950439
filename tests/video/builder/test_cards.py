"""Cards: in step with the prompts, read from whatever a model says, honest where nobody did."""

from __future__ import annotations

import json
from typing import cast

import pytest

from actors.video.builder.cards import (
    TEMPLATES,
    ask_again,
    card_schema,
    plain_card,
    question,
    read_card,
)
from actors.video.tree import SUMMARY_FIELDS, Level
from prompts.reply import Unreadable
from prompts.templates import load_templates
from protocol.llm import ImagePart, TextPart

PROMPTS = load_templates(TEMPLATES.values())
LEVELS: tuple[Level, ...] = (1, 2, 3)


def example(level: Level) -> str:
    text = PROMPTS[TEMPLATES[level]].text
    (line,) = [line for line in text.splitlines() if line.startswith('{"')]
    return line


def read(level: Level, text: str) -> object:
    return read_card(level, PROMPTS[TEMPLATES[level]], text)


@pytest.mark.parametrize("level", LEVELS)
def test_prompt_schema_and_reader_have_the_same_fields(level: Level) -> None:
    schema = json.loads(card_schema(level))
    shown = json.loads(example(level))
    assert list(shown) == schema["required"] == list(schema["properties"])
    assert next(iter(shown)) == SUMMARY_FIELDS[level]
    for name in shown:
        kind = "array" if isinstance(shown[name], list) else "string"
        assert schema["properties"][name]["type"] == kind
        assert f"`{name}`" in PROMPTS[TEMPLATES[level]].text
    told = {name: ["a"] if isinstance(value, list) else "a" for name, value in shown.items()}
    assert read(level, json.dumps(told)) == told


@pytest.mark.parametrize("level", LEVELS)
def test_a_reply_is_read_tolerantly(level: Level) -> None:
    """Fences, a text for a list, null, blanks, fields nobody asked for, a lost brace."""
    summary = SUMMARY_FIELDS[level]
    text = json.dumps({summary: " A cat. ", "visible_text": "EXIT", "mood": "calm"})
    assert read(level, f"Sure!\n```json\n{text}\n```") == {
        summary: "A cat.",
        "visible_text": ["EXIT"],
    }
    assert read(level, json.dumps({summary: "x", "visible_text": None})) == {summary: "x"}
    assert read(level, json.dumps({summary: "x", "visible_text": ["", " "]})) == {summary: "x"}
    assert read(level, text[:-1]) == {summary: "A cat.", "visible_text": ["EXIT"]}


@pytest.mark.parametrize("level", LEVELS)
def test_a_reply_that_says_nothing_is_unreadable(level: Level) -> None:
    summary = SUMMARY_FIELDS[level]
    for text in ("", "A cat.", "[]", json.dumps({summary: " "}), json.dumps({summary: 3}), "{}"):
        assert isinstance(read(level, text), Unreadable)
    assert isinstance(read(level, example(level)), Unreadable)  # the example, sent back


def test_a_frame_is_shown_with_what_is_said_and_events_with_their_frames() -> None:
    (message,) = question(
        3, PROMPTS["caption_frame"], start_s=1, end_s=2.5, subtitle="Hi.", picture="data:x"
    )
    text, picture = cast("tuple[TextPart, ImagePart]", message.content)
    assert picture.url == "data:x"
    assert "Time range: 1-2.5 s" in text.text
    assert "<<<SUBTITLE\nHi.\nSUBTITLE>>>" in text.text
    (message,) = question(
        2,
        PROMPTS["caption_event"],
        start_s=0,
        end_s=30,
        subtitle="",
        children=[("0-15 s", {"frame_summary": "A {{subtitle}}."}), ("15-30 s", {})],
    )
    assert '0-15 s: {"frame_summary":"A {{subtitle}}."}\n15-30 s: {}' in cast(
        "str", message.content
    )
    assert "(nothing)" in cast("str", message.content)


def test_long_material_is_cut() -> None:
    (message,) = question(
        1,
        PROMPTS["caption_scene"],
        start_s=0,
        end_s=300,
        subtitle="s" * 50_000,
        children=[("0-30 s", {"event_description": "e" * 50_000})] * 10,
    )
    assert len(cast("str", message.content)) < 35_000


def test_an_unreadable_reply_is_told_what_is_wrong_with_it() -> None:
    asked = question(2, PROMPTS["caption_event"], start_s=0, end_s=1, subtitle="")
    again = ask_again(asked, "", "no JSON object")
    assert [message.role for message in again] == ["user", "assistant", "user"]
    assert again[1].content
    assert "no JSON object" in cast("str", again[2].content)


@pytest.mark.parametrize("level", LEVELS)
def test_a_node_that_nobody_described_says_so(level: Level) -> None:
    card = plain_card(level, 65.0, 92.25, "One.\nTwo.")
    assert card == {SUMMARY_FIELDS[level]: "(65-92.2 s, not described) Said: One. Two."}
    assert "Nothing is said." in str(plain_card(level, 0, 1, " "))
    assert len(str(plain_card(level, 0, 1, "x" * 1000))) < 400
