"""What an edit is really worth: the planted truth that a gate's verdict is held against.

Pure. Nothing that trains may read it; tests and reports may.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from actors.twin.layout import body_of
from actors.twin.world import World, true_accuracy
from protocol.dataset import Question

__all__ = ["Worth", "class_accuracy", "classify"]

Worth = Literal["helpful", "useless", "harmful"]
_THRESHOLD = 1e-9


def class_accuracy(
    world: World, questions: Iterable[Question], task_type: str, skill_text: str
) -> float:
    """The mean true accuracy in (0, 1) of a class's questions under a skill (file or body).

    Questions of other classes are passed over. Raises KeyError for a question that the world
    does not know, ValueError if the class has no question among them.
    """
    planted = {question.question_id: question for question in world.questions}
    body = body_of(skill_text)
    values = [
        true_accuracy(world, planted[question.question_id], task_type, body)
        for question in questions
        if question.task_type == task_type
    ]
    if not values:
        raise ValueError(f"no question of class {task_type!r}")
    return sum(values) / len(values)


def classify(gain: float) -> Worth:
    """The verdict on a difference of accuracies, candidate minus current."""
    if gain > _THRESHOLD:
        return "helpful"
    return "harmful" if gain < -_THRESHOLD else "useless"
