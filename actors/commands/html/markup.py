"""HTML that cannot be broken out of: every text is escaped where it is put in. Pure.

A document of a run (a skill, a subtitle, a model's reply) may hold anything. It becomes part of the
page through ``el`` alone, which escapes every string that ``el`` did not make itself, knows no
attribute that runs or loads something, and links only inside the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Child", "Markup", "el", "joined", "legible", "table"]

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_ATTRIBUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_ELEMENTS_REFUSED = frozenset(
    {"script", "style", "iframe", "object", "embed", "base", "meta", "link", "form", "template"}
)
_REFUSED = re.compile(r"on.*|style|src|srcset|srcdoc|action|formaction|poster|ping|background|data")
_EMPTY = frozenset({"br", "hr", "input", "col", "wbr"})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNPAIRED = re.compile(r"[\ud800-\udfff]")


class Markup(str):
    """Markup that is safe already; made by this module alone."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
"""What an element holds: text, which is escaped, markup, or several; None is nothing."""


def legible(text: str) -> str:
    """The text with its control characters as pictures, for they may not stand in a page."""
    text = _UNPAIRED.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    return _CONTROL.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2421 if code == 0x7F else 0x2400 + code)


def joined(*children: Child) -> Markup:
    """The children one after the other."""
    return Markup("".join(map(_told, children)))


def el(what: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element: ``el("p.note.small", "text", id="x")``.

    what: the name, then its classes. attributes: a trailing ``_`` is dropped, others are hyphens;
    None and False leave the attribute out, True gives it no value.
    Raises ValueError for what could run or load something.
    """
    name, *classes = what.split(".")
    if not _NAME.fullmatch(name) or name.lower() in _ELEMENTS_REFUSED:
        raise ValueError(f"no element {name!r} is made of data")
    held = [f' class="{escape(" ".join(classes))}"'] if classes else []
    held += [_attribute(key, value) for key, value in attributes.items()]
    head = f"<{name}{''.join(held)}>"
    if name in _EMPTY:
        return Markup(head)
    return Markup(f"{head}{joined(*children)}</{name}>")


def table(
    names: Sequence[str], rows: Sequence[Child], look: str = "", told: Sequence[str] = ()
) -> Markup:
    """A table that scrolls by itself where it is too wide. told: what each column is."""
    told = told or [""] * len(names)
    return el(
        "div.scroll",
        el(
            f"table.{look}" if look else "table",
            el(
                "thead",
                el(
                    "tr",
                    [
                        el("th", name, scope="col", title=what or None)
                        for name, what in zip(names, told, strict=True)
                    ],
                ),
            ),
            el("tbody", rows),
        ),
        tabindex=0,
        role="region",
        aria_label="table",
    )


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    refused = not _ATTRIBUTE.fullmatch(name) or _REFUSED.fullmatch(name.lower())
    if refused:
        raise ValueError(f"no attribute {name!r} is made of data")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if name == "href" and not text.startswith("#"):
        raise ValueError(f"a link leads to a place in the page, not to {text!r}")
    return f' {name}="{escape(legible(text))}"'


def _told(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(legible(child))
    if isinstance(child, int):
        return str(child)
    return "".join(map(_told, child))
