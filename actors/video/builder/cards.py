"""Cards: what a vision model is asked about a node, and how its reply is read. Pure.

The fields are those of the owner's trees. A frame is described from its picture, an event from
the cards of its frames, a scene from those of its events; what is said is given to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from actors.video.tree import SUMMARY_FIELDS, Level
from prompts.reply import Unreadable, close_brackets, decode_reply
from prompts.templates import Template
from protocol.llm import ChatMessage, ImagePart, TextPart

__all__ = [
    "TEMPLATES",
    "Card",
    "ask_again",
    "card_schema",
    "plain_card",
    "question",
    "read_card",
    "time_text",
]

Card: TypeAlias = dict[str, str | list[str]]
TEMPLATES: Mapping[Level, str] = {1: "caption_scene", 2: "caption_event", 3: "caption_frame"}

_TEXT, _LIST = "text", "list"
_FIELDS: Mapping[Level, Mapping[str, str]] = {
    1: {
        "scene_summary": _TEXT,
        "main_setting": _TEXT,
        "key_entities": _LIST,
        "main_actions": _LIST,
        "topic_keywords": _LIST,
        "temporal_flow": _TEXT,
        "visible_text": _LIST,
    },
    2: {
        "event_description": _TEXT,
        "entities": _LIST,
        "actions": _LIST,
        "action_subjects": _LIST,
        "spatial_relations": _LIST,
        "state_changes": _LIST,
        "visible_text": _LIST,
    },
    3: {
        "frame_summary": _TEXT,
        "visible_entities": _LIST,
        "ongoing_actions": _LIST,
        "spatial_layout": _TEXT,
        "visual_attributes": _LIST,
        "visible_text": _LIST,
    },
}
# What is taken is wider than what is asked for: a text for a list, null for nothing.
_Value: TypeAlias = str | list[str] | None
_REPLIES: Mapping[Level, type[msgspec.Struct]] = {
    level: msgspec.defstruct(
        f"Card{level}",
        [(SUMMARY_FIELDS[level], str)]
        + [(name, _Value, None) for name in fields if name != SUMMARY_FIELDS[level]],
        frozen=True,
    )
    for level, fields in _FIELDS.items()
}
_SUBTITLE_CHARS = 6000
_CHILD_CHARS = 2000
_PLAIN_CHARS = 300


def card_schema(level: Level) -> str:
    """The JSON schema of a card, as JSON text, for endpoints that can hold a model to it."""
    kinds = {_TEXT: {"type": "string"}, _LIST: {"type": "array", "items": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {name: kinds[kind] for name, kind in _FIELDS[level].items()},
        "required": list(_FIELDS[level]),
        "additionalProperties": False,
    }
    return msgspec.json.encode(schema).decode("utf-8")


def question(
    level: Level,
    template: Template,
    *,
    start_s: float,
    end_s: float,
    subtitle: str,
    children: Sequence[tuple[str, Card]] = (),
    picture: str | None = None,
) -> tuple[ChatMessage, ...]:
    """What the model is asked about a node.

    children: time range and card of each node below. picture: a data URL; of level 3 only.
    """
    values = {
        "time_range": time_text(start_s, end_s),
        "subtitle": _cut(subtitle, _SUBTITLE_CHARS) or "(nothing)",
    }
    if level == 3:
        assert picture is not None, "a frame is described from its picture"
        parts = (TextPart(text=template.fill(**values)), ImagePart(url=picture))
        return (ChatMessage(role="user", content=parts),)
    told = "\n".join(
        f"{when}: {_cut(msgspec.json.encode(card).decode(), _CHILD_CHARS)}"
        for when, card in children
    )
    return (ChatMessage(role="user", content=template.fill(children=told, **values)),)


def read_card(level: Level, template: Template, text: str) -> Card | Unreadable:
    """The card of a reply: its known fields, blanks and empty fields left out."""
    decoded = decode_reply(text, _REPLIES[level])
    if isinstance(decoded, Unreadable):
        closed = decode_reply(close_brackets(text), _REPLIES[level])
        if isinstance(closed, Unreadable):
            return decoded
        decoded = closed
    card: Card = {}
    for name, kind in _FIELDS[level].items():
        value = cast("_Value", getattr(decoded.value, name))
        texts = [value] if isinstance(value, str) else value or []
        kept = [stripped for text in texts if (stripped := text.strip())]
        if kept:
            card[name] = kept if kind == _LIST else "; ".join(kept)
    summary = card.get(SUMMARY_FIELDS[level])
    if summary is None:
        return Unreadable(f"{SUMMARY_FIELDS[level]} is empty")
    if summary in template.illustration:
        return Unreadable(f"{SUMMARY_FIELDS[level]} is the example's")
    return card


def ask_again(
    messages: tuple[ChatMessage, ...], said: str, problem: str
) -> tuple[ChatMessage, ...]:
    """The question once more, after a reply that could not be read."""
    return (
        *messages,
        ChatMessage(role="assistant", content=said or "(empty reply)"),
        ChatMessage(
            role="user",
            content=f"Your reply could not be read: {problem}. Reply with the one JSON object.",
        ),
    )


def plain_card(level: Level, start_s: float, end_s: float, subtitle: str) -> Card:
    """The card of a node that nobody described: it says so, and what is heard."""
    said = " ".join(subtitle.split())
    heard = f"Said: {_cut(said, _PLAIN_CHARS)}" if said else "Nothing is said."
    return {SUMMARY_FIELDS[level]: f"({time_text(start_s, end_s)}, not described) {heard}"}


def time_text(start_s: float, end_s: float) -> str:
    """``65-92.5 s``."""
    return f"{_seconds(start_s)}-{_seconds(end_s)} s"


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
