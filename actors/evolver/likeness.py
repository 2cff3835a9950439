"""Do two texts say the same in other words? Pure.

Measured is the share of common words in common order, over what carries sense: case,
punctuation, articles and openers such as "Keep in mind:" do not count. What turns a rule
into its opposite or into another rule is never a matter of shares: negations with the word
they deny, contrasts such as before and after, and numbers must be the same on both sides.
A share is blind to a single exchanged word in a long text; a closed list is not blind to
those that turn its sense.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import msgspec

__all__ = ["Gist", "alike", "folded", "gist"]

_MAX_CHARS = 20_000  # more than a skill may hold
# Scripts without spaces: every character counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u9fff\uac00-\ud7af]+")
_SHORT_NOT = re.compile(r"\b(\w+?)n['\u2018\u2019]t\b")
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}
_OPENER = re.compile(
    r"(?:(?:and|also|please|always|again|important|importantly|reminder|first of all)\b"
    r"|(?:always )?(?:keep|bear)(?: \w+)? in mind(?: to| that)?\b"
    r"|(?:always )?(?:remember|note that|remember that)(?: to)?\b"
    r"|(?:do not|never) (?:forget|fail)(?: to| that)?\b"
    r"|make (?:it|this) (?:a|your) (?:habit|rule)(?: to| of)?\b"
    r"|(?:make|be) (?:sure|certain|careful)(?: to| that)?\b"
    r"|take care(?: to| that)?\b|see to it that\b|ensure(?: that)?\b|try to\b"
    r"|it is (?:important|vital|essential|crucial|necessary)(?: to| that)?\b"
    r"|you (?:should|must|need to|have to)\b|to\b|that\b) ?"
)
_IDLE_TEXT = (
    "a an the this that these those it its is are be been being am was were do does did of to "
    "for and also then so please always just really very your you their his her who which "
    "should must will shall can may would could"
)
_IDLE = frozenset(_IDLE_TEXT.split())
_NO_TEXT = "not no never nor neither without none nothing nobody avoid refrain skip ignore"
_NO = frozenset(_NO_TEXT.split())
_CONTRASTS_TEXT = (
    "only except unless until instead rather other same different before after first last "
    "earlier later early late earliest latest next previous start begin beginning end top "
    "bottom above below over under up down left right more less fewer most least many few "
    "longer shorter long short high low higher lower large small larger smaller biggest "
    "smallest true false wrong correct incorrect include exclude keep drop remove accept "
    "reject trust distrust continue stop inside outside forward backward zero two three four "
    "five six seven eight nine ten once twice"
)
_CONTRASTS = frozenset(_CONTRASTS_TEXT.split())


class Gist(msgspec.Struct, frozen=True):
    """What of a text is compared.

    words: those that carry sense, in order; a denied word has ``not-`` before it.
    bag: how often each stands there. turning: of these, what may turn the sense.
    """

    folded: str
    words: tuple[str, ...]
    bag: Counter[str]
    turning: frozenset[tuple[str, int]]


def folded(text: str) -> str:
    """A text without what does not change its sense: case, white space, final punctuation."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;")


def gist(text: str) -> Gist:
    """Take from a text what is compared: of a huge one the beginning."""
    beginning = unicodedata.normalize("NFKC", text[:_MAX_CHARS]).casefold()
    said = _SHORT_NOT.sub(_long_not, beginning)
    words = _bare(" ".join(_WORD.findall(said)).replace("cannot", "can not")).split()
    kept: list[str] = []
    denied = False
    for word in words:
        if word in _NO:
            denied = True
        elif word not in _IDLE:
            kept.append(f"not-{_stem(word)}" if denied else _stem(word))
            denied = False
    if denied:
        kept.append("not-")
    bag = Counter(kept)
    turning = frozenset(item for item in bag.items() if _turns(item[0]))
    return Gist(folded(text), tuple(kept), bag, turning)


def alike(one: Gist, other: Gist, similarity: float) -> bool:
    """Whether the two say the same: equal but for form, or alike from this share of words on.

    The share is 2 c / (n + m) for c common words in common order of n and m. Symmetric.
    """
    if one.folded == other.folded:
        return True
    total = len(one.words) + len(other.words)
    if not one.words or not other.words or one.turning != other.turning:
        return False
    # Order can only lower the share, so that most pairs are settled by the bags.
    if 2 * (one.bag & other.bag).total() < similarity * total:
        return False
    return 2 * _in_common(one.words, other.words) >= similarity * total


def _long_not(match: re.Match[str]) -> str:
    stem = match.group(1)
    return f"{_STEMS.get(stem, stem)} not"


def _bare(words: str) -> str:
    """Without openers. Never empty: an opener alone is what the text says."""
    while (match := _OPENER.match(words)) and match.end() < len(words):
        words = words[match.end() :]
    return words


def _stem(word: str) -> str:
    """Without the ending of the plural or of the third person."""
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def _turns(word: str) -> bool:
    return word.startswith("not-") or word in _CONTRASTS or any(map(str.isdigit, word))


def _in_common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """The length of the longest common subsequence; a row of the table is one integer."""
    places: dict[str, int] = {}
    for position, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << position
    whole = (1 << len(one)) - 1
    row = whole
    for word in other:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & whole
    return len(one) - row.bit_count()
