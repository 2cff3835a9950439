"""The planted world: what the simulator knows and nobody else does.

A question is answered right with probability ``sigmoid(base + gains - harms)``: the
gain of every lesson it needs whose key stands in the skill text, the harm of every
trap of its class whose key does. All of it is a pure function, so that the truth of
an edit can be computed and set beside the gate's verdict.
"""

from __future__ import annotations

import math
import re

import msgspec

__all__ = ["Filler", "Lesson", "Planted", "Trap", "World", "holds", "load_world", "true_accuracy"]

_SPACES = re.compile(r"\s+")


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """Something a good skill of its class says.

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


class Trap(msgspec.Struct, frozen=True, kw_only=True):
    """A harmful line for a class. harm: in logits, positive, for all its questions."""

    trap_id: str
    task_type: str
    key: str
    text: str
    harm: float


class Filler(msgspec.Struct, frozen=True, kw_only=True):
    """A line without any effect, plausible to read."""

    task_type: str
    text: str


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


def holds(text: str, key: str) -> bool:
    """Whether a text says a key, case and white space aside."""
    return _SPACES.sub(" ", key).casefold() in _SPACES.sub(" ", text).casefold()


def true_accuracy(world: World, planted: Planted, task_type: str, skill_text: str) -> float:
    """The probability in (0, 1) that the question is answered right under a skill."""
    logit = planted.base
    logit += sum(
        lesson.gain
        for lesson in world.lessons
        if lesson.lesson_id in planted.needs and holds(skill_text, lesson.key)
    )
    logit -= sum(
        trap.harm
        for trap in world.traps
        if trap.task_type == task_type and holds(skill_text, trap.key)
    )
    return 1.0 / (1.0 + math.exp(-logit))
