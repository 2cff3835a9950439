"""What the eye sees of a text, whatever characters it is written with. Pure.

For comparing texts that somebody may want to look different, or alike: region markers that
a reader would take for real ones, quotations that should not be recognised.
"""

from __future__ import annotations

import unicodedata

__all__ = ["plain"]

_ALIKE = {  # Greek, Cyrillic, Lisu and small capitals that pass for the letters of a marker
    "A": "\u0391\u0410\u0430\ua4ee\u1d00",
    "D": "\ua4d3\u1d05",
    "E": "\u0395\u0415\u0435\ua4f0\u1d07",
    "I": "\u0399\u0406\u0456\u0131\ua4f2\u026a\u04c0",
    "K": "\u039a\u041a\u043a\ua4d7\u1d0b",
    "L": "\ua4e1\u029f",
    "M": "\u039c\u041c\u043c\ua4df\u1d0d",
    "N": "\u039d\ua4e0\u0274",
    "O": "\u039f\u041e\u043e\u03bf\ua4f3\u1d0f",
    "P": "\u03a1\u0420\u0440\u03c1\ua4d1\u1d18",
    "R": "\ua4e3\u0280",
    "S": "\u0405\u0455\ua4e2\ua731",
    "T": "\u03a4\u0422\u0442\ua4d4\u1d1b",
    "U": "\ua4f4\u1d1c",
    "X": "\u03a7\u0425\u0445\u03c7\ua4eb",
}
_LETTER_OF = {alike: letter for letter, many in _ALIKE.items() for alike in many}
_BLANKS = "\u115f\u1160\u2800"  # letters and symbols by category, but nothing is seen of them


class _Plain(dict[int, str]):
    """What is left of a character in ``plain``; filled as characters come up."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        if char.isspace():
            seen = char
        elif category in ("Mn", "Me", "Cf", "Cc") or char in _BLANKS:
            seen = ""
        elif category == "Pd":
            seen = "-"
        elif category == "Pc":
            seen = "_"
        else:
            seen = _LETTER_OF.get(char, char)
        self[code] = seen
        return seen


_plain_of = _Plain()


def plain(text: str) -> str:
    """What the eye sees of a text: no invisible characters, no accents, full-width and look-alike
    letters as Latin ones, dashes of every kind as one."""
    return unicodedata.normalize("NFKD", text).translate(_plain_of)
