"""Subtitle text as people read it: without the mark-up of subtitle files. Pure."""

from __future__ import annotations

import html
import re
import textwrap

__all__ = ["clean", "subtitle_lines"]

# SubRip text comes wrapped as <font color="white" size=".72c">...</font>; WebVTT has <c>, <v>.
_TAG = re.compile(r"</?(?:font|i|b|u|s|c|v|ruby|rt|lang|span)\b[^<>]*>", re.IGNORECASE)
_POSITION = re.compile(r"\{\\an?\d+\}")
_LINE_CHARS = 300


def clean(text: str) -> str:
    """The text without tags and character references; line breaks stay."""
    plain = html.unescape(_POSITION.sub("", _TAG.sub("", text)))
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return "\n".join(line for line in lines if line)


def subtitle_lines(text: str) -> list[str]:
    """The clean text as lines of at most 300 characters."""
    found: list[str] = []
    for line in clean(text).split("\n"):
        found += textwrap.wrap(line, _LINE_CHARS, break_on_hyphens=False)
    return found
