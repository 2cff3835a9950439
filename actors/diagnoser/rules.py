"""Finding the line of a skill that a judge quotes. Pure.

Models drop a bullet, a full stop or half a line when they copy. A quotation is taken for the
line with which it has the most words in common, if those are most of its words; one that fits
no line was made up, and is no rule of the skill.
"""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["find_rule", "rule_lines", "says_none"]

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_WORD = re.compile(r"[^\W_]+")
_NONE = frozenset({"", "no", "na", "none", "nothing", "null", "norule", "thereisnone"})
_COMMON_SHARE = 0.6
_WHOLE_SHARE = 0.8
_FEWEST_COMMON = 3


def rule_lines(skill_text: str) -> tuple[str, ...]:
    """The lines of a skill that can be followed: no front matter, headings, comments, blanks."""
    body = _COMMENT.sub("", _FRONT.sub("", skill_text, count=1))
    lines = (_BULLET.sub("", line).strip() for line in body.splitlines() if not _is_heading(line))
    return tuple(line for line in lines if line)


def says_none(quoted: str) -> bool:
    """Whether the quotation says that there is no rule."""
    return "".join(_WORD.findall(quoted)).casefold() in _NONE


def find_rule(skill_text: str, quoted: str) -> str | None:
    """The line of the skill that is quoted; None if there is no such line."""
    words = _counted(quoted)
    if not words:
        return None
    best = max(
        rule_lines(skill_text),
        key=lambda line: _likeness(words, _counted(line)),
        default="",
    )
    return best if _is_quotation(words, _counted(best)) else None


def _is_heading(line: str) -> bool:
    return line.lstrip().startswith("#")


def _counted(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _WORD.findall(text))


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """Common words over all words (Jaccard, with repetitions)."""
    total = (one | other).total()
    return (one & other).total() / total if total else 0.0


def _is_quotation(quoted: Counter[str], line: Counter[str]) -> bool:
    """Most of the quoted words are the line's; or, where several lines are quoted, the reverse."""
    common = (quoted & line).total()
    fewest = min(_FEWEST_COMMON, line.total())
    of_quoted = common >= max(1, fewest, _COMMON_SHARE * quoted.total())
    return of_quoted or common >= max(_FEWEST_COMMON, _WHOLE_SHARE * line.total())
