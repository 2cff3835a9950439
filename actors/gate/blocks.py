"""A block of a candidate's answers, and whose fault it is if they cannot be read.

A candidate whose replies are no actions has spoilt the reply's format, or is served by an endpoint
that garbles everything. The current skill, asked the same there and then, tells the two apart; its
answers are counted nowhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
import msgspec
import structlog

from actors.gate.arms import Arms, job_of
from actors.gate.decide import Answers
from protocol.dataset import Unit
from protocol.rollout import Answered, Missed, Rollout, mostly_unreadable, unreadable

__all__ = ["Block", "Roll", "answer_block", "endpoint_garbles"]

Roll = Callable[[Rollout], Awaitable[Answered | Missed]]

log = structlog.get_logger("gate")


@dataclass(frozen=True)
class Block:
    """answers: per unit, per question; replies: the last one to every question, in that order.

    spent: how many rollouts were asked.
    """

    answers: tuple[Answers, ...]
    replies: tuple[Answered | Missed, ...]
    spent: int

    @property
    def missed(self) -> tuple[Missed, ...]:
        """What stayed missing."""
        return tuple(reply for reply in self.replies if isinstance(reply, Missed))


async def answer_block(
    roll: Roll, arms: Arms, index: int, units: Sequence[Unit], missing_retries: int
) -> Block:
    """The candidate on a block, all questions side by side; the missing again."""
    run_key, salt = arms.block_key(index), arms.block_salt(index)
    jobs = [
        job_of(arms.trial, question, run_key, salt) for unit in units for question in unit.questions
    ]
    replies = await _side_by_side(roll, jobs)
    spent = len(jobs)
    for _ in range(missing_retries):
        lost = [at for at, reply in enumerate(replies) if isinstance(reply, Missed)]
        if not lost:
            break
        spent += len(lost)
        for at, reply in zip(
            lost, await _side_by_side(roll, [jobs[at] for at in lost]), strict=True
        ):
            replies[at] = reply
    told = {reply.question_id: reply.right for reply in replies if isinstance(reply, Answered)}
    answers = tuple(
        tuple(told.get(question.question_id) for question in unit.questions) for unit in units
    )
    return Block(answers, tuple(replies), spent)


async def endpoint_garbles(
    roll: Roll, arms: Arms, index: int, units: Sequence[Unit], block: Block, share: float
) -> bool:
    """Whether the block says nothing of the candidate: the current skill's replies are no better.

    share: of the answers; more of which must be unreadable before anybody asks.
    """
    if not mostly_unreadable(block.replies, share):
        return False
    run_key, salt = f"{arms.block_key(index)}/control", f"{arms.block_salt(index)}/control"
    jobs = [
        msgspec.structs.replace(
            job_of(arms.trial, question, run_key, salt), skill=arms.trial.current
        )
        for unit in units
        for question in unit.questions
    ]
    control = await _side_by_side(roll, jobs)
    garbles = mostly_unreadable(control, share)
    log.warning(
        "gate.unreadable",
        run_key=arms.block_key(index),
        candidate=unreadable(block.replies),
        current=unreadable(control),
        of=len(control),
        remedy="look at the agent's endpoint: nothing is decided on such replies"
        if garbles
        else "none: the edit spoils the form of the replies, and is tested as any other",
    )
    return garbles


async def _side_by_side(roll: Roll, jobs: Sequence[Rollout]) -> list[Answered | Missed]:
    """Replies in the order of the jobs."""
    replies: dict[int, Answered | Missed] = {}

    async def one(position: int, job: Rollout) -> None:
        replies[position] = await roll(job)

    async with anyio.create_task_group() as tasks:
        for position, job in enumerate(jobs):
            tasks.start_soon(one, position, job)
    return [replies[position] for position in range(len(jobs))]
