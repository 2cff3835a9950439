"""The planted world: what the simulator knows and nobody else does.

A question is answered right with probability ``sigmoid(base + gains - harms)``: the
gain of every lesson it needs whose key the agent is told, the harm of every trap of
its class that it is told. Told is told, in whichever of its documents: skill (body,
appendix, momentum), system prompt, tool prompts. Which document a lesson is *for*
matters to the editor alone. All of it is a pure function, so that the truth of an
edit can be computed and set beside the gate's verdict.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

import msgspec

__all__ = [
    "SKILL",
    "Filler",
    "Lesson",
    "Planted",
    "Subject",
    "Trap",
    "World",
    "fold",
    "holds",
    "load_world",
    "problems",
    "true_accuracy",
]

SKILL = "skill"
"""Document of the lines that belong into a class's skill; others: ``system``, a tool's name."""

_SPACES = re.compile(r"\s+")


class Subject(msgspec.Struct, frozen=True):
    """What a line is for: a document, and the class if it is a skill (else empty)."""

    document: str
    task_type: str

    @classmethod
    def skill(cls, task_type: str) -> Subject:
        """The skill of a class."""
        return cls(SKILL, task_type)

    @classmethod
    def prompt(cls, document: str) -> Subject:
        """The system prompt or a tool prompt: one for all classes."""
        return cls(document, "")


class Lesson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something a good document says.

    task_type: the class; empty for a lesson of a prompt. document: see ``SKILL``.
    key: the words whose presence (case and spacing aside) means that it is known.
    text: one Markdown line that teaches it and holds the key.
    topic: a few words that a judge would use to name what was missing.
    gain: in logits, for the questions that need it.
    """

    lesson_id: str
    task_type: str
    key: str
    text: str
    topic: str
    gain: float
    document: str = SKILL

    @property
    def subject(self) -> Subject:
        """What it is for."""
        return Subject(self.document, self.task_type)


class Trap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A harmful line. task_type, document: as of ``Lesson``.

    harm: in logits, positive, for all questions of the class; of every class for a prompt's trap.
    """

    trap_id: str
    task_type: str
    key: str
    text: str
    harm: float
    document: str = SKILL

    @property
    def subject(self) -> Subject:
        """What it is for."""
        return Subject(self.document, self.task_type)


class Filler(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line without any effect, plausible to read. task_type, document: as of ``Lesson``."""

    task_type: str
    text: str
    document: str = SKILL

    @property
    def subject(self) -> Subject:
        """What it is for."""
        return Subject(self.document, self.task_type)


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A question's truth. base: logit of being right without any lesson."""

    question_id: str
    base: float
    needs: tuple[str, ...]


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything planted."""

    name: str
    lessons: tuple[Lesson, ...]
    traps: tuple[Trap, ...]
    fillers: tuple[Filler, ...]
    questions: tuple[Planted, ...]


def load_world(raw: bytes) -> World:
    """Decode ``world.json``. Raises msgspec.ValidationError with the path of what is wrong."""
    return msgspec.json.decode(raw, type=World)


def fold(text: str) -> str:
    """A text with case and white space evened out."""
    return _SPACES.sub(" ", text).strip().casefold()


# A skill is asked for dozens of keys in every request, and the same few skills come again and
# again. Keys have a cache of their own, so that long texts cannot push them out.
_folded_key = lru_cache(maxsize=4096)(fold)
_folded_text = lru_cache(maxsize=128)(fold)


def holds(text: str, key: str) -> bool:
    """Whether a text says a key, case and white space aside."""
    return _folded_key(key) in _folded_text(text)


def true_accuracy(
    world: World, planted: Planted, task_type: str, skill_text: str, prompts_text: str = ""
) -> float:
    """The probability in (0, 1) that the question is answered right under a package.

    skill_text: the body of the skill, its regions included. prompts_text: system prompt and
    tool prompts; empty where they say nothing of the world, as the demo's first ones.
    """

    def told(key: str) -> bool:
        return holds(skill_text, key) or holds(prompts_text, key)

    logit = planted.base
    logit += sum(
        lesson.gain
        for lesson in world.lessons
        if lesson.lesson_id in planted.needs and told(lesson.key)
    )
    logit -= sum(
        trap.harm for trap in world.traps if trap.task_type in ("", task_type) and told(trap.key)
    )
    return 1.0 / (1.0 + math.exp(-logit))


def problems(world: World) -> list[str]:
    """What is inconsistent, one line each; a world with none keeps its own promises."""
    lessons = [(lesson.lesson_id, lesson.key, lesson.text) for lesson in world.lessons]
    traps = [(trap.trap_id, trap.key, trap.text) for trap in world.traps]
    lines = [*lessons, *traps]
    found = _repeated("lesson or trap", [name for name, _, _ in lines])
    found += _repeated("question", [question.question_id for question in world.questions])
    known = {lesson.lesson_id for lesson in world.lessons}
    for question in world.questions:
        found += [
            f"question {question.question_id}: needs the unknown lesson {name!r}"
            for name in question.needs
            if name not in known
        ]
        if not math.isfinite(question.base):
            found.append(f"question {question.question_id}: base is {question.base}")
    strengths = [(lesson.lesson_id, "gain", lesson.gain) for lesson in world.lessons]
    strengths += [(trap.trap_id, "harm", trap.harm) for trap in world.traps]
    found += [
        f"{name}: {what} is {value}, must be positive"
        for name, what, value in strengths
        if not (math.isfinite(value) and value > 0)
    ]
    said = [(name, text) for name, _, text in lines]
    said += [(f"filler {filler.text!r}", filler.text) for filler in world.fillers]
    found += [
        f"{name}: a skill's line has a task_type, a prompt's has none, not {subject}"
        for name, subject in _subjects(world)
        if (subject.document == SKILL) != bool(subject.task_type)
    ]
    found += [
        f"{name}: the line must be one Markdown bullet, not {text!r}"
        for name, text in said
        if not text.startswith("- ") or len(text.splitlines()) != 1
    ]
    for owner, key, _ in lines:
        holders = [name for name, text in said if holds(text, key)]
        if not fold(key) or holders != [owner]:
            found.append(f"{owner}: key {key!r} must stand in its own line alone, not in {holders}")
    return found


def _subjects(world: World) -> list[tuple[str, Subject]]:
    found = [(lesson.lesson_id, lesson.subject) for lesson in world.lessons]
    found += [(trap.trap_id, trap.subject) for trap in world.traps]
    return found + [(f"filler {filler.text!r}", filler.subject) for filler in world.fillers]


def _repeated(what: str, names: list[str]) -> list[str]:
    return [f"{what} {name!r} is there {n} times" for name, n in Counter(names).items() if n > 1]
