"""The two ends of reading an answer."""

from __future__ import annotations

import msgspec

__all__ = ["Letter", "NoAnswer", "Reading"]


class Letter(msgspec.Struct, frozen=True):
    """A valid letter. why: the rule that found it, in words."""

    letter: str
    why: str


class NoAnswer(msgspec.Struct, frozen=True):
    """No letter: wrong, but counted apart. why: what stands in the way, in words."""

    why: str


Reading = Letter | NoAnswer
