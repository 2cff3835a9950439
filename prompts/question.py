"""A question in words: the one layout that agent, judge and editor read.

The gold answer has no place here; who may see it adds it on a line of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.dataset import PublicQuestion

__all__ = ["labelled", "letter_of", "question_block"]


def letter_of(position: int) -> str:
    """The label of an option: 0 is A."""
    return chr(ord("A") + position)


def labelled(options: Sequence[str]) -> str:
    """``A. <body>`` and so on, one line each."""
    return "\n".join(f"{letter_of(index)}. {body}" for index, body in enumerate(options))


def question_block(question: PublicQuestion, *, task_type: bool = True) -> str:
    """Video, task type, question and labelled options.

    task_type: false where the benchmark's label must not be seen.
    """
    label = f"Task type: {question.task_type}\n" if task_type else ""
    return (
        f"Video: {question.video_id}\n"
        f"{label}"
        f"\nQuestion:\n{question.question}\n"
        f"\nOptions:\n{labelled(question.options)}"
    )
