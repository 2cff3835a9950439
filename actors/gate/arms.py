"""Which draws a stage of a test is made of: names and salts of both arms. Pure.

The first stage compares with the snapshot in force. The second has a snapshot and candidate
draws that serve this one test, so that nothing that was seen before can have chosen them. A null
comparison is a first stage whose candidate is the current text under a salt of its own.
"""

from __future__ import annotations

import msgspec

from protocol.base import Scope
from protocol.dataset import Question, Unit
from protocol.gate import Trial
from protocol.keys import candidate_salt, confirm_salt, null_salt
from protocol.rollout import Rollout

__all__ = ["Arms", "arms_of", "job_of"]


class Arms(msgspec.Struct, frozen=True, kw_only=True):
    """One stage's. order: the units as they will be asked; the fields below as of GetSnapshot."""

    trial: Trial
    seed: int
    epoch: int
    order: tuple[Unit, ...]
    generation: int
    confirms: str = ""

    def block_key(self, index: int) -> str:
        """The candidate's pass over a block."""
        stage = "confirm" if self.confirms else "gate"
        return f"{self.trial.run_key}/{stage}/b{index}"

    def block_salt(self, index: int) -> str:
        """The candidate's salt there: epoch, block and candidate, or what serves in its place."""
        candidate, task_type = self.trial.candidate.hash, self.order[0].task_type
        if self.confirms:
            return confirm_salt(self.seed, self.confirms, index, candidate)
        if self.trial.null_index is not None:
            return null_salt(self.seed, self.trial.null_index, task_type, index, candidate)
        return candidate_salt(self.seed, self.epoch, task_type, index, candidate)


def arms_of(first: Arms, stage: int) -> Arms:
    """The arms of the first stage (0) or of the one that confirms it (1)."""
    if stage == 0:
        return first
    return msgspec.structs.replace(first, generation=0, confirms=first.trial.run_key)


def job_of(trial: Trial, question: Question, run_key: str, salt: str) -> Rollout:
    """A question to be answered by the candidate."""
    return Rollout(
        scope=Scope(
            epoch=trial.scope.epoch,
            step=trial.scope.step,
            task_type=question.task_type,
            question_id=question.question_id,
        ),
        run_key=run_key,
        question=question,
        skill=trial.candidate,
        prompts=trial.prompts,
        salt=salt,
        others=trial.others,
    )
