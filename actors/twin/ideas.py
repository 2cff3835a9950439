"""What the simulated editor can think of: lessons, fillers, traps, and how it words them.

Pure. Every idea has three wordings, so that a good lesson which a gate refused by bad luck
can be tried again, and a refused text never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from actors.twin.catalog import Catalog
from actors.twin.chance import shuffled
from actors.twin.layout import CaseLine
from actors.twin.world import Lesson, fold, holds

__all__ = ["Idea", "Kind", "Past", "fresh_lines", "harmful", "helpful", "trap_lines", "useless"]

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
    """What must not be said (again): the skill, refused edits, this reply's own; folded."""

    skill: str
    rejected: str
    now: frozenset[str] = frozenset()

    def also(self, line: str) -> Past:
        """With one more line of this reply."""
        return msgspec.structs.replace(self, now=self.now | {_bare(line)})

    def allows(self, line: str) -> bool:
        """Whether a line is new."""
        bare = _bare(line)
        return bare not in self.now and bare not in self.skill and bare not in self.rejected

    def allows_removal(self, line: str) -> bool:
        """Whether taking this line out was not refused before."""
        return _bare(line) not in self.rejected


def helpful(
    catalog: Catalog, task_type: str, cases: Sequence[CaseLine], past: Past, *key: object
) -> Idea | None:
    """A lesson that the skill lacks, first of all one that the cases need; None: none is left."""
    needs = {case.question_id: catalog.by_id(case.question_id).planted.needs for case in cases}
    missing = [
        lesson
        for lesson in catalog.lessons_of(task_type)
        if not holds(past.skill, lesson.key)
        and not any(holds(line, lesson.key) for line in past.now)
    ]
    wanted = [x for x in missing if any(x.lesson_id in names for names in needs.values())]
    others = [lesson for lesson in missing if lesson not in wanted]
    for lesson in [*shuffled(wanted, "wanted", *key), *shuffled(others, "others", *key)]:
        for line in fresh_lines([lesson.text], past):
            return Idea(line, _support(lesson, cases, needs))
    return None


def useless(
    catalog: Catalog, task_type: str, cases: Sequence[CaseLine], past: Past, *key: object
) -> Idea | None:
    """A line without effect; None: every wording of every one was used."""
    own = shuffled(catalog.fillers_of(task_type), "filler", *key)
    unsaid = [text for text in [*own, *_STOCK] if _bare(text) not in past.skill]
    for line in fresh_lines(unsaid, past):
        return Idea(line, _first(cases))
    return None


def harmful(
    catalog: Catalog, task_type: str, cases: Sequence[CaseLine], past: Past, *key: object
) -> Idea | None:
    """A trap that the skill does not hold; None: none is left."""
    absent = [
        trap.text
        for trap in catalog.traps_of(task_type)
        if not holds(past.skill, trap.key) and not any(holds(x, trap.key) for x in past.now)
    ]
    for line in fresh_lines(shuffled(absent, "trap", *key), past):
        return Idea(line, _first(cases))
    return None


def trap_lines(catalog: Catalog, task_type: str, lines: Iterable[str]) -> list[str]:
    """Those of a skill's lines that hold a trap of its class."""
    traps = catalog.traps_of(task_type)
    return [line for line in lines if any(holds(line, trap.key) for trap in traps)]


def fresh_lines(texts: Sequence[str], past: Past) -> Iterator[str]:
    """For each text in turn, the first of its wordings that is allowed, if any is."""
    for text in texts:
        new = next((line for line in _wordings(text) if past.allows(line)), None)
        if new is not None:
            yield new


def _wordings(text: str) -> tuple[str, str, str]:
    """A bullet as it is, and in two other words; all hold the same key."""
    bare = text.removeprefix("- ")
    return text, f"- Keep in mind: {bare}", f"- Make it a habit. {bare}"


def _bare(line: str) -> str:
    return fold(line.removeprefix("- "))


def _support(
    lesson: Lesson, cases: Sequence[CaseLine], needs: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    asking = [c.question_id for c in cases if lesson.lesson_id in needs[c.question_id]]
    return tuple(asking) or _first(cases)


def _first(cases: Sequence[CaseLine]) -> tuple[str, ...]:
    return tuple(case.question_id for case in cases[:2])
