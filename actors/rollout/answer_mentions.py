"""Finding the letters and option texts that a sentence mentions. Pure.

A letter counts only as a stand-alone token: never the article A, an initial, an
acronym, a unit or a part of a name ("Plan B").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from actors.rollout.answer_options import OptionTexts, without_article
from actors.rollout.answer_phrases import (
    ANNOUNCED,
    DENIED_BEFORE,
    FINAL,
    NAME_NOUNS,
    ORDINARY_WORDS,
    REFERRED,
    SWITCHED_FROM,
    VERBS,
)

__all__ = ["CONTEXT", "Mention", "Surface", "find_mentions", "surface_of"]

CONTEXT = 160  # characters before and after a letter that its phrase may span
_MAX_TOKENS = 200
_FIRST_MASK = 0xE000
_WORD = r"A-Za-z0-9_\u00b0\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"
_BEFORE = (
    rf"(?<![{_WORD}])(?<![{_WORD}]['’])(?<![{_WORD}][\-+&/#@])"
    r"(?<![^A-Za-z][A-Za-z]\.)(?<!^[A-Za-z]\.)"
)
_AFTER = rf"(?![{_WORD}+#])(?!['’][A-Za-z])(?!-[A-Za-z0-9])(?!\.[A-Za-z](?![A-Za-z]))(?!\.\d)"
_TOKEN = re.compile(rf"{_BEFORE}([A-Z]){_AFTER}|{_BEFORE}([a-z]){_AFTER}|([\ue000-\ue0ff])")
_JOIN = re.compile(
    r"[\"']*[)\]]\s*[(\[][\"']*|"
    r"[\s\"'()\[\]]*(?:(?:[,;|]|/|&|\+|、|→|->|~|\b(?:or|and|nor|and/or|vs\.?|versus|to|through|"
    r"oder|und|ou|et|o|y|e|или|и|veya|ve)\b|或者?|和|与|與|及|跟|か|と|または|또는|와|과|나|이나)"
    r"[\s\"'()\[\]]*(?:(?:option|choice|letter|possibly|maybe|even|perhaps|also|both)\s+)?"
    r"[\"'(\[]*)+",
    re.IGNORECASE,
)
_NEW_CLAUSE = re.compile(
    r"^[\"')\]]*\s+(?:is|was|has|had|does|doesn't|isn't|wasn't|cannot|can't|can|could|would|shows|"
    r"seems|looks|appears|only|also|might|may|lacks|contradicts|never|fits|matches|too|best)\b",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"[)\]\"']*[.:,)]?[)\]]*[ ]?[-–—=]?[ ]?[\"'(\[]*(?:option )?[\"'(\[]*", re.IGNORECASE
)
_PREVIOUS_WORD = re.compile(r"([A-Za-z\u00c0-\u024f][\w'’-]*)[ ]$")
_NEXT_WORD = re.compile(r"^ ([A-Za-z\u00c0-\u024f][\w'’-]*)")
_TIGHT_PAIR = re.compile(r"(?<![A-Za-z])[A-Za-z](?:[/&][A-Za-z])+(?![A-Za-z])")
_INITIALS = re.compile(r"\b(?:[A-Z]\.[ ]?){2,}(?=[A-Z][a-z])")
_UNIT_OR_TITLE = re.compile(r"(?:\d ?|\b(?:Dr|Mr|Mrs|Ms|Prof|St)\. ?)$")
_SHORT = re.compile(r"[a-z]{1,3}")
_ANSWER_POSITION = re.compile(
    r"(?:^|[\n.!?:=]\s*|\b(?:is|answer|say|says|said)\s+)[\"'(]*$", re.IGNORECASE
)
_ANSWER_ENDS = ("", ".", ",", ";", ":", "!", "\n", '"', "'", ")")
_NUMBERED = re.compile(
    r"\b(?:option|choice|number|no\.|answer|candidate|step|#)\s*#?\s*$", re.IGNORECASE
)
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})


class Mention(msgspec.Struct, frozen=True):
    """A letter, or an option's text.

    letters: more than one where options are identical. with_text: a letter with a text.
    """

    letters: frozenset[str]
    start: int
    end: int
    from_text: bool
    with_text: bool = False


class Surface(msgspec.Struct, frozen=True):
    """A text without mark-up, option texts masked. masks: the letters of each mask."""

    text: str
    masks: Mapping[str, frozenset[str]]


def surface_of(text: str, options: OptionTexts) -> Surface:
    """Strip mark-up and mask the option texts that occur."""
    plain = re.sub(r"~~.*?~~", " ", text)  # struck out: taken back
    plain = re.sub(r"\\[()\[\]]", " ", plain)
    plain = re.sub(r"\\(?:text|math)\w*\s*\{([^{}]*)\}", r"\1", plain)
    plain = re.sub(r"</?[a-zA-Z][^<>]{0,80}>", " ", plain)
    plain = re.sub(r"(?m)^[ \t]*[#>]+[ \t]*", "", plain)
    plain = re.sub(r"[*`$]|__", "", plain)
    plain = re.sub(r"[ \t]+", " ", plain.translate(_STRAIGHT))
    plain = re.sub(r"[\ue000-\ue0ff]", " ", plain)
    plain = _INITIALS.sub(" ", plain)
    plain = _TIGHT_PAIR.sub(lambda pair: _pair(pair[0], options.letters), plain)
    return _masked(plain, options)


def _pair(pair: str, letters: str) -> str:
    """``A/B`` are two letters; ``N/A``, ``R&B`` are words of their own."""
    if all(item in letters for item in re.split("[/&]", pair)):
        return re.sub("[/&]", " or ", pair)
    return " "


def _masked(text: str, options: OptionTexts) -> Surface:
    by_body: dict[str, set[str]] = {}
    for letter, body in zip(options.letters, options.bodies, strict=True):
        bare = without_article(body)
        if len(bare) > 1 or bare.isdigit():
            by_body.setdefault(bare, set()).add(letter)
    spans: list[tuple[int, int, str]] = []
    for body in sorted(by_body, key=lambda item: (-len(item), item)):
        for found in _body_pattern(body).finditer(text):
            free = all(found.end() <= start or found.start() >= end for start, end, _ in spans)
            if free and _is_said(text, found, body):
                spans.append((found.start(), found.end(), body))
    symbols = {body: chr(_FIRST_MASK + number) for number, body in enumerate(by_body)}
    masks = {symbols[body]: frozenset(letters) for body, letters in by_body.items()}
    parts: list[str] = []
    done = 0
    for start, end, body in sorted(spans):
        parts += [text[done:start], symbols[body]]
        done = end
    return Surface("".join([*parts, text[done:]]), masks)


def _body_pattern(body: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in body.split())
    left = r"(?<!\w)(?<!\d[.,:])(?<!\$)(?<!-)" if _is_word(body[0]) else ""
    right = r"(?!\w)(?![.,:]\d)(?!-\w)" if _is_word(body[-1]) else ""
    return re.compile(rf"{left}(?:(?:an?|the)\s+)?{words}{right}", re.IGNORECASE)


def _is_word(character: str) -> bool:
    return character.isalnum() and ord(character) < 0x2E80  # beyond: no spaces between words


def _is_said(text: str, found: re.Match[str], body: str) -> bool:
    """Short texts (``No``, ``4``) are ordinary words: they count only where an answer stands."""
    before = text[max(0, found.start() - 40) : found.start()]
    if body.isdigit():
        return not _NUMBERED.search(before)
    if _SHORT.fullmatch(body):
        after = text[found.end() : found.end() + 1]
        return bool(_ANSWER_POSITION.search(before)) and after in _ANSWER_ENDS
    return True


def find_mentions(surface: Surface, options: OptionTexts) -> list[list[Mention]]:
    """Mentions in order, those joined by a comma, "or", "and" ... in one group."""
    nouns = NAME_NOUNS | _own_nouns(options)
    found: list[Mention] = []
    tokens = list(_TOKEN.finditer(surface.text))
    if len(tokens) > _MAX_TOKENS:  # degenerate repetition: its beginning and its end will do
        tokens = tokens[: _MAX_TOKENS // 2] + tokens[-_MAX_TOKENS // 2 :]
    for token in tokens:
        mention = _mention(surface, token, options, nouns)
        if mention is not None:
            found.append(mention)
    return _grouped(surface.text, _merged(surface.text, found))


def _own_nouns(options: OptionTexts) -> frozenset[str]:
    """The words before letters inside the options: ``vitamin`` of "Vitamin C"."""
    words = (re.findall(r"([^\W\d]+) [a-z](?!\w)", body) for body in options.bodies)
    return frozenset(word for body in words for word in body) - ORDINARY_WORDS


def _mention(
    surface: Surface, token: re.Match[str], options: OptionTexts, nouns: frozenset[str]
) -> Mention | None:
    upper, lower, mask = token.groups()
    if mask:
        return Mention(surface.masks[mask], token.start(), token.end(), True)
    before = surface.text[max(0, token.start() - CONTEXT) : token.start()]
    after = surface.text[token.end() : token.end() + CONTEXT]
    letter = (upper or lower).upper()
    announced = bool(ANNOUNCED.search(before) or FINAL.search(before))
    referred = bool(REFERRED.search(before))
    if lower and not (announced or referred or _stands_out(before, after)):
        return None
    if letter not in options.letters:
        alone = not (before.strip() or after.strip(" \n.)!"))
        if not upper or letter == "I" or not (announced or alone):
            return None
    if announced:
        if _is_article(upper or lower, after):
            return None
    elif (
        not (upper and referred)
        and not DENIED_BEFORE.search(before)
        and _is_other_word(upper or lower, before, after, nouns)
    ):
        return None
    return Mention(frozenset({letter}), token.start(), token.end(), False)


def _stands_out(before: str, after: str) -> bool:
    """What a lower-case letter needs: brackets, or a label's place and punctuation."""
    bracketed = before[-1:] in ("(", "[") and after[:1] in (")", "]")
    leading = not before.strip(" \n\"'(") and after[:1] in (")", ".", ":")
    return bracketed or leading


