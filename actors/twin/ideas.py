"""What the simulated editor can think of: lessons, fillers, traps, and how it words them.

Pure. Every idea has three wordings, so that a good lesson which a gate refused by bad luck
can be tried again, and a refused text never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from actors.twin.catalog import Catalog
from actors.twin.chance import shuffled
from actors.twin.world import Lesson, Subject, fold, holds

__all__ = [
    "Idea",
    "Kind",
    "Past",
    "bare",
    "harmful",
    "helpful",
    "propose",
    "trap_lines",
    "useless",
]

Kind = Literal["helpful", "useless", "harmful"]
_STOCK = (
    "- Keep the thought short and to the point.",
    "- Name the node id in the evidence.",
    "- Read the question once more before you submit.",
)


class Idea(msgspec.Struct, frozen=True):
    """A line to add. support: the question ids that speak for it."""

    line: str
    support: tuple[str, ...]


class Past(msgspec.Struct, frozen=True):
    """What must not be said (again): the document, refused edits, this reply's own; folded."""

    said: str
    rejected: str
    now: frozenset[str] = frozenset()

    def also(self, line: str) -> Past:
        """With one more line of this reply."""
        return msgspec.structs.replace(self, now=self.now | {bare(line)})

    def allows(self, line: str) -> bool:
        """Whether a line is new."""
        rule = bare(line)
        return rule not in self.now and rule not in self.said and rule not in self.rejected

    def allows_removal(self, line: str) -> bool:
        """Whether taking this line out was not refused before."""
        return bare(line) not in self.rejected


def propose(
    kind: Kind,
    catalog: Catalog,
    subject: Subject,
    cases: Sequence[str],
    past: Past,
    *key: object,
) -> tuple[Kind, Idea] | None:
    """An idea of this kind, or a filler if the kind has nothing new; None if all is said.

    cases: question ids. The kind beside the idea is what it came to.
    """
    think = {"helpful": helpful, "useless": useless, "harmful": harmful}[kind]
    idea: Idea | None = think(catalog, subject, cases, past, *key)
    if idea is None:
        kind, idea = "useless", useless(catalog, subject, cases, past, *key)
    return None if idea is None else (kind, idea)


def helpful(
    catalog: Catalog, subject: Subject, cases: Sequence[str], past: Past, *key: object
) -> Idea | None:
    """A lesson that the document lacks, one that the cases need first; None: none is left."""
    needs = {name: catalog.by_id(name).planted.needs for name in cases}
    missing = [
        lesson
        for lesson in catalog.lessons_for(subject)
        if not holds(past.said, lesson.key)
        and not any(holds(line, lesson.key) for line in past.now)
    ]
    wanted = [x for x in missing if any(x.lesson_id in names for names in needs.values())]
    others = [lesson for lesson in missing if lesson not in wanted]
    for lesson in [*shuffled(wanted, "wanted", *key), *shuffled(others, "others", *key)]:
        line = _fresh(lesson.text, lesson.key, past)
        if line is not None:
            return Idea(line, _support(lesson, cases, needs))
    return None


def useless(
    catalog: Catalog, subject: Subject, cases: Sequence[str], past: Past, *key: object
) -> Idea | None:
    """A line without effect; None: every wording of every one was used."""
    own = shuffled(catalog.fillers_for(subject), "filler", *key)
    unsaid = [text for text in [*own, *_STOCK] if bare(text) not in past.said]
    new = [text for text in unsaid if past.allows(text)]
    # What was refused comes again in other words only where nothing else is left.
    for text in [*new, *unsaid]:
        line = _fresh(text, "", past)
        if line is not None:
            return Idea(line, _first(cases))
    return None


def harmful(
    catalog: Catalog, subject: Subject, cases: Sequence[str], past: Past, *key: object
) -> Idea | None:
    """A trap that the document does not hold; None: none is left."""
    absent = [
        trap
        for trap in catalog.traps_for(subject)
        if not holds(past.said, trap.key) and not any(holds(x, trap.key) for x in past.now)
    ]
    for trap in shuffled(absent, "trap", *key):
        line = _fresh(trap.text, trap.key, past)
        if line is not None:
            return Idea(line, _first(cases))
    return None


def trap_lines(catalog: Catalog, subject: Subject, lines: Iterable[str]) -> list[str]:
    """Those of a document's lines that hold a trap of its own."""
    traps = catalog.traps_for(subject)
    return [line for line in lines if any(holds(line, trap.key) for trap in traps)]


def _fresh(text: str, key: str, past: Past) -> str | None:
    """The first wording that is allowed."""
    return next((line for line in _wordings(text, key) if past.allows(line)), None)


def _wordings(text: str, key: str) -> tuple[str, str, str]:
    """A bullet as it is, and in two other words that all hold the key.

    So different that nobody takes one for another; a line without effect has no key to keep, and
    only an opener is put before it.
    """
    if key:
        return text, f"- Worth a line of its own: {key}.", f"- Seen in several cases now: {key}."
    rule = text.removeprefix("- ")
    return text, f"- Keep in mind: {rule}", f"- Make it a habit. {rule}"


def bare(line: str) -> str:
    """A rule folded, without its dash."""
    return fold(line.removeprefix("- "))


def _support(
    lesson: Lesson, cases: Sequence[str], needs: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    asking = [name for name in cases if lesson.lesson_id in needs[name]]
    return tuple(asking) or _first(cases)


def _first(cases: Sequence[str]) -> tuple[str, ...]:
    return tuple(cases[:2])
