"""Does a text give a question away? (ALGORITHM.md section 1.)

A skill must not carry a question id, the text of an option of four words or more, or a
sentence of the evidence that states the gold answer: it would be right on these questions
and on no others. Letters are compared, in the order of the words: case, accents, punctuation,
line breaks, full-width and invisible characters do not hide a quotation. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from actors.evolver.plain import plain
from protocol.dataset import Question

__all__ = ["Exposed", "find_leak", "sentences_with_gold"]

MIN_WORDS = 4
# Scripts without spaces: every character counts as a word.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|[\r\n]+")
_DASHES = re.compile("[\u2014\u2015\u2e3a\u2e3b]")  # between words, never inside an id


class Exposed(msgspec.Struct, frozen=True):
    """A question that the editor saw, and texts that the agent read about it."""

    question: Question
    evidence: tuple[str, ...]


class _Words:
    """A text as its words, folded, with nothing between them but a sign behind digits: 1, 2, 3
    is not 123."""

    def __init__(self, text: str) -> None:
        words = [
            word + "\0" if word[-1].isdigit() else word
            for word in _WORD.findall(unicodedata.normalize("NFC", plain(text)).casefold())
        ]
        self.letters = "".join(words)
        self.count = len(words)
        self._borders = {0}
        end = 0
        for word in words:
            end += len(word)
            self._borders.add(end)

    def places(self, passage: _Words) -> list[int]:
        """Where the passage's words stand, beginning and ending where words here do."""
        found: list[int] = []
        size = len(passage.letters)
        start = self.letters.find(passage.letters) if size else -1
        while start >= 0:
            if start in self._borders and start + size in self._borders:
                found.append(start)
            start = self.letters.find(passage.letters, start + 1)
        return found


def find_leak(text: str, exposed: Sequence[Exposed], known: str = "") -> str | None:
    """What the text gives away, in one sentence; None if nothing.

    known: the document as it stands: what it says already is no news.
    """
    said, before = _Words(text), _Words(known)
    for item in exposed:
        question = item.question
        if _quotes_id(text, question.question_id):
            return f"it quotes the question id {question.question_id}"
        for option in question.options:
            if _quotes(said, before, option):
                return f"it quotes an option of {question.question_id}"
        for sentence in sentences_with_gold(item):
            if _quotes(said, before, sentence):
                return f"it quotes the evidence of {question.question_id}"
    return None


@lru_cache(maxsize=256)
def sentences_with_gold(item: Exposed) -> tuple[str, ...]:
    """The sentences of the evidence that hold the gold option's words.

    One that is too short to be known again is given with the sentence before it, and with the
    one behind it: what looks like its end may be an abbreviation's.
    Raises ValueError if the question has no option of its gold letter.
    """
    question = item.question
    position = ord(question.answer) - ord("A") if len(question.answer) == 1 else -1
    if not 0 <= position < len(question.options):
        raise ValueError(f"question {question.question_id} has no option {question.answer!r}")
    gold = _Words(question.options[position])
    return tuple(sentence for evidence in item.evidence for sentence in _around(evidence, gold))


def _around(evidence: str, gold: _Words) -> list[str]:
    """The sentences that the gold option's words stand in, each once."""
    pieces = [piece for piece in _SENTENCE.split(evidence) if piece.strip()]
    words = [_Words(piece) for piece in pieces]
    ends: list[int] = []
    for piece in words:
        ends.append((ends[-1] if ends else 0) + len(piece.letters))
    spans: dict[tuple[int, int], None] = {}
    for start in _Words("\n".join(pieces)).places(gold):
        first = bisect_right(ends, start)
        last = bisect_left(ends, start + len(gold.letters))
        spans[first, last] = None
        if sum(piece.count for piece in words[first : last + 1]) < MIN_WORDS:
            spans[max(0, first - 1), last] = None
            spans[first, min(len(pieces) - 1, last + 1)] = None
    return [" ".join(pieces[first : last + 1]).strip() for first, last in spans]


def _quotes(said: _Words, before: _Words, passage: str) -> bool:
    words = _Words(passage)
    return words.count >= MIN_WORDS and bool(said.places(words)) and not before.places(words)


def _quotes_id(text: str, question_id: str) -> bool:
    """Whether the id stands there by itself: ``q-1`` is not in ``q-12``, nor in ``q-1-2``.

    Dashes of every kind are one, and a line may break behind them.
    """
    seen = plain(_DASHES.sub(" ", text)).replace("\\", "").casefold()
    parts = (re.escape(part) for part in plain(question_id).casefold().split("-"))
    pattern = r"\s*-\s*".join(parts)
    return re.search(rf"(?<![a-z0-9])(?<![a-z0-9]-){pattern}(?![a-z0-9]|-[0-9])", seen) is not None
