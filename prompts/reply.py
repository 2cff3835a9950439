"""Reading a model's reply as a typed object.

Models wrap JSON in prose and fences, and fences inside JSON strings defeat regular
expressions. So every ``{`` that is not inside another decoded object is tried with a
real JSON scanner, and the largest object that decodes to the wanted type wins. After
an object was found the scan goes on behind it, and the characters read in vain are
bounded: the work is linear in the reply.

A smaller object never stands in for a larger one that is broken (cut off, badly
quoted) or that carries the wanted fields with wrong values: ``{"edits": []}`` quoted
in the prose before a damaged reply must not become an empty answer.
"""

from __future__ import annotations

import json
import re
from typing import Generic, TypeVar

import msgspec

__all__ = ["Decoded", "Unreadable", "close_brackets", "decode_reply", "reply_schema"]

T = TypeVar("T")
_WASTE = 16  # characters read in vain, as a multiple of the reply's length
_OPENING = re.compile(r'\{(?=\s{0,64}["}])')  # any other brace cannot begin a JSON object
_CLOSER = {"{": "}", "[": "]"}
_MOST_CLOSERS = 3
_scanner = json.JSONDecoder(strict=False)


class Decoded(msgspec.Struct, Generic[T], frozen=True):
    """The reply as an object of the wanted type."""

    value: T


class Unreadable(msgspec.Struct, frozen=True):
    """Why the reply could not be read: one sentence that can be sent back to the model."""

    problem: str


def decode_reply(text: str, wanted: type[T]) -> Decoded[T] | Unreadable:
    """Find the largest JSON object in ``text`` that decodes strictly to ``wanted``."""
    best: Decoded[T] | None = None
    best_size = 0
    broken = Unreadable("the reply holds no JSON object")
    broken_size = 0
    waste = _WASTE * len(text)
    opening = _OPENING.search(text)
    while opening is not None and waste > 0:
        position = opening.start()
        scanned = _scan(text, position)
        if isinstance(scanned, _Broken):
            size, following = scanned.size, position + 1
            # The exception counts the lines up to its position: not free in a long reply.
            waste -= scanned.read + len(text) // 1000
            failure: Unreadable | None = Unreadable(scanned.problem)
        else:
            size = scanned.end - position
            following = scanned.end
            found = _fit(scanned.value, wanted)
            failure = found if isinstance(found, Unreadable) else None
            if isinstance(found, Decoded):
                if size > best_size:
                    best, best_size = found, size
            elif not _resembles(scanned.value, wanted):
                # Some other object, quoted: it explains a failure, it does not cause one.
                size = min(size, best_size)
        if failure is not None and (size > broken_size or (best is None and broken_size == 0)):
            broken, broken_size = failure, size
        opening = _OPENING.search(text, following)
    if best is None or broken_size > best_size:
        return broken
    return best


def close_brackets(text: str) -> str:
    """The text with the closing brackets that its last object lacks, at most a few.

    Small models end a nested reply one brace early. Only for replies that ended by themselves
    (never for one cut at a length limit), and only where a wrong guess costs little: an action,
    not an edit. Unchanged if the text ends inside a string, or nothing is open.
    """
    trimmed = text.rstrip().removesuffix("```").rstrip()
    opening = _OPENING.search(trimmed)
    if opening is None:
        return text
    stack: list[str] = []
    inside, escaped = False, False
    for character in trimmed[opening.start() :]:
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in _CLOSER:
            stack.append(_CLOSER[character])
        elif stack and character == stack[-1]:
            stack.pop()
    if inside or not 0 < len(stack) <= _MOST_CLOSERS:
        return text
    return trimmed + "".join(reversed(stack))


def reply_schema(wanted: type[object]) -> str:
    """The JSON schema of a reply type as JSON text, its root an object and not a reference.

    Properties stand in the order of the fields: models write them in that order.
    """
    _, components = msgspec.json.schema_components([wanted], ref_template="#/$defs/{name}")
    schema = dict(components.pop(wanted.__name__))
    if components:
        schema["$defs"] = components
    return msgspec.json.encode(schema).decode("utf-8")


class _Found(msgspec.Struct, frozen=True):
    value: object
    end: int


class _Broken(msgspec.Struct, frozen=True):
    """size: characters that looked like JSON. read: characters that the attempt cost."""

    problem: str
    size: int
    read: int


def _scan(text: str, position: int) -> _Found | _Broken:
    rest = len(text) - position
    try:
        value, end = _scanner.raw_decode(text, position)
    except json.JSONDecodeError as error:
        size = error.pos - position
        read = rest if error.msg.startswith("Unterminated") else size + 1
        return _Broken(f"the JSON object is not valid: {error}", size, read)
    except RecursionError:
        return _Broken("the JSON object is nested too deeply", 1, rest)
    except ValueError as error:  # a number with too many digits
        return _Broken(f"the JSON object is not valid: {error}", rest, rest)
    return _Found(value, end)


def _fit(value: object, wanted: type[T]) -> Decoded[T] | Unreadable:
    try:
        converted = msgspec.convert(value, wanted)
        msgspec.json.encode(converted)
    except msgspec.ValidationError as error:
        return Unreadable(f"the JSON object does not fit: {error}")
    except UnicodeEncodeError:
        return Unreadable("the JSON object holds half of a surrogate pair")
    return Decoded(converted)


def _resembles(value: object, wanted: type[object]) -> bool:
    fields: tuple[str, ...] = getattr(wanted, "__struct_fields__", ())
    return isinstance(value, dict) and any(field in value for field in fields)
