"""World and questions together: what a prompt's question block is looked up in.

Reads two files at start and nothing afterwards. Whatever does not fit is told with the
file and the key.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from actors.twin.layout import LABELS, QuestionBlock
from actors.twin.world import (
    Lesson,
    Planted,
    Subject,
    Trap,
    World,
    load_world,
    problems,
    true_accuracy,
)

__all__ = ["Catalog", "Entry", "LoadError", "NotPlanted", "load_catalog"]


class LoadError(Exception):
    """A file cannot be used; the message names the file and the key."""


class NotPlanted(ValueError):
    """The world does not know this question, or knows it otherwise."""


class Row(msgspec.Struct, frozen=True):
    """A line of questions.jsonl, as far as the simulator needs it."""

    question_id: str
    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]
    answer: str


class Entry(msgspec.Struct, frozen=True):
    """A question and its planted truth. gold: the index of the right option."""

    row: Row
    planted: Planted
    gold: int


class Catalog:
    """Everything the simulator knows, indexed for its requests."""

    def __init__(self, world: World, entries: tuple[Entry, ...]) -> None:
        self.world = world
        self.entries = entries
        self.lessons: dict[str, Lesson] = {lesson.lesson_id: lesson for lesson in world.lessons}
        self._by_text = {(e.row.video_id, e.row.question.strip()): e for e in entries}
        self._by_id = {e.row.question_id: e for e in entries}

    def find(self, block: QuestionBlock) -> Entry:
        """The question of a prompt. Raises NotPlanted if it is not exactly that one."""
        entry = self._by_text.get((block.video_id, block.question))
        if entry is None:
            raise NotPlanted(f"no such question of video {block.video_id!r} in the world")
        if block.options != entry.row.options:
            raise NotPlanted(f"the options of {entry.row.question_id} are not those of the world")
        if block.task_type not in ("", entry.row.task_type):
            raise NotPlanted(f"the task type of {entry.row.question_id} is {entry.row.task_type!r}")
        return entry

    def by_id(self, question_id: str) -> Entry:
        """Raises NotPlanted for an id that the world does not know."""
        entry = self._by_id.get(question_id)
        if entry is None:
            raise NotPlanted(f"no question {question_id!r} in the world")
        return entry

    def accuracy(self, entry: Entry, skill_text: str, prompts_text: str = "") -> float:
        """The planted probability of a right answer under a skill and the prompts beside it."""
        return true_accuracy(
            self.world, entry.planted, entry.row.task_type, skill_text, prompts_text
        )

    def lessons_for(self, subject: Subject) -> list[Lesson]:
        """The lessons that belong into a document, in the world's order."""
        return [lesson for lesson in self.world.lessons if lesson.subject == subject]

    def traps_for(self, subject: Subject) -> list[Trap]:
        """The traps of a document, in the world's order."""
        return [trap for trap in self.world.traps if trap.subject == subject]

    def fillers_for(self, subject: Subject) -> list[str]:
        """The lines without effect of a document, in the world's order."""
        return [filler.text for filler in self.world.fillers if filler.subject == subject]

    def lessons_of(self, task_type: str) -> list[Lesson]:
        """The lessons of a class's skill."""
        return self.lessons_for(Subject.skill(task_type))

    def traps_of(self, task_type: str) -> list[Trap]:
        """The traps of a class's skill."""
        return self.traps_for(Subject.skill(task_type))

    def fillers_of(self, task_type: str) -> list[str]:
        """The lines without effect of a class's skill."""
        return self.fillers_for(Subject.skill(task_type))


def load_catalog(world: Path, questions: Path) -> Catalog:
    """Read ``world.json`` and ``questions.jsonl``.

    Raises LoadError naming the file and the key at fault.
    """
    planted = _load_world(world)
    truth = {question.question_id: question for question in planted.questions}
    entries: list[Entry] = []
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(_read(questions).splitlines(), start=1):
        if not line.strip():
            continue
        entry = _entry(line, f"{questions}:{number}", truth, world)
        key = (entry.row.video_id, entry.row.question.strip())
        if key in seen:
            raise LoadError(f"{questions}:{number}: question: the same text twice in one video")
        seen.add(key)
        entries.append(entry)
    unasked = truth.keys() - {entry.row.question_id for entry in entries}
    if unasked:
        raise LoadError(f"{world}: questions: {min(unasked)!r} is not in {questions}")
    return Catalog(planted, tuple(entries))


def _load_world(path: Path) -> World:
    try:
        world = load_world(_read(path))
    except msgspec.DecodeError as error:
        raise LoadError(f"{path}: {error}") from error
    found = problems(world)
    if found:
        raise LoadError("\n".join(f"{path}: {problem}" for problem in found))
    return world


def _entry(line: bytes, place: str, truth: dict[str, Planted], world: Path) -> Entry:
    try:
        row = msgspec.json.decode(line, type=Row)
    except msgspec.DecodeError as error:
        raise LoadError(f"{place}: {error}") from error
    if row.answer not in LABELS[: len(row.options)] or len(row.answer) != 1:
        raise LoadError(f"{place}: answer: {row.answer!r} is no letter of the options")
    if row.question_id not in truth:
        raise LoadError(f"{place}: question_id: {row.question_id!r} is not planted in {world}")
    bodies = tuple(
        body.removeprefix(f"{LABELS[at]}. ").strip() for at, body in enumerate(row.options)
    )
    row = msgspec.structs.replace(row, options=bodies)
    return Entry(row, truth[row.question_id], LABELS.index(row.answer))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}") from error
