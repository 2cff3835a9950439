"""What the editor of a momentum region is shown, and the form of its reply. Pure.

The gold letter is never shown. Neither is it given away by the trajectories of right answers:
letters of options, long option texts and ids are taken out of every step, before it is shortened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from actors.evolver.blocks import case_block
from actors.evolver.leak import Exposed
from actors.evolver.momentum import MAX_LINE_CHARS, room_for_lines
from prompts.question import labelled
from prompts.templates import Template
from prompts.trajectory import clip, render_steps, submission_of
from prompts.withhold import cleaned, fitted
from protocol.dataset import Question
from protocol.documents import Skill
from protocol.rollout import Step
from protocol.settings import EvolverSettings
from protocol.slow import Change, Compared, changed_first

__all__ = ["MOST_SHOWN", "MomentumReply", "Pair", "exposed_by", "momentum_prompt", "shown_of"]

MOST_SHOWN: dict[Change, int] = {"regressed": 6, "persistent": 5, "improved": 3, "stable": 2}
"""Cases in the prompt; the counts say how many there were. Every kind has its place."""

_MOST_QUESTION_CHARS = 1500


class MomentumReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply that ``prompts/slow_momentum.md`` asks for. Thinking comes before the rules."""

    reasoning: str = ""
    momentum: tuple[str, ...]


class Pair(msgspec.Struct, frozen=True):
    """A compared question with the steps of both attempts."""

    compared: Compared
    before: tuple[Step, ...]
    after: tuple[Step, ...]


def momentum_prompt(
    template: Template, skill: Skill, pairs: Sequence[Pair], settings: EvolverSettings
) -> str:
    """The filled template. pairs: every compared question, shown or not."""
    shown = shown_of(pairs)
    chars = _trace_chars(len(shown), settings)
    found = Counter(pair.compared.change for pair in pairs)
    return template.fill(
        skill=skill.text,
        momentum_chars=str(room_for_lines(settings.max_momentum_chars)),
        line_chars=str(MAX_LINE_CHARS),
        counts=", ".join(f"{found[change]} {change}" for change in get_args(Change)),
        compared="\n\n".join(_render(pair, chars) for pair in shown),
    )


def shown_of(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The cases of the prompt: regressed first, and of every kind a few."""
    by_question = {pair.compared: pair for pair in pairs}
    taken: Counter[Change] = Counter()
    shown: list[Pair] = []
    for compared in changed_first(by_question):
        if taken[compared.change] < MOST_SHOWN[compared.change]:
            taken[compared.change] += 1
            shown.append(by_question[compared])
    return tuple(shown)


def exposed_by(pair: Pair) -> Exposed:
    """The question, and what the agent read in both attempts."""
    steps = (*pair.before, *pair.after)
    read = [step.observation for step in steps]
    handed_in = [submission_of(side) for side in (pair.before, pair.after)]
    evidence = [submission.evidence for submission in handed_in if submission is not None]
    return Exposed(pair.compared.question, (*read, *evidence))


def _trace_chars(n_shown: int, settings: EvolverSettings) -> int:
    """Of one trajectory: all together take as much room as a minibatch of the skill's editor."""
    room = settings.minibatch * settings.max_trace_chars
    return max(1, min(settings.max_trace_chars, room // max(1, 2 * n_shown)))


def _render(pair: Pair, max_chars: int) -> str:
    question, change = pair.compared.question, pair.compared.change
    before = "right" if change in ("regressed", "stable") else "wrong"
    after = "right" if change in ("improved", "stable") else "wrong"
    asked = f"Question: {question.question}\n{labelled(question.options)}"
    return case_block(
        question.question_id,
        change,
        (
            clip(asked, _MOST_QUESTION_CHARS),
            f"First attempt, with the skill as it was: {before}",
            _trace(pair.before, question, max_chars),
            f"Second attempt, with the skill as it is: {after}",
            _trace(pair.after, question, max_chars),
        ),
    )


def _trace(steps: Sequence[Step], question: Question, max_chars: int) -> str:
    clean = [cleaned(step, question) for step in steps]
    return fitted(render_steps(clean, max_chars), question, max_chars)
