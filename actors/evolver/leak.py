"""Does a text give a question away? (ALGORITHM.md section 1.)

A skill must not carry a question id, the text of an option of four words or more, or a
sentence of the evidence that states the gold answer: it would be right on these questions
and on no others. Words are compared, not characters: case, punctuation and line breaks do
not hide a quotation. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from protocol.dataset import Question

__all__ = ["Exposed", "find_leak", "sentences_with_gold"]

MIN_WORDS = 4
# Scripts without spaces: every character counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u9fff\uac00-\ud7af]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|[\r\n]+")


class Exposed(msgspec.Struct, frozen=True):
    """A question that the editor saw, and texts that the agent read about it."""

    question: Question
    evidence: tuple[str, ...]


def find_leak(text: str, exposed: Sequence[Exposed], known: str = "") -> str | None:
    """What the text gives away, in one sentence; None if nothing.

    known: the document as it stands: what it says already is no news.
    """
    said, before = _words(text), _words(known)
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


def sentences_with_gold(item: Exposed) -> tuple[str, ...]:
    """The sentences of the evidence that hold the gold option's words.

    Raises ValueError if the question has no option of its gold letter.
    """
    question = item.question
    position = ord(question.answer) - ord("A") if len(question.answer) == 1 else -1
    if not 0 <= position < len(question.options):
        raise ValueError(f"question {question.question_id} has no option {question.answer!r}")
    gold = _words(question.options[position])
    if not gold.strip():
        return ()
    return tuple(
        sentence
        for evidence in item.evidence
        for sentence in _SENTENCE.split(evidence)
        if gold in _words(sentence)
    )


def _words(text: str) -> str:
    """The words, folded, each between single spaces."""
    return f" {' '.join(_WORD.findall(unicodedata.normalize('NFKC', text).casefold()))} "


def _quotes(said: str, before: str, passage: str) -> bool:
    words = _words(passage)
    return words.count(" ") > MIN_WORDS and words in said and words not in before


def _quotes_id(text: str, question_id: str) -> bool:
    """Dashes of every kind are one, and invisible characters none."""
    text = "".join(
        "-" if unicodedata.category(c) == "Pd" else c
        for c in unicodedata.normalize("NFKC", text)
        if unicodedata.category(c) != "Cf"
    )
    pattern = rf"(?<![\w-]){re.escape(question_id)}(?![\w-])"
    return re.search(pattern, text, re.IGNORECASE) is not None
