"""What an edit is really worth: the planted truth that a gate's verdict is held against.

Pure. Nothing that trains may read it; tests and reports may.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from actors.twin.layout import body_of
from actors.twin.world import World, true_accuracy
from protocol.dataset import Question
from protocol.documents import PackageTexts, Prompts

__all__ = ["Worth", "class_accuracy", "classify", "package_accuracy", "prompts_text"]

Worth = Literal["helpful", "useless", "harmful"]
_THRESHOLD = 1e-9


def class_accuracy(
    world: World,
    questions: Iterable[Question],
    task_type: str,
    skill_text: str,
    prompts_text: str = "",
) -> float:
    """The mean true accuracy in (0, 1) of a class's questions under a skill (file or body).

    prompts_text: system prompt and tool prompts beside it, see the function of that name.
    Questions of other classes are passed over. Raises KeyError for a question that the world
    does not know, ValueError if the class has no question among them.
    """
    planted = {question.question_id: question for question in world.questions}
    body = body_of(skill_text)
    values = [
        true_accuracy(world, planted[question.question_id], task_type, body, prompts_text)
        for question in questions
        if question.task_type == task_type
    ]
    if not values:
        raise ValueError(f"no question of class {task_type!r}")
    return sum(values) / len(values)


def package_accuracy(world: World, questions: Iterable[Question], texts: PackageTexts) -> float:
    """The mean true accuracy in (0, 1) of all the questions under a package.

    Raises KeyError for a question that the world does not know, ValueError without questions.
    """
    planted = {question.question_id: question for question in world.questions}
    prompts = prompts_text(texts.prompts)
    values = [
        true_accuracy(
            world,
            planted[question.question_id],
            question.task_type,
            body_of(texts.skill_for(question.task_type).text),
            prompts,
        )
        for question in questions
    ]
    if not values:
        raise ValueError("no question")
    return sum(values) / len(values)


def prompts_text(prompts: Prompts) -> str:
    """Everything that an agent is told beside its skill: the system prompt, then the tools'."""
    return "\n\n".join([prompts.system, *(tool.text for tool in prompts.tools)])


def classify(gain: float) -> Worth:
    """The verdict on a difference of accuracies, candidate minus current."""
    if gain > _THRESHOLD:
        return "helpful"
    return "harmful" if gain < -_THRESHOLD else "useless"
