"""Reading a model's reply as a typed object.

Models wrap JSON in prose and fences, and fences inside JSON strings defeat regular
expressions. So every ``{`` that is not inside another decoded object is tried with a
real JSON scanner, and the largest object that decodes to the wanted type wins. The
scan is linear: after an object was found it goes on behind it.
"""

from __future__ import annotations

import json
from typing import Generic, TypeVar

import msgspec

__all__ = ["Decoded", "Unreadable", "decode_reply"]

T = TypeVar("T")
_MAX_OBJECTS = 64
_scanner = json.JSONDecoder(strict=False)


class Decoded(msgspec.Struct, Generic[T], frozen=True):
    """The reply as an object of the wanted type."""

    value: T


class Unreadable(msgspec.Struct, frozen=True):
    """Why the reply could not be read: one sentence that can be sent back to the model."""

    problem: str


def decode_reply(text: str, wanted: type[T]) -> Decoded[T] | Unreadable:
    """Find the largest JSON object in ``text`` that decodes strictly to ``wanted``."""
    best: T | None = None
    best_size = -1
    problem = "the reply holds no JSON object"
    position = text.find("{")
    for _ in range(_MAX_OBJECTS):
        if position < 0:
            break
        try:
            raw, end = _scanner.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            if best is None:
                problem = f"the JSON object is not valid: {error}"
            position = text.find("{", position + 1)
            continue
        try:
            value = msgspec.convert(raw, wanted)
        except msgspec.ValidationError as error:
            if best is None:
                problem = f"the JSON object does not fit: {error}"
        else:
            if end - position > best_size:
                best, best_size = value, end - position
        position = text.find("{", end)
    return Unreadable(problem) if best is None else Decoded(best)
