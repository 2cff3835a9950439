"""Answers inside structure: JSON, tags, LaTeX boxes, calls written as text. Pure.

The submitted field alone counts; letters in other fields (a reflected candidate, the
reasoning) are never looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

__all__ = ["Found", "embedded_values", "submitted_value"]

_ANSWER_KEYS = (
    "final_answer",
    "finalanswer",
    "answer",
    "choice",
    "selected_option",
    "selected",
    "option",
    "letter",
    "label",
    "prediction",
    "response",
    "result",
)
_CONTENT_KEYS = ("text", "content", "value", "output")  # wrappers of some chat formats
_ACTION_KEYS = ("action", "function", "tool_call", "function_call", "tool_calls")
_ARGUMENT_KEYS = ("args", "arguments", "parameters", "input", "action_input")
_MAX_OBJECTS = 64
_scanner = json.JSONDecoder(strict=False)
_KEYS = r"(?:final[_ ]?answer|answer|choice|selected_option|prediction)"
_FRAGMENT = re.compile(
    rf"""["']{_KEYS}["']\s*:\s*(?:"([^"\n]*)"?|'([^'\n]*)'?|([^\s,}}"'][^,}}\n]*))""",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(answer|final_answer|final|ans)\b[^<>]*>", re.IGNORECASE)
_PARAMETER = re.compile(
    rf"""<parameter(?:\s+name)?\s*=\s*["']?{_KEYS}["']?\s*>(.*?)(?:</parameter>|$)""",
    re.IGNORECASE | re.DOTALL,
)
_BOX = re.compile(r"\\f?box(?:ed)?\s*\{")
_CALL = re.compile(
    r"\b(?:submit_answer|final_answer|submit|finish)(?:\(([^()]*)\)?|\[([^\[\]]*)\]?)",
    re.IGNORECASE,
)
_KEYWORD = re.compile(rf"""\b{_KEYS}\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^,]*))""", re.IGNORECASE)


class Found(msgspec.Struct, frozen=True):
    """A submitted JSON value; a Found with None is an explicit null."""

    value: object


def submitted_value(data: Mapping[object, object]) -> Found | None:
    """The answer that an object submits; None if it has no such field.

    A call (``action``/``args`` and their like) comes before an answer field beside it.
    """
    fields = {str(key).strip().casefold(): value for key, value in data.items()}
    for key in _ACTION_KEYS:
        inner = fields.get(key)
        if isinstance(inner, list) and inner:
            inner = inner[-1]
        if isinstance(inner, Mapping):
            return submitted_value(inner)
    for key in _ARGUMENT_KEYS:
        inner = fields.get(key)
        if isinstance(inner, Mapping):
            return submitted_value(inner)
    named = [fields[key] for key in _ANSWER_KEYS if key in fields]
    if named:
        return Found(next((value for value in named if value is not None), None))
    for key in (*_ARGUMENT_KEYS, *_CONTENT_KEYS):  # arguments may be JSON inside a string
        if key in fields:
            return Found(fields[key])
    if len(fields) == 1:
        ((key, value),) = fields.items()
        if len(key) == 1 and isinstance(value, str):  # {"B": "A red car."}
            return Found(f"{key.upper()}. {value}")
    return None


def embedded_values(text: str) -> Found | None:
    """The structured answer inside a text, the last one if there are several; None: none."""
    for finder in (_tagged, _boxed, _in_json, _called, _fragment):
        found = finder(text)
        if found is not None:
            return found
    return None


def _tagged(text: str) -> Found | None:
    parameters = list(_PARAMETER.finditer(text))
    if parameters:
        return Found(parameters[-1][1])
    tags = list(_TAG.finditer(text))
    if not tags:
        return None
    content = text[tags[-1].end() :]
    closing = re.search(rf"</{tags[-1][1]}\s*>", content, re.IGNORECASE)
    return Found(content[: closing.start()] if closing else content)


def _boxed(text: str) -> Found | None:
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    start = boxes[-1].end()
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return Found(_without_latex(text[start:position]))
    return Found(_without_latex(text[start:]))


def _without_latex(text: str) -> str:
    return re.sub(r"\\[a-zA-Z]+\s*", "", text).replace("{", "").replace("}", "")


def _in_json(text: str) -> Found | None:
    """The last object with an answer field; a text that is JSON as a whole decides alone."""
    if text[:1] not in "{[" and "{" not in text:
        return None
    try:
        whole: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict | list):
        return Found(whole)
    best: Found | None = None
    position = text.find("{")
    for _ in range(_MAX_OBJECTS):
        if position < 0:
            break
        try:
            value, end = _scanner.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        best = submitted_value(value) or best
        position = text.find("{", end)
    return best


def _called(text: str) -> Found | None:
    calls = list(_CALL.finditer(text))
    if not calls:
        return None
    inside = calls[-1][1] if calls[-1][1] is not None else calls[-1][2]
    keyword = _KEYWORD.search(inside)
    if keyword:
        return Found(next((group for group in keyword.groups() if group is not None), ""))
    return Found(inside.split(",")[0].strip())


def _fragment(text: str) -> Found | None:
    """A field of JSON that was cut or never was an object, Python's quotes included."""
    fields = list(_FRAGMENT.finditer(text))
    if not fields:
        return None
    return Found(next((group for group in fields[-1].groups() if group is not None), ""))
