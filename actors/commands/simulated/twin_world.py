"""The simulator's own world as a planted one: its questions, lessons, traps, fillers. Pure.

A question of a class that trains is a unit, a question of the test pool a fresh one. Its logit is
what the simulator answers by under the seed's documents. An edit is a line that the simulated
editor would write: a lesson raises the questions that need it, a trap lowers every question of the
class, a filler does nothing. No lesson or trap comes twice; where none is left a filler comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from actors.commands.simulated.planted import Candidate, Floats, Planted
from actors.twin.layout import body_of
from actors.twin.shares import Shares
from actors.twin.truth import prompts_text
from actors.twin.world import SKILL, World, holds, true_accuracy
from protocol.dataset import Question
from protocol.documents import PackageTexts

__all__ = ["TwinSetting", "plant_twin"]

_LINES = 11  # what a generator of a seed is for, beside those of ``planted``
_IDLE = Candidate(0, 0.0)


class TwinSetting(msgspec.Struct, frozen=True, kw_only=True):
    """diag: questions by class that trains; test: of these classes. texts: what a run begins with.

    shares: of the editor's proposals; those that cannot be read are left out.
    """

    world: World
    diag: Mapping[str, Sequence[Question]]
    test: Sequence[Question]
    texts: PackageTexts
    shares: Shares
    n_epochs: int
    n_candidates: int


def plant_twin(seed: int, setting: TwinSetting) -> Planted:
    """The world of a seed: the same questions for all, other edits in another order.

    Raises KeyError for a question that the world does not know.
    """
    names = tuple(sorted(name for name in setting.diag if _fresh_of(setting, name)))
    draw = np.random.default_rng([seed, _LINES])
    return Planted(
        seed=seed,
        names=names,
        logits=tuple(_logits(setting, name, setting.diag[name]) for name in names),
        fresh=tuple(_logits(setting, name, _fresh_of(setting, name)) for name in names),
        candidates=tuple(_stream(setting, name, draw) for name in names),
    )


def _fresh_of(setting: TwinSetting, name: str) -> list[Question]:
    return [question for question in setting.test if question.task_type == name]


def _logits(setting: TwinSetting, name: str, questions: Iterable[Question]) -> Floats:
    planted = {one.question_id: one for one in setting.world.questions}
    body = body_of(setting.texts.skill_for(name).text)
    prompts = prompts_text(setting.texts.prompts)
    right = [
        true_accuracy(setting.world, planted[one.question_id], name, body, prompts)
        for one in questions
    ]
    return np.array([math.log(p / (1.0 - p)) for p in right])


def _stream(
    setting: TwinSetting, name: str, draw: np.random.Generator
) -> tuple[tuple[Candidate, ...], ...]:
    """The class's edits, [epoch][nth]."""
    lessons, traps = _lessons(setting, name), _traps(setting, name)
    left = {
        "helpful": [lessons[place] for place in draw.permutation(len(lessons))],
        "harmful": [traps[place] for place in draw.permutation(len(traps))],
    }
    shares = setting.shares
    whole = shares.helpful + shares.useless + shares.harmful
    edits = []
    for _ in range(setting.n_epochs * setting.n_candidates):
        drawn = float(draw.random()) * whole
        kind = "helpful" if drawn < shares.helpful else "harmful"
        idle = shares.helpful + shares.harmful <= drawn
        edits.append(_IDLE if idle or not left[kind] else left[kind].pop())
    n = setting.n_candidates
    return tuple(tuple(edits[at : at + n]) for at in range(0, len(edits), n))


def _lessons(setting: TwinSetting, name: str) -> list[Candidate]:
    found = []
    for lesson in setting.world.lessons:
        if (lesson.document, lesson.task_type) == (SKILL, name) and not _said(
            setting, name, lesson.key
        ):
            on = _needing(setting, setting.diag[name], lesson.lesson_id)
            fresh_on = _needing(setting, _fresh_of(setting, name), lesson.lesson_id)
            worth = 1 if on or fresh_on else 0
            found.append(Candidate(worth, lesson.gain, on, fresh_on))
    return found


def _traps(setting: TwinSetting, name: str) -> list[Candidate]:
    return [
        Candidate(-1, -trap.harm)
        for trap in setting.world.traps
        if (trap.document, trap.task_type) == (SKILL, name) and not _said(setting, name, trap.key)
    ]


def _said(setting: TwinSetting, name: str, key: str) -> bool:
    """Whether the seed's documents hold the key already."""
    return holds(body_of(setting.texts.skill_for(name).text), key) or holds(
        prompts_text(setting.texts.prompts), key
    )


def _needing(
    setting: TwinSetting, questions: Sequence[Question], lesson_id: str
) -> tuple[int, ...]:
    needs = {one.question_id: one.needs for one in setting.world.questions}
    return tuple(
        place for place, one in enumerate(questions) if lesson_id in needs[one.question_id]
    )