def _is_article(token: str, after: str) -> bool:
    if token not in "Aa":
        return False
    following = _NEXT_WORD.match(after)
    return following is not None and following[1].casefold() not in VERBS


def _is_other_word(token: str, before: str, after: str, nouns: frozenset[str]) -> bool:
    if _is_article(token, after) or _UNIT_OR_TITLE.search(before):
        return True
    previous = _PREVIOUS_WORD.search(before)
    if previous is None:
        return False
    word = previous[1].split("'")[0]
    if word.casefold() in nouns:
        return True
    titled = len(word) > 1 and word[0].isupper() and word[1:].islower()
    return titled and word.casefold() not in ORDINARY_WORDS


def _merged(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """A label beside an option text is one mention, and the label decides."""
    merged: list[Mention] = []
    for mention in mentions:
        last = merged[-1] if merged else None
        if last is not None and last.from_text != mention.from_text:
            between = text[last.end : mention.start]
            label = mention if last.from_text else last
            closes = not last.from_text or _closes(text, between, mention)
            if closes and _BESIDE.fullmatch(between):
                merged[-1] = Mention(label.letters, last.start, mention.end, False, with_text=True)
                continue
        merged.append(mention)
    return merged


def _closes(text: str, between: str, label: Mention) -> bool:
    """``a red car (B)``: behind a text only a bracketed letter is its label."""
    return between.rstrip().endswith(("(", "[")) and text[label.end : label.end + 1] in (")", "]")


def _grouped(text: str, mentions: Sequence[Mention]) -> list[list[Mention]]:
    groups: list[list[Mention]] = []
    for mention in mentions:
        if groups and _joined(text, groups[-1][-1], mention):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


def _joined(text: str, last: Mention, mention: Mention) -> bool:
    between = text[last.end : mention.start]
    if not _JOIN.fullmatch(between):
        return False
    if between.strip() == "to":  # "changed my answer from A to C"
        return not SWITCHED_FROM.search(text[max(0, last.start - CONTEXT) : last.start])
    new_clause = _NEW_CLAUSE.match(text[mention.end : mention.end + CONTEXT])
    return not (between.strip() in (",", ";") and new_clause)
