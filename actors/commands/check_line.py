"""A line of the check: what was looked at, whether it stops a run, what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec
from rich.text import Text

from actors.places import as_called

__all__ = ["Line", "Mark", "fail", "fine", "in_words", "shown", "stops", "warn"]

Mark = Literal["ok", "warning", "error"]
_PAGE = re.compile(r"<!doctype|<html|<body|<head", re.IGNORECASE)
_TAGS = re.compile(r"<style.*?(?:</style>|$)|<[^<>]*(?:>|$)", re.IGNORECASE | re.DOTALL)
_SIGNS: dict[Mark, tuple[str, str, str]] = {
    "ok": ("✓", "ok", "green"),
    "warning": ("!", "! ", "yellow"),
    "error": ("✗", "X ", "bold red"),
}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """name: what was looked at. mark: ``error`` would stop a run. remedy: empty: none is needed."""

    name: str
    mark: Mark
    found: str
    remedy: str = ""


def fine(name: str, found: str) -> Line:
    """All is well."""
    return Line(name=name, mark="ok", found=found)


def warn(name: str, found: str, remedy: str) -> Line:
    """A run would go through, with less than one may think."""
    return Line(name=name, mark="warning", found=found, remedy=as_called(remedy))


def fail(name: str, found: str, remedy: str) -> Line:
    """A run would not go through, or its result would mean nothing."""
    return Line(name=name, mark="error", found=found, remedy=as_called(remedy))


def in_words(detail: str) -> str:
    """What a server said, on one line; of an error page its words alone."""
    return _one_line(_TAGS.sub(" ", detail) if _PAGE.search(detail) else detail)


def stops(lines: Iterable[Line]) -> bool:
    """Whether anything would stop a run."""
    return any(line.mark == "error" for line in lines)


def shown(line: Line, *, plain: bool, width: int = 9) -> Text:
    """One line of text. plain: nothing but ASCII of our own, and no colour.

    width: of the column of names.
    """
    sign, letters, style = _SIGNS[line.mark]
    text = Text()
    text.append(letters if plain else sign, style="" if plain else style)
    text.append(f" {line.name:<{width}}  {_one_line(line.found)}")
    if line.remedy:
        text.append(f"  -> {_one_line(line.remedy)}", style="" if plain else "italic")
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
