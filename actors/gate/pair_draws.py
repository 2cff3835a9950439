"""One pair of the factorial gate: both arms of a unit, all questions side by side.

Knows the agent as a callable. What was answered before a stop is not asked again; an answer is
never drawn twice because of how it came out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from protocol.base import Scope
from protocol.dataset import Question, Unit
from protocol.documents import Prompts, Skill
from protocol.factorial import RunPhase
from protocol.factorial_rows import PairRow
from protocol.keys import pair_key, pair_salt
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import OutcomeRow

__all__ = ["Arm", "DrawnPair", "PairTask", "draw_pair", "known_answers"]

Known = Mapping[tuple[str, str], OutcomeRow]
Roll = Callable[[Rollout], Awaitable[Answered | Missed]]


@dataclass(frozen=True)
class Arm:
    """What an arm is answered under."""

    skill: Skill
    prompts: Prompts


@dataclass(frozen=True)
class PairTask:
    """A pair to draw. arms: the documents of a and of b. n_tries: of a question that is lost."""

    row: PairRow
    unit: Unit
    arms: tuple[Arm, Arm]
    request: RunPhase
    seed: int
    n_tries: int


@dataclass(frozen=True)
class DrawnPair:
    """What both arms came to, per question; None: lost. missed: why, of every lost question."""

    row: PairRow
    a: tuple[bool | None, ...]
    b: tuple[bool | None, ...]
    missed: tuple[Missed, ...]


def known_answers(rows: Iterable[OutcomeRow]) -> Known:
    """What was answered before, by pass and question; what was lost is not."""
    return {(row.run_key, row.question_id): row for row in rows if row.outcome != "missing"}


async def draw_pair(roll: Roll, task: PairTask, known: Known) -> DrawnPair:
    """Both arms together.

    Raises ValueError if an answer of before was given under another document.
    """
    found: dict[str, tuple[bool | None, ...]] = {}
    missed: list[Missed] = []

    async def draw(name: str, arm: Arm) -> None:
        found[name], lost = await _arm(roll, task, name, arm, known)
        missed.extend(lost)

    async with anyio.create_task_group() as group:
        for name, arm in zip(("a", "b"), task.arms, strict=True):
            group.start_soon(draw, name, arm)
    return DrawnPair(row=task.row, a=found["a"], b=found["b"], missed=tuple(missed))


async def _arm(
    roll: Roll, task: PairTask, name: str, arm: Arm, known: Known
) -> tuple[tuple[bool | None, ...], list[Missed]]:
    run_key = pair_key(task.row.task_type, task.row.phase, task.row.pair, name)
    texts = (arm.skill.hash, arm.prompts.version)
    right: dict[str, bool] = {}
    for question in task.unit.questions:
        before = known.get((run_key, question.question_id))
        if before is not None:
            if (before.skill_hash, before.prompts_version) != texts:
                raise ValueError(f"{run_key}: was answered under another document")
            right[question.question_id] = before.outcome == "right"
    missed: list[Missed] = []
    for _ in range(task.n_tries):
        wanted = [q for q in task.unit.questions if q.question_id not in right]
        if not wanted:
            break
        replies = await _ask(roll, task, name, arm, wanted)
        right |= {r.question_id: r.right for r in replies if isinstance(r, Answered)}
        missed = [reply for reply in replies if isinstance(reply, Missed)]
    return tuple(right.get(q.question_id) for q in task.unit.questions), missed


async def _ask(
    roll: Roll, task: PairTask, name: str, arm: Arm, questions: Sequence[Question]
) -> list[Answered | Missed]:
    """Rollouts side by side, replies in the questions' order."""
    row, request = task.row, task.request
    replies: dict[int, Answered | Missed] = {}

    async def one(position: int, question: Question) -> None:
        replies[position] = await roll(
            Rollout(
                scope=Scope(
                    epoch=request.scope.epoch,
                    task_type=question.task_type,
                    question_id=question.question_id,
                ),
                run_key=pair_key(row.task_type, row.phase, row.pair, name),
                question=question,
                skill=arm.skill,
                prompts=arm.prompts,
                salt=pair_salt(task.seed, row.task_type, row.pair, name),
                others=request.others,
            )
        )

    async with anyio.create_task_group() as group:
        for position, question in enumerate(questions):
            group.start_soon(one, position, question)
    return [replies[position] for position in range(len(questions))]
