"""From what an agent submitted to a letter: the one extractor of the product.

Pure, and total: any JSON value gives a ``Letter`` or a ``NoAnswer``, nothing raises, and
no letter is ever made up. The rules, by example: ``tests/rollout/cases/answers.json``.
In order: the submitted field of structured values, a letter alone, the text of exactly
one option, then the last explicit statement of a sentence (``answer_prose``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from actors.rollout.answer_options import OptionTexts
from actors.rollout.answer_prose import read_prose
from actors.rollout.answer_structured import embedded_values, submitted_value
from actors.rollout.answer_text import as_text, drop_reasoning, normalise
from actors.rollout.answer_types import Letter, NoAnswer, Reading

__all__ = ["Letter", "NoAnswer", "Reading", "as_text", "extract", "rescore"]

_MAX_DEPTH = 6
_BLANK_WORDS = frozenset({"none", "null", "nil", "nan", "na", "n/a", "undefined", "unknown", "-"})
_FAILURE = re.compile(
    r"^\W*(?:(?:\w+ )?\w*error\b|exception\b|traceback\b|failed to\b|failure\b|http \d{3}\b|"
    r"timed? ?out\b|(?:request failed|invalid request)\b|api call failed\b|"
    r"工具执行错误|未知工具|\W*\w*错误\])",
    re.IGNORECASE,
)
# What may surround a lone letter: quotes, brackets, mark-up, final punctuation, bullets.
_AROUND = " \t\r\n\"'`´“”‘’„«»‹›「」『』【】《》〈〉()[]{}<>.,:;!?*_#|~$\\/=–—-•·→。、"


def extract(submitted: object, options: Sequence[str]) -> Reading:
    """Read the letter out of a submitted JSON value.

    options: bodies, with or without the labels of their positions; their number says
        which letters exist. Numbers are never positions; a number may be an option's
        text. Booleans, null, two letters, ties and refusals are no answer.
    """
    return _read(submitted, OptionTexts(options), 0)


def rescore(text: object, options: Sequence[str]) -> dict[str, str]:
    """``extract`` as a row for the command line: ``letter`` (or ``no answer``) and ``why``."""
    reading = extract(text, options)
    letter = reading.letter if isinstance(reading, Letter) else "no answer"
    return {"letter": letter, "why": reading.why}


def _read(value: object, options: OptionTexts, depth: int) -> Reading:
    if depth > _MAX_DEPTH:
        return NoAnswer("nested too deeply")
    if isinstance(value, str):
        return _read_text(value, options, depth)
    if value is None:
        return NoAnswer("nothing was submitted")
    if isinstance(value, bool):
        return NoAnswer("a boolean is not an option")
    if isinstance(value, int | float):
        exact = _read_exact(as_text(value), options)
        return exact or NoAnswer("a number that is not an option's text")
    if isinstance(value, Mapping):
        found = submitted_value(value)
        if found is None:
            return NoAnswer("an object without an answer field")
        return _read(found.value, options, depth + 1)
    if isinstance(value, Sequence):
        return _read_list(value, options, depth)
    return NoAnswer("not a JSON value")


def _read_list(values: Sequence[object], options: OptionTexts, depth: int) -> Reading:
    """All elements must say the same; blank ones say nothing."""
    said = [value for value in values if value is not None and value != ""]
    if not said:
        return NoAnswer("an empty list")
    readings = [_read(value, options, depth + 1) for value in said[:100]]
    letters = {reading.letter if isinstance(reading, Letter) else None for reading in readings}
    if len(letters) > 1:
        return NoAnswer("a list of different answers")
    return readings[0]


def _read_text(raw: str, options: OptionTexts, depth: int) -> Reading:
    spoken = drop_reasoning(raw)
    if spoken is None:
        return NoAnswer("the reasoning was cut off before an answer")
    text = normalise(spoken)
    if not text:
        return NoAnswer("blank")
    found = embedded_values(text)
    if found is not None:
        return _read(found.value, options, depth + 1)
    alone = text.strip(_AROUND)
    if len(alone) == 1 and alone.upper() in options.letters:
        return Letter(alone.upper(), "a letter alone")
    exact = _read_exact(spoken, options)
    if exact is not None:
        return exact
    if alone.casefold() in _BLANK_WORDS or not alone:
        return NoAnswer("blank")
    if _FAILURE.match(text):
        return NoAnswer("an error message")
    return read_prose(text, options)


def _read_exact(text: str, options: OptionTexts) -> Reading | None:
    """The whole text is a label with its own text, or an option's text; None: neither."""
    label = options.labelled(text)
    if label is not None:
        return Letter(label, "a label with its text")
    letters = options.exact(text)
    if not letters:
        return None
    if len(letters) > 1:
        return NoAnswer("the text of several identical options")
    return Letter(letters[0], "the text of one option")
