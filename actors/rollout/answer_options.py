"""The options of a question, prepared for matching. Pure."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

from actors.rollout.answer_text import normalise

__all__ = ["OptionTexts", "fold", "without_article"]

_OUTSIDE = " \t\n\"'`“”‘’«»*_.?!。"
_ARTICLE = re.compile(r"^(?:an?|the) (?=\S)")
_LABEL = re.compile(r"^\W*([A-Za-z])\s*[.):\]\-–—,]+\s*(?=\S)")
_QUOTES = str.maketrans({"“": '"', "”": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})
# Orders: circled numbers, or (a)(b)... and (1)(2)..., whatever stands between them.
_ITEM = re.compile(r"[①-⑳]|\([a-z0-9]\)", re.IGNORECASE)
_BETWEEN_ITEMS = re.compile(r"[\s,;、，.>→\-–—]*")


def fold(text: str) -> str:
    """A text as it is compared: case, spacing, quotes and final punctuation aside."""
    plain = " ".join(normalise(text).casefold().translate(_QUOTES).split())
    return plain.strip(_OUTSIDE)


def without_article(text: str) -> str:
    """A folded text without a leading a, an or the."""
    return _ARTICLE.sub("", text)


def _order(text: str) -> tuple[str, ...]:
    """The items of a text that lists an order and nothing else; empty for any other text."""
    items = _ITEM.findall(text)
    if len(items) < 2 or not _BETWEEN_ITEMS.fullmatch(_ITEM.sub("", text)):
        return ()
    return tuple(unicodedata.normalize("NFKC", item).strip("()").casefold() for item in items)


class OptionTexts:
    """Options by letter. letters: those that exist, ``ABCD`` for four options."""

    def __init__(self, options: Sequence[str]) -> None:
        self.letters = string.ascii_uppercase[: len(options)]
        bodies = _without_labels([str(option) for option in options[: len(self.letters)]])
        self.bodies = tuple(fold(body) for body in bodies)
        self._orders = tuple(_order(body) for body in bodies)

    def exact(self, text: str) -> tuple[str, ...]:
        """The letters whose option says exactly this; more than one for identical options."""
        folded = fold(text)
        if not folded:
            return ()
        order = _order(text)
        matches = (
            [body == folded for body in self.bodies],
            [without_article(body) == without_article(folded) for body in self.bodies],
            [bool(order) and order == own for own in self._orders],
        )
        for match in matches:
            if any(match):
                return tuple(letter for letter, hit in zip(self.letters, match, strict=True) if hit)
        return ()

    def labelled(self, text: str) -> str | None:
        """The letter of a text that is a label and the very text of that label's option."""
        plain = normalise(text)
        found = _LABEL.match(plain)
        if found is None or found[1].upper() not in self.letters:
            return None
        letter = found[1].upper()
        own = self.bodies[self.letters.index(letter)]
        rest = fold(plain[found.end() :])
        return letter if rest and without_article(rest) == without_article(own) else None


def _without_labels(options: Sequence[str]) -> list[str]:
    """Bodies: labels go only if every option carries that of its own position."""
    patterns = [
        re.compile(rf"^\s*\(?{letter}[.):]\s+(?=\S)")
        for letter, _ in zip(string.ascii_uppercase, options, strict=False)
    ]
    if all(pattern.match(option) for pattern, option in zip(patterns, options, strict=True)):
        return [pattern.sub("", option) for pattern, option in zip(patterns, options, strict=True)]
    return list(options)
