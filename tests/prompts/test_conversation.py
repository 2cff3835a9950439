"""Asking for a typed reply: what is no reply, and what the model is told about it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.diagnoser.judge import JudgeReply
from actors.evolver.prompt import EditorReply
from prompts.conversation import NotUnderstood, Understood, ask_for
from prompts.templates import Template, load_templates
from protocol.base import Scope
from protocol.llm import Chat, ChatAnswer, Usage

pytestmark = pytest.mark.anyio

JUDGED = (
    '{"calls": [], "missed_nodes": [], "evidence_sufficient": true, "reasoning_failure": null,'
    ' "finding": "It stopped at the first hit.", "rule": "Look twice.", "followed": "no",'
    ' "cause": "lapse"}'
)


class Model:
    """Replies in order; keeps what it was asked."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.asked: list[Chat] = []
        self._replies = iter(replies)

    async def __call__(self, chat: Chat) -> ChatAnswer:
        self.asked.append(chat)
        text = next(self._replies)
        return ChatAnswer(text=text, finish="stop", usage=Usage(), endpoint="m", cached=False)


def template(name: str) -> Template:
    return load_templates([name])[name]


def example(name: str) -> str:
    return [line for line in template(name).text.splitlines() if line.startswith('{"')][-1]


async def test_a_repeated_example_is_asked_again() -> None:
    """A small model sends the illustration back; that is no finding."""
    model = Model([example("diagnose_answer"), JUDGED])
    illustration = template("diagnose_answer").illustration
    outcome = await ask_for(
        model, "judge", "Judge.", JudgeReply, Scope(), illustration=illustration
    )
    assert isinstance(outcome, Understood)
    assert outcome.value.finding == "It stopped at the first hit."
    assert outcome.parse_failures == 1
    assert "repeats the example" in str(model.asked[1].messages[-1].content)


async def test_an_editor_that_only_repeats_is_not_understood() -> None:
    """The example edit must never reach a document, nor stand as an edit that did not fit."""
    model = Model([example("evolve_skill")] * 2)
    illustration = template("evolve_skill").illustration
    outcome = await ask_for(
        model, "evolve", "Edit.", EditorReply, Scope(), illustration=illustration
    )
    assert isinstance(outcome, NotUnderstood)
    assert outcome.parse_failures == 2


@pytest.mark.parametrize("name", ["diagnose_answer", "evolve_skill"])
def test_an_illustration_holds_sentences_only(name: str) -> None:
    """Words of a closed list, such as a cause, are no sign of copying."""
    texts = template(name).illustration
    assert texts
    assert all(" " in text for text in texts)
    assert not texts & {"defect", "evidence_ignored", "insert_after"}


async def test_a_reply_that_cannot_be_is_asked_again_with_the_problem() -> None:
    """The right form is not enough: what a check says goes back to the model, once."""

    def check(reply: JudgeReply) -> str | None:
        return "there is no such rule" if reply.rule == "Look twice." else None

    model = Model([JUDGED, JUDGED.replace("Look twice.", "none")])
    outcome = await ask_for(
        model, "judge", "Judge.", JudgeReply, Scope(), illustration=frozenset(), check=check
    )
    assert isinstance(outcome, Understood)
    assert (outcome.value.rule, outcome.calls, outcome.parse_failures) == ("none", 2, 1)
    assert "could not be read: there is no such rule." in str(model.asked[1].messages[-1].content)

    model = Model([JUDGED] * 2)
    outcome = await ask_for(
        model, "judge", "Judge.", JudgeReply, Scope(), illustration=frozenset(), check=check
    )
    assert isinstance(outcome, NotUnderstood)
    assert (outcome.problem, outcome.parse_failures) == ("there is no such rule", 2)
