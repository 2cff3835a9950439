"""Links inside the page: to a question in one of its passes, to a candidate. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from actors.commands.html.markup import Markup, el
from actors.commands.html.passes import Pass
from actors.commands.html.story import Questioned

__all__ = ["Links", "anchor", "ids_in"]


def anchor(run_key: str) -> str:
    """The id of a candidate's or a slow update's place in the page."""
    return "c-" + re.sub(r"[^A-Za-z0-9]+", "-", run_key).strip("-")


def ids_in(support: str) -> tuple[str, ...]:
    """The question ids in a row's JSON; what is none of ours is shown as it is."""
    try:
        return msgspec.json.decode(support, type=tuple[str, ...])
    except msgspec.MsgspecError:
        return (support,) if support else ()


class Links:
    """Knows the places of questions and passes."""

    def __init__(self, questions: Sequence[Questioned], passes: Sequence[Pass]) -> None:
        self._questions = {one.question_id: number for number, one in enumerate(questions)}
        self._passes = {one.key: number for number, one in enumerate(passes)}

    def to(self, question_id: str, run_key: str = "") -> Markup:
        """A link that opens the question, at that pass where it has it."""
        number = self._questions.get(question_id)
        if number is None:
            return el("bdi.ask", question_id)
        return el(
            "a.ask",
            el("bdi", question_id),
            href=f"#q-{number}",
            data_q=number,
            data_p=self._passes.get(run_key),
        )
