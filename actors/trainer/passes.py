"""A pass: many questions under one package, side by side.

It says when it begins and when it ends; how far it is, ``rollout.done`` says for every question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import structlog

from protocol.base import Scope
from protocol.dataset import Question
from protocol.documents import PackageTexts
from protocol.rollout import Answered, Missed, Rollout

__all__ = ["jobs_for", "run_jobs"]

_RETRIES = 2

log = structlog.get_logger("trainer")


def jobs_for(
    questions: Sequence[Question], texts: PackageTexts, run_key: str, salt: str, scope: Scope
) -> list[Rollout]:
    """One rollout per question under a whole package: every class with its own skill."""
    return [_job(question, texts, run_key, salt, scope) for question in questions]


def _job(question: Question, texts: PackageTexts, run_key: str, salt: str, scope: Scope) -> Rollout:
    skill = texts.skill_for(question.task_type)
    return Rollout(
        scope=Scope(
            epoch=scope.epoch,
            step=scope.step,
            task_type=question.task_type,
            question_id=question.question_id,
        ),
        run_key=run_key,
        question=question,
        skill=skill,
        prompts=texts.prompts,
        salt=salt,
        others=texts.others(skill),
    )


async def run_jobs(
    roll: Callable[[Rollout], Awaitable[Answered | Missed]], jobs: Sequence[Rollout]
) -> list[Answered | Missed]:
    """Run every job, and those that infrastructure lost again, at most twice.

    Returns one result per job, in their order, however they interleave.
    """
    results: list[Answered | Missed | None] = [None] * len(jobs)
    run_key = jobs[0].run_key if jobs else ""
    begun = anyio.current_time()
    log.info("pass.start", run_key=run_key, planned=len(jobs))

    async def run(index: int) -> None:
        results[index] = await roll(jobs[index])

    todo = list(range(len(jobs)))
    for _ in range(1 + _RETRIES):
        async with anyio.create_task_group() as group:
            for index in todo:
                group.start_soon(run, index)
        todo = [index for index in todo if isinstance(results[index], Missed)]
        if not todo:
            break
    finished = [result for result in results if result is not None]
    assert len(finished) == len(jobs), "every job has a result once its task ended"
    log.info(
        "pass.done",
        run_key=run_key,
        planned=len(jobs),
        right=sum(isinstance(result, Answered) and result.right for result in finished),
        missing=len(todo),
        seconds=round(anyio.current_time() - begun, 3),
    )
    return finished
