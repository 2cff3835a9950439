"""Text before it is read: storable, without reasoning, in one normal form. Pure."""

from __future__ import annotations

import json
import re
import unicodedata

__all__ = ["as_text", "drop_reasoning", "normalise", "storable"]

_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")
_MAX_CHARS = 6_000  # of an answer; beyond: its first and its last half, so that reading is quick
_INVISIBLE = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0e\ufe0f\ufeff]"
)
_TAGS = r"(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)"
_CLOSED = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_CLOSING = re.compile(rf"</{_TAGS}\s*>", re.IGNORECASE)
_OPENING = re.compile(rf"<{_TAGS}\b[^>]*>", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\s*(?:<\|[^|>]*\|>)?", re.IGNORECASE)
_OTHER_CHANNEL = re.compile(r"<\|channel\|>\s*(?:analysis|commentary)", re.IGNORECASE)
_MODEL_TOKEN = re.compile(r"<\|[^|<>\n]{1,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn)>")
# Negative circled and squared letters (white on black) have no NFKC decomposition.
_ENCLOSED = {
    first + offset: chr(ord("A") + offset)
    for first in (0x1F150, 0x1F170, 0x1F1E6)
    for offset in range(26)
}


def storable(text: str) -> str:
    """The text as SQLite and UTF-8 can hold it: lone surrogates and NUL become U+FFFD (P0-4)."""
    return _UNSTORABLE.sub("\ufffd", text)


def as_text(value: object) -> str:
    """Any JSON value as storable text (row P0-4): a string as it is, the rest as JSON."""
    if isinstance(value, str):
        return storable(value)
    try:
        return storable(json.dumps(value, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError):
        # Numbers of thousands of digits and absurd nesting have no text worth keeping.
        return f"({type(value).__name__} that cannot be written as text)"


def drop_reasoning(text: str) -> str | None:
    """What was said after thinking; None: the thinking never ended.

    A lone closing tag counts (templates often pre-fill the opening one).
    """
    text = text.replace("◁", "<").replace("▷", ">")
    final = list(_FINAL_CHANNEL.finditer(text))
    if final:
        text = text[final[-1].end() :]
    elif _OTHER_CHANNEL.search(text):
        return None
    if _CLOSING.search(text):  # else the search for pairs would be quadratic for nothing
        text = _CLOSED.sub(" ", text)
    closing = list(_CLOSING.finditer(text))
    if closing:
        text = text[closing[-1].end() :]
    return None if _OPENING.search(text) else text


def normalise(text: str) -> str:
    """One form for many: NFKC, no invisible characters, enclosed letters as letters."""
    if len(text) > _MAX_CHARS:
        text = text[: _MAX_CHARS // 2] + "\n" + text[-_MAX_CHARS // 2 :]
    text = unicodedata.normalize("NFKC", _MODEL_TOKEN.sub(" ", storable(text)))
    return _INVISIBLE.sub("", text.translate(_ENCLOSED)).strip()
