"""Endpoints on which no edit does anything, and which do everything else to mislead a test.

An answer depends on the question, on when and in which arm it was asked, and on what failed just
then; on a document only where its edits know the very question by heart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import msgspec

from protocol.rollout import Missed, Rollout

__all__ = ["WORLDS", "Endpoint", "World"]

_BLOCK = 24  # answers that a burst hits one after the other


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What decides an answer beside its question.

    drift: logits added over the run, evenly with the answers given.
    arm: logits that arm a is better by, as if the second of two draws found a busier endpoint.
    burst: chance that a block of answers is wrong in one arm altogether, in each arm on its own.
    video: chance that a video's answers are all wrong in a phase.
    lost: chance that a wrong answer of arm b is lost; half of the losses last and void the pair,
        the others are made good by another, perhaps better answer.
    memorised: logits that an edit adds on a question that its document names.
    """

    drift: float = 0.0
    arm: float = 0.0
    burst: float = 0.0
    video: float = 0.0
    lost: float = 0.0
    memorised: float = 0.0


WORLDS: Mapping[str, World] = {
    "plain": World(),
    "drift": World(drift=2.0, arm=0.8),
    "bursts": World(burst=0.2, video=0.15, arm=0.4),
    "memorise": World(memorised=4.0),
    "losses": World(lost=0.5, arm=0.4),
}
"""A steady endpoint; one that becomes better and prefers an arm; failures that come together, in
time and per video; edits that know by heart what they were shown; a loss of wrong answers."""


class Endpoint:
    """Answers rollouts. n_answers: about as many will be asked for."""

    def __init__(self, world: World, seed: int, n_answers: int) -> None:
        self._world = world
        self._seed = seed
        self._n_answers = n_answers
        self._luck = random.Random(f"luck {seed}")
        self._logits: dict[str, float] = {}
        self._gone: set[tuple[str, str]] = set()
        self.asked = 0

    def answer(self, request: Rollout) -> bool | Missed:
        """Right, wrong or lost."""
        self.asked += 1
        world, question = self._world, request.question
        tested = request.run_key.startswith("factorial/")
        arm = request.run_key[-1] if tested else ""
        drawn = (request.run_key, question.question_id)
        if drawn in self._gone:
            return Missed(question_id=question.question_id, kind="tree", detail="")
        logit = self._logit(question.question_id) + world.drift * self.asked / self._n_answers
        logit += world.arm * (arm == "a")
        if world.memorised:
            said = f"{request.skill.text} {request.prompts.system}".split()
            logit += world.memorised * said.count(question.question_id)
        right = self._luck.random() < 1.0 / (1.0 + math.exp(-logit))
        if tested:
            right = right and not self._fails(request, arm)
            if not right and arm == "b" and self._luck.random() < world.lost:
                if self._luck.random() < 0.5:
                    self._gone.add(drawn)
                return Missed(question_id=question.question_id, kind="timeout", detail="")
        return right

    def _logit(self, question_id: str) -> float:
        """Of the study's population: .6 Beta(18, 2) + .2 Beta(4, 16) + .2 Beta(10, 10)."""
        known = self._logits.get(question_id)
        if known is None:
            draw = random.Random(f"question {self._seed} {question_id}")
            a, b = draw.choices(((18, 2), (4, 16), (10, 10)), (0.6, 0.2, 0.2))[0]
            p = draw.betavariate(a, b)
            known = self._logits[question_id] = math.log(p / (1.0 - p))
        return known

    def _fails(self, request: Rollout, arm: str) -> bool:
        phase = request.run_key.split("/")[2]
        burst = f"burst {self.asked // _BLOCK} {arm}"
        video = f"video {phase} {request.question.video_id}"
        return self._happens(burst, self._world.burst) or self._happens(video, self._world.video)

    def _happens(self, what: str, chance: float) -> bool:
        return chance > 0 and random.Random(f"{self._seed} {what}").random() < chance
