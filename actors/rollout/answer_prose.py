"""Reading the answer out of sentences: the last explicit, undenied statement wins. Pure.

Option texts are first replaced by one private character each (the longest match wins),
so that letters inside them are never labels. What is left is scanned for mentions of
letters; each gets a strength, or is dropped (an article, a name, denied, taken back).
Two letters of equal standing are no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

import msgspec

from actors.rollout.answer_mentions import CONTEXT, Mention, Surface, find_mentions, surface_of
from actors.rollout.answer_options import OptionTexts
from actors.rollout.answer_phrases import (
    ANNOUNCED,
    CONCLUDED,
    CONDITIONAL,
    CONFIRMED_AFTER,
    CORRECTION,
    DENIED_AFTER,
    DENIED_BEFORE,
    DOUBTED,
    FINAL,
    HEDGED,
    LEAD_BEFORE,
    POINTED_AT,
    REFUSAL,
    RETRACTED,
    SWITCHED_FROM,
    TAKEN_BACK,
)
from actors.rollout.answer_types import Letter, NoAnswer, Reading

__all__ = ["read_prose"]

_NOISE = r"[^\w\n\ue000-\ue0ff]*"
_LEAD_AFTER = re.compile(
    r"^[\"')\]]*\s*(?:[.,:;)\-–—(!]|(?:because|since|as|due|given)\b|$|\n|[\ue000-\ue0ff])"
)
_LABEL_AFTER = re.compile(r"^[\"'\]]*\s*(?:[.):\]]|[\ue000-\ue0ff])")
_LINE_END = re.compile(rf"^{_NOISE}(?:\n|$)")
_ENDED = re.compile(r"^[\"')\]]*\s*(?:[.!;,]|$|\n)")
_LINE_START = re.compile(
    rf"(?:^|\n|[.!?;]\s){_NOISE}(?:\d+[.)]\s*)?(?:(?:option|choice)\s*)?{_NOISE}$", re.IGNORECASE
)
_BARE_START = re.compile(rf"(?:^|\n){_NOISE}(?:\d+[.)]\s*)?$")
_CLAUSE_END = re.compile(r"\n|[.!?;]\s")


class _Strength(IntEnum):
    MENTION = 1
    LEAD = 2  # at the start of the text or of a line, as a label
    STATED = 3  # announced by a phrase, or alone on its line
    FINAL = 4


class _Statement(msgspec.Struct, frozen=True):
    letters: frozenset[str]
    strength: _Strength
    start: int
    bare: bool
    from_text: bool
    hedged: bool
    doubted: bool
    tied: bool


def read_prose(text: str, options: OptionTexts) -> Reading:
    """The letter that a text states, if exactly one stands at the end."""
    surface = surface_of(text, options)
    judged = [_judge(surface, group) for group in find_mentions(surface, options)]
    statements = _demote_echo([item for item in judged if item is not None])
    if not statements:
        return NoAnswer("no letter and no option text")
    final = [item for item in statements if item.strength is _Strength.FINAL]
    if final:
        return _decide(final[-1], options, "a final answer")
    stated = [item for item in statements if item.strength is _Strength.STATED]
    if stated:
        return _last_stated(surface.text, stated, options)
    leads = [item for item in statements if item.strength is _Strength.LEAD]
    if leads:
        return _agreeing(leads, options, "a letter that leads the text")
    if REFUSAL.search(surface.text):
        statements = [item for item in statements if item.hedged]
        if not statements:
            return NoAnswer("a refusal")
    labels = [item for item in statements if not item.from_text]
    if labels:
        return _agreeing(labels, options, "the only letter mentioned")
    return _agreeing(statements, options, "the only option text in it")


def _judge(surface: Surface, group: Sequence[Mention]) -> _Statement | None:
    """How strongly a group of mentions is stated; None: denied or taken back."""
    first, last = group[0], group[-1]
    near = max(0, first.start - CONTEXT)
    before = surface.text[near : first.start]
    after = surface.text[last.end : last.end + CONTEXT]
    announced = FINAL.search(before) or ANNOUNCED.search(before)
    if _withdrawn(before, after, announced):
        return None
    strength = _strength(before, after, announced is not None)
    alone = _BARE_START.search(before) and _LINE_END.match(after)
    bare = bool(alone) and not first.with_text
    if strength < _Strength.STATED:
        leading = near == 0 and LEAD_BEFORE.match(before) and _LEAD_AFTER.match(after)
        labelled = _LINE_START.search(before) and (first.with_text or _LABEL_AFTER.match(after))
        if bare:
            strength = _Strength.STATED
        elif not first.from_text and (leading or labelled):
            strength = _Strength.LEAD
    letters: frozenset[str] = frozenset().union(*(mention.letters for mention in group))
    return _Statement(
        letters=letters,
        strength=strength,
        start=first.start,
        bare=bare,
        from_text=all(mention.from_text for mention in group),
        hedged=bool(HEDGED.search(before)),
        doubted=bool(DOUBTED.search(before)),
        tied=len(group) == 1 and len(first.letters) > 1,
    )


def _withdrawn(before: str, after: str, announced: re.Match[str] | None) -> bool:
    clause = _CLAUSE_END.split(before)[-1]
    if DENIED_BEFORE.search(clause) or TAKEN_BACK.search(before) or DENIED_AFTER.match(after):
        return True
    if SWITCHED_FROM.search(before) or RETRACTED.match(after):
        return True
    phrase = before[: announced.start()] if announced else before
    return bool(CONDITIONAL.search(phrase) and (announced or CONFIRMED_AFTER.match(after)))


def _strength(before: str, after: str, announced: bool) -> _Strength:
    if announced and FINAL.search(before):
        return _Strength.FINAL
    if announced or POINTED_AT.search(before) or CONFIRMED_AFTER.match(after):
        return _Strength.STATED
    if CONCLUDED.search(before) and _ENDED.match(after):
        return _Strength.STATED
    return _Strength.MENTION


def _demote_echo(statements: Sequence[_Statement]) -> list[_Statement]:
    """Several labels at line starts are a list of the options, not several answers."""
    leads = {item.letters for item in statements if item.strength is _Strength.LEAD}
    if len(leads) < 2:
        return list(statements)
    return [
        msgspec.structs.replace(item, strength=_Strength.MENTION)
        if item.strength is _Strength.LEAD
        else item
        for item in statements
    ]


def _last_stated(text: str, stated: Sequence[_Statement], options: OptionTexts) -> Reading:
    """The last statement; letters on lines of their own must agree unless corrected between.

    What is called possible at the end ("likely B, but possibly C") takes back nothing.
    """
    firm = [item for item in stated if not item.doubted]
    if firm and not CORRECTION.search(text[firm[-1].start : stated[-1].start]):
        stated = firm
    last = stated[-1]
    if all(item.bare for item in stated):
        between = text[stated[0].start : last.start]
        if not CORRECTION.search(between):
            return _agreeing(stated, options, "a letter on its own line")
    return _decide(last, options, "the last statement of an answer")


def _agreeing(items: Sequence[_Statement], options: OptionTexts, why: str) -> Reading:
    if len({item.letters for item in items}) > 1:
        return NoAnswer("several letters and no final choice")
    return _decide(items[-1], options, why)


def _decide(item: _Statement, options: OptionTexts, why: str) -> Reading:
    if item.tied:
        return NoAnswer("the text of several identical options")
    if len(item.letters) > 1:
        return NoAnswer("several letters and no final choice")
    (letter,) = item.letters
    if letter not in options.letters:
        return NoAnswer("a letter that is no option")
    return Letter(letter, why + (", as its option's text" if item.from_text else ""))
