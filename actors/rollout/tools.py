"""The agent's tools: which are offered, what they take, and how that is told to a model. Pure.

What a tool is good for stands in its document (``prompts/vN/tools``), which training may change.
What it takes stands here and nowhere else: the reply schema, the native tool specifications and
the texts of complaints are all made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from prompts.question import letter_of
from protocol.llm import ToolSpec
from protocol.settings import AgentSettings

__all__ = [
    "TOOLS",
    "ToolName",
    "form_of",
    "letters_of",
    "offered_tools",
    "reply_schema",
    "tool_specs",
]

ToolName = Literal[
    "view_node",
    "search_similar",
    "search_subtitles",
    "observe_frame",
    "read_skill",
    "submit_answer",
]
Json = dict[str, object]


class _Field(msgspec.Struct, frozen=True):
    """An argument. kind: its JSON schema without null."""

    kind: Json
    meaning: str
    optional: bool = False


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_IDS: Json = {
    "type": "array",
    "items": {"type": "string"},
}  # no bounds: not every server knows them

# In the order in which an agent gets to know them; arguments in the order of writing, so that
# reasons come before the decision.
_ARGUMENTS: Mapping[ToolName, Mapping[str, _Field]] = {
    "view_node": {"node_id": _Field(_TEXT, "id of a node, as it was shown")},
    "search_similar": {
        "query": _Field(_TEXT, "a few telling words"),
        "k": _Field({"type": "integer"}, "how many nodes", optional=True),
    },
    "search_subtitles": {
        "query": _Field(_TEXT, "words that are spoken; may be empty with a time range"),
        "start_s": _Field(_NUMBER, "from this second", optional=True),
        "end_s": _Field(_NUMBER, "to this second", optional=True),
    },
    "observe_frame": {
        "node_ids": _Field(_IDS, "one to four key frames (level 3), or one event (level 2)"),
        "question": _Field(_TEXT, "what you want to know from the pictures"),
    },
    "read_skill": {"name": _Field(_TEXT, "a name from the list of strategies")},
    "submit_answer": {
        "evidence": _Field(_TEXT, "what proves the answer, and where it stands"),
        "reasoning": _Field(_TEXT, "how the evidence leads to the option"),
        "answer": _Field(_TEXT, "the letter of one option"),
        "confidence": _Field(_NUMBER, "probability from 0 to 1 that the option is right"),
    },
}
_PURPOSE: Mapping[ToolName, str] = {
    "view_node": "Open a node of the video tree.",
    "search_similar": "Find nodes by what their cards and subtitles say.",
    "search_subtitles": "Find what is said, by words or in a time range.",
    "observe_frame": "Look at the pictures of key frames.",
    "read_skill": "Read the strategy for a kind of question.",
    "submit_answer": "Give the answer; this ends the question.",
}
TOOLS: tuple[ToolName, ...] = tuple(_ARGUMENTS)


def offered_tools(settings: AgentSettings) -> tuple[ToolName, ...]:
    """The tools that an agent of these settings has."""
    absent = set()
    if settings.vision == "none":
        absent.add("observe_frame")
    if settings.skill_routing == "oracle":
        absent.add("read_skill")
    return tuple(tool for tool in TOOLS if tool not in absent)


def letters_of(options: Sequence[str]) -> str:
    """The letters of a question's options: ``ABCD``."""
    return "".join(letter_of(place) for place in range(len(options)))


def form_of(tool: ToolName) -> str:
    """What a tool takes, in words."""
    parts = [
        f"{name} ({field.meaning}{'; optional' if field.optional else ''})"
        for name, field in _ARGUMENTS[tool].items()
    ]
    return f"{tool} takes {', '.join(parts)}"


@lru_cache(maxsize=256)
def reply_schema(tools: tuple[ToolName, ...], letters: str, skills: tuple[str, ...] = ()) -> str:
    """The JSON schema of a reply, as JSON text, for endpoints that can hold a model to it.

    Properties stand in the order in which they should be written: the thought before the action,
    the tool before its arguments. letters: those that exist. skills: what ``read_skill`` knows.
    """
    calls = [
        _object(
            {"tool": {"type": "string", "enum": [tool]}, "args": _strict(tool, letters, skills)}
        )
        for tool in tools
    ]
    action = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return _text(_object({"thought": {"type": "string"}, "action": action}))


@lru_cache(maxsize=256)
def tool_specs(
    tools: tuple[ToolName, ...], letters: str, skills: tuple[str, ...] = ()
) -> tuple[ToolSpec, ...]:
    """The tools for an endpoint's own tool calls. Arguments as of ``reply_schema``."""
    specs = []
    for tool in tools:
        fields = _ARGUMENTS[tool]
        parameters: Json = {
            "type": "object",
            "properties": {
                name: _narrowed(name, field, letters, skills) | {"description": field.meaning}
                for name, field in fields.items()
            },
            "required": [name for name, field in fields.items() if not field.optional],
            "additionalProperties": False,
        }
        specs.append(ToolSpec(name=tool, description=_PURPOSE[tool], parameters=_text(parameters)))
    return tuple(specs)


def _strict(tool: ToolName, letters: str, skills: tuple[str, ...]) -> Json:
    """Arguments that are all required, the optional ones may be null: what strict servers want."""
    properties: Json = {}
    for name, field in _ARGUMENTS[tool].items():
        kind = _narrowed(name, field, letters, skills)
        properties[name] = {**kind, "type": [kind["type"], "null"]} if field.optional else kind
    return _object(properties)


def _narrowed(name: str, field: _Field, letters: str, skills: tuple[str, ...]) -> Json:
    if name == "answer":
        return {**field.kind, "enum": list(letters)}
    if name == "name" and skills:
        return {**field.kind, "enum": list(skills)}
    return dict(field.kind)


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(schema: Json) -> str:
    return msgspec.json.encode(schema).decode("utf-8")
