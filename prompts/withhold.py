"""Taking the answer out of texts that editors read. Pure.

The judge is told the gold answer and small models cannot keep it to themselves; trajectories
of right answers show it plainly. An editor that knows an answer writes it down. So three
things go out of a finding and of every text of a case: letters of options, texts of options of
four words or more, and the question's id.

Letters and long texts go whichever option they mean. If only the gold one went, it would be
the one that is missing. Too much is withheld rather than too little: "plan B" loses its B.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

import msgspec

from prompts.trajectory import clip
from protocol.dataset import Question
from protocol.rollout import Step

__all__ = [
    "AN_OPTION",
    "THE_QUESTION",
    "cleaned",
    "fitted",
    "without_answer",
    "without_letters",
]

AN_OPTION = "[an option]"
THE_QUESTION = "[this question]"
MIN_WORDS = 4
_SHORTEST_GOLD = 3  # "No" is a word of every finding
_SHORTEST_NUMBER = 2

Phrase = tuple[str, ...]
_ESCAPED_BLANK = re.compile(r"\\[nrt]")

# Scripts without spaces: every character counts as a word.
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_NODE_ID = r"(?<![\w-])[\w-]+_L\d+_\d+"
# A letter by itself: nothing beside it of which words with Latin letters are made; scripts without
# spaces may follow at once. "he'd" has no d by itself; a capital has no such excuse.
_IN_WORDS = "0-9A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f"
_ALONE = rf"(?<![{_IN_WORDS}])(?:[A-Z]|(?<![A-Za-z]['’])[a-z])(?![{_IN_WORDS}])"
_LETTER = re.compile(rf"{_NODE_ID}|{_ALONE}")
_ELISION = re.compile(r"['’][^\W\d_]{2}")  # d'une, c'est
_CALLED = re.compile(
    r"\b(?:option|choice|answer|letter|alternative)s?"
    r"(?:\s+(?:is|was|were|be|been|being))?[\s:=]*[\"'“‘(\[*`]*$",
    re.IGNORECASE,
)
_OPENING, _CLOSING = "([{\"'“‘*`_", ")]}\"'”’*`_"
_NEXT_WORD = re.compile(r"[ \t]+([^\W\d_][\w'’-]*)")
_NAMED_TWICE = re.compile(
    rf"\b(?:(?:option|choice|letter|alternative)\s+)+{re.escape(AN_OPTION)}", re.IGNORECASE
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What follows a letter and never an article.
_AFTER_A_LETTER = _words(
    """
    is was were are be been being has have had does did do isn't wasn't doesn't didn't
    would should could can cannot can't might may must will won't seems seemed looks looked
    shows showed says said states stated fits fitted matches matched means meant wins
    and or nor not but as because since so if when while where which who that than then
    instead rather over against before after with without to for from in on at by of into
    although though despite whereas unless until only also too even just still already
    it they he she this these those there here
    """
)
_SYMBOLS = (range(0x249C, 0x24EA), range(0xFF21, 0xFF5B), range(0x1D400, 0x1D800))
_MORE_SYMBOLS = (range(0x1F110, 0x1F16A), range(0x1F170, 0x1F18A))


def without_answer(text: str, question: Question) -> str:
    """A judge's finding without the answer: also without the gold text, however short it is.

    Only texts of one or two characters and numbers of one digit stay: those are ordinary words.
    """
    phrases = [*_long_options(question), *_short_gold(question)]
    return _clean(text, question, phrases)


def without_letters(text: str, question: Question) -> str:
    """A text of a case without letters of options, long option texts and the question's id.

    Short option texts stay: a trajectory is full of them, and they tell no answer.
    """
    return _clean(text, question, _long_options(question))


def fitted(text: str, question: Question, max_chars: int) -> str:
    """``without_letters``, in at most ``max_chars`` characters.

    What is cut in the middle of a word can leave a letter by itself, which is withheld as well.
    """
    cleaned = without_letters(text, question)
    if len(cleaned) <= max_chars:
        return cleaned
    return without_letters(clip(cleaned, max_chars - 2 * len(AN_OPTION)), question)[:max_chars]


def cleaned(step: Step, question: Question) -> Step:
    """The step without the answer; before anything is cut, for half an option text is not found."""

    def without(text: str) -> str:
        return without_letters(text, question)

    return msgspec.structs.replace(
        step,
        thought=without(step.thought),
        arguments=without(_ESCAPED_BLANK.sub(" ", step.arguments)),
        observation=without(step.observation),
        raw=without(_ESCAPED_BLANK.sub(" ", step.raw)),
    )


# -- the three things -------------------------------------------------------------------


def _clean(text: str, question: Question, phrases: Sequence[Phrase]) -> str:
    plain = _plain(text)
    plain = _without_id(plain, question.question_id)
    plain = _without_phrases(plain, phrases)
    letters = string.ascii_uppercase[: len(question.options)]
    # Until nothing is left to take: with what was taken gone, an "a" that was an article may be a
    # letter for whoever reads the text next. Every round takes a letter or a word away.
    while (taken := _without_letters(plain, letters)) != plain:
        plain = taken
    return plain


def _without_letters(text: str, letters: str) -> str:
    return _NAMED_TWICE.sub(AN_OPTION, _LETTER.sub(lambda found: _letter(found, letters), text))


def _plain(text: str) -> str:
    """Without invisible characters, and with circled and wide letters as plain ones."""
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return visible.translate(_LETTER_SYMBOLS)


def _letter_symbols() -> dict[int, str]:
    found: dict[int, str] = {}
    for code in (code for block in (*_SYMBOLS, *_MORE_SYMBOLS) for code in block):
        folded = unicodedata.normalize("NFKC", chr(code))
        if 0x1F150 <= code < 0x1F16A or 0x1F170 <= code < 0x1F18A:  # no decomposition is defined
            folded = chr(ord("A") + (code - (0x1F150 if code < 0x1F16A else 0x1F170)))
        if re.fullmatch(r"\(?[A-Za-z]\)?", folded):
            found[code] = folded
    return found


_LETTER_SYMBOLS = _letter_symbols()


def _without_id(text: str, question_id: str) -> str:
    """Dashes of every kind are one."""
    dashed = "".join("-" if unicodedata.category(c) == "Pd" else c for c in text)
    wanted = "".join("-" if unicodedata.category(c) == "Pd" else c for c in question_id)
    pattern = re.compile(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", re.IGNORECASE)
    parts: list[str] = []
    done = 0
    for found in pattern.finditer(dashed):
        parts += [text[done : found.start()], THE_QUESTION]
        done = found.end()
    return "".join([*parts, text[done:]])


def _long_options(question: Question) -> list[Phrase]:
    phrases = [_phrase(option) for option in question.options]
    return [phrase for phrase in phrases if len(phrase) >= MIN_WORDS]


def _short_gold(question: Question) -> list[Phrase]:
    position = ord(question.answer) - ord("A") if len(question.answer) == 1 else -1
    if not 0 <= position < len(question.options):
        return []
    body = question.options[position].strip().rstrip(".")
    shortest = _SHORTEST_NUMBER if body.isdigit() else _SHORTEST_GOLD
    phrase = _phrase(body)
    return [phrase] if phrase and len(body) >= shortest else []


def _phrase(text: str) -> Phrase:
    return tuple(_fold(found[0]) for found in _WORD.finditer(text))


def _fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


def _without_phrases(text: str, phrases: Sequence[Phrase]) -> str:
    """Words are compared: case, punctuation and line breaks do not hide a quotation."""
    own = {_phrase(AN_OPTION), _phrase(THE_QUESTION)}
    wanted = sorted(
        {p for p in phrases if not any(_holds(mark, p) for mark in own)}, key=len, reverse=True
    )
    if not wanted:
        return text
    words = list(_WORD.finditer(text))
    folded = [_fold(word[0]) for word in words]
    parts: list[str] = []
    done = at = 0
    while at < len(words):
        phrase = next((p for p in wanted if tuple(folded[at : at + len(p)]) == p), None)
        if phrase is None:
            at += 1
            continue
        last = at + len(phrase) - 1
        parts += [text[done : words[at].start()], AN_OPTION]
        done = words[last].end()
        at = last + 1
    return "".join([*parts, text[done:]])


def _holds(whole: Phrase, part: Phrase) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole)))


# -- letters ----------------------------------------------------------------------------


def _letter(found: re.Match[str], letters: str) -> str:
    """The match as it is, or what stands in its place."""
    said = found[0]
    if len(said) > 1 or said.upper() not in letters:
        return said  # a node's id, or no option's letter
    before = found.string[max(0, found.start() - 48) : found.start()]
    after = found.string[found.end() : found.end() + 48]
    return AN_OPTION if _means_an_option(said, before, after) else said


def _means_an_option(said: str, before: str, after: str) -> bool:
    if said in "AaIi":
        if _enclosed(before, after):
            return True
        word = _NEXT_WORD.match(after)
        if said == "A":
            return word is None or not _is_article(before, word[1])
        called = _CALLED.search(before) is not None
        return called and (word is None or word[1].casefold() in _AFTER_A_LETTER)
    return said.isupper() or not _ELISION.match(after)


def _enclosed(before: str, after: str) -> bool:
    opened = _OPENING.find(before[-1:]) if before else -1
    return opened >= 0 and after[:1] == _CLOSING[opened]


def _is_article(before: str, following: str) -> bool:
    """A capital A begins a sentence and a noun follows; inside a sentence it is no article."""
    if not following[0].islower() or following.casefold() in _AFTER_A_LETTER:
        return False
    stem = before.rstrip(" \t")
    return not stem or not (stem[-1].isalnum() or stem[-1] in ",)]")
