"""The package's skills as the agent may choose among them (``agent.skill_routing: manual``). Pure.

A skill is named by its front matter (``name``, ``description``), as in any SKILL.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from protocol.documents import Skill
from protocol.keys import slug

__all__ = ["Library", "library_of", "skill_body"]

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = r"^{}:[ \t]*(.*?)[ \t]*\r?$"
_DEFAULT = "_default"


class _Book(msgspec.Struct, frozen=True):
    name: str
    description: str
    body: str


class Library(msgspec.Struct, frozen=True):
    """The skills by name, in the order of their names; the general one last."""

    books: tuple[_Book, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What ``read_skill`` knows."""
        return tuple(book.name for book in self.books)

    @property
    def catalogue(self) -> str:
        """A line per skill."""
        return "\n".join(f"- {book.name}: {book.description}" for book in self.books)

    def read(self, name: str) -> str | None:
        """The body of a skill; None: there is none of that name, however it is spelt."""
        wanted = slug(name)
        return next((book.body for book in self.books if slug(book.name) == wanted), None)


def skill_body(text: str) -> str:
    """A skill file without its front matter and the blank lines behind it."""
    return _FRONT_MATTER.sub("", text, count=1).lstrip("\r\n")


def library_of(skills: Iterable[Skill]) -> Library:
    """The skills that an agent can choose from; a second skill of a class counts for nothing."""
    by_type: dict[str, Skill] = {}
    for skill in skills:
        by_type.setdefault(skill.task_type, skill)
    ordered = sorted(
        by_type.values(), key=lambda skill: (skill.task_type == _DEFAULT, skill.task_type)
    )
    return Library(tuple(map(_book, ordered)))


def _book(skill: Skill) -> _Book:
    name = _field(skill.text, "name") or slug(skill.task_type)
    return _Book(name, _field(skill.text, "description") or skill.task_type, skill_body(skill.text))


def _field(text: str, name: str) -> str:
    front = _FRONT_MATTER.match(text)
    found = re.search(_FIELD.format(name), front.group(1), re.MULTILINE) if front else None
    return found.group(1).strip("\"'") if found else ""
