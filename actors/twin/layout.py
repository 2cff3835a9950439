"""Reading what agent and judge are sent: the layouts of the prompts, as types.

What the editor is sent is read in ``briefs``. Pure, and strict: a request without one of its
blocks is refused with the block's name. The simulator never guesses what a prompt may have meant.
"""

from __future__ import annotations

import re
from typing import NoReturn

import msgspec

__all__ = [
    "LABELS",
    "JudgeBrief",
    "LayoutError",
    "QuestionBlock",
    "body_of",
    "choice_of",
    "fenced",
    "judge_brief",
    "lacks",
    "prompts_of",
    "question_block",
    "strategy_of",
    "task_type_of",
]

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_STRATEGY = re.compile(r"^# Strategy for this task type[ \t]*\n", re.MULTILINE)
_CHOICE = re.compile(r"^# Strategies[ \t]*\n", re.MULTILINE)
_OFFERED = re.compile(r"^- ([^:\n]+): ", re.MULTILINE)
_FRONT = re.compile(r"\A---\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_TASK_TYPE = re.compile(r"^task_type:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NUMBERS = re.compile(r"[0-9]{1,9}(?:, [0-9]{1,9})*")


class LayoutError(ValueError):
    """A request lacks a block, or a block cannot be read; the message names it."""


class QuestionBlock(msgspec.Struct, frozen=True):
    """A question as it stands in a prompt; options are bodies without labels.

    task_type: empty where the prompt does not tell it.
    """

    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]


class JudgeBrief(msgspec.Struct, frozen=True):
    """What the judge is asked. given: the agent's letter, None if it gave none.

    graded: the steps whose calls it has to grade.
    """

    block: QuestionBlock
    correct: str
    given: str | None
    skill: str
    trajectory: str
    graded: tuple[int, ...]


def question_block(text: str, *, labelled: bool = True) -> QuestionBlock:
    """Read the lines ``Video:`` to the options.

    labelled: whether the class stands there. Raises LayoutError naming what is missing, or that
    the class is told where it should not be.
    """
    video_id = _field(text, "Video")
    task_type = _field(text, "Task type") if labelled else ""
    if not labelled and re.search(r"^Task type:", text.partition("\nQuestion:\n")[0], re.MULTILINE):
        raise LayoutError("'Task type:' stands where the agent is to choose its strategy")
    _, mark, rest = text.partition("\nQuestion:\n")
    if not mark:
        lacks("Question:")
    question, mark, tail = rest.partition("\n\nOptions:\n")
    if not mark:
        lacks("Options:")
    options: list[str] = []
    for line in tail.split("\n"):
        if len(options) < len(LABELS) and line.startswith(f"{LABELS[len(options)]}. "):
            options.append(line[3:])
        elif line.strip() and options:
            options[-1] += f"\n{line}"  # a body of several lines
        else:
            break
    if len(options) < 2:
        raise LayoutError("the block 'Options:' has fewer than two labelled lines")
    return QuestionBlock(video_id, task_type, question.strip(), tuple(options))


def judge_brief(text: str) -> JudgeBrief:
    """Read the judge's blocks. Raises LayoutError naming what is missing."""
    block = question_block(text)
    letters = LABELS[: len(block.options)]
    correct = _field(text, "Correct answer")
    given = _field(text, "Agent's answer")
    if correct not in letters:
        raise LayoutError(f"'Correct answer: {correct}' is no letter of the options")
    return JudgeBrief(
        block=block,
        correct=correct,
        given=None if given == "none" else given,
        skill=fenced(text, "SKILL"),
        trajectory=fenced(text, "TRAJECTORY"),
        graded=_numbers(text[text.rfind("\nTRAJECTORY>>>") :], "Calls to grade"),
    )


def strategy_of(system: str) -> str:
    """The skill's body in the agent's system message. Raises LayoutError without it."""
    found = _STRATEGY.search(system)
    if found is None:
        lacks("# Strategy for this task type")
    return system[found.end() :].lstrip("\n")


def prompts_of(system: str) -> str:
    """What stands before strategy or choice in the system message: system and tool prompts."""
    found = _STRATEGY.search(system) or _CHOICE.search(system)
    return system if found is None else system[: found.start()]


def choice_of(system: str) -> tuple[str, ...] | None:
    """The strategies to choose from, by name; None: the agent is given one.

    Raises LayoutError for a choice of nothing.
    """
    found = _CHOICE.search(system)
    if found is None:
        return None
    names = tuple(_OFFERED.findall(system, found.end()))
    if not names:
        raise LayoutError("the block '# Strategies' names none")
    return names


def body_of(skill_text: str) -> str:
    """A skill without its front matter; a text that has none is returned as it is."""
    found = _FRONT.match(skill_text)
    return skill_text if found is None else skill_text[found.end() :]


def task_type_of(skill_text: str) -> str:
    """The class in a skill's front matter. Raises LayoutError without it."""
    front = _FRONT.match(skill_text)
    found = None if front is None else _TASK_TYPE.search(front.group(1))
    if found is None:
        raise LayoutError("the skill's front matter has no 'task_type:'")
    return found.group(1)


def _field(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}: (.*?)[ \t]*$", text, re.MULTILINE)
    if found is None:
        lacks(f"{name}:")
    return found.group(1)


def _numbers(text: str, name: str) -> tuple[int, ...]:
    """``1, 3`` or ``none``."""
    said = _field(text, name)
    if said == "none":
        return ()
    if not _NUMBERS.fullmatch(said):
        raise LayoutError(f"'{name}: {said}' is no list of numbers")
    return tuple(int(number) for number in said.split(", "))


def fenced(text: str, name: str) -> str:
    """What stands between ``<<<NAME`` and ``NAME>>>``. Raises LayoutError without it."""
    start, end = f"<<<{name}\n", f"\n{name}>>>"
    begin = text.find(start)
    # From the right: a trajectory or a skill may itself hold the closing line.
    finish = text.rfind(end)
    if begin < 0 or finish < begin:
        lacks(f"<<<{name}")
    return text[begin + len(start) : max(finish, begin + len(start))]


def lacks(block: str) -> NoReturn:
    """Refuse a request without one of its blocks. Raises LayoutError naming it."""
    raise LayoutError(f"the request lacks the block {block!r}")
