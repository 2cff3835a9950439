"""Questions answered by the real agent actors over HTTP against the simulator, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from actors.config import ROOT, load_config
from actors.dataset.questions import load_dataset
from actors.runtime.supervisor import Supervisor
from actors.system import Paths, answering_specs, with_twin_address
from actors.twin.process import base_url_of, bind_loopback
from actors.workspace.versions import read_prompts, read_skills
from protocol.base import Scope
from protocol.dataset import Question
from protocol.documents import Package, PackageTexts
from protocol.rollout import Answered, Missed, Rollout

__all__ = ["answer_all", "answering", "demo_questions", "demo_texts"]

DEMO = ROOT / "seeds" / "demo"


def demo_questions() -> tuple[Question, ...]:
    """The demo's questions, ordered by id."""
    return load_dataset(DEMO / "questions.jsonl", None).questions


def demo_texts() -> PackageTexts:
    """The demo's first documents."""
    return PackageTexts(
        package=Package(skills="v1", prompts="v1"),
        skills=read_skills(DEMO / "skills", "v1"),
        prompts=read_prompts(DEMO / "prompts", "v1"),
    )


@asynccontextmanager
async def answering(folder: Path, assignments: Sequence[str] = ()) -> AsyncIterator[Supervisor]:
    """The actors that answer, with the simulator in a process of its own. folder: gets run.db."""
    config = load_config(None, ["runtime.drain_s=1", "cache.backend=none", *assignments])
    (folder / "logs").mkdir()
    paths = Paths(
        workspace=folder,
        questions=DEMO / "questions.jsonl",
        trees=DEMO / "trees",
        world=DEMO / "world.json",
    )
    with bind_loopback() as listener:
        served = with_twin_address(config, base_url_of(listener))
        specs = answering_specs(served, paths, listener)
        async with Supervisor(specs, served.runtime, stop_s=8.0) as system:
            yield system


async def answer_all(
    system: Supervisor,
    asked: Sequence[tuple[Question, str]],
    *,
    width: int,
) -> list[Answered | Missed]:
    """A rollout per question and salt, ``width`` at a time; results in the order asked."""
    texts = demo_texts()
    results: dict[int, Answered | Missed] = {}
    limiter = anyio.CapacityLimiter(width)

    async def one(place: int, question: Question, salt: str) -> None:
        async with limiter:
            skill = texts.skill_for(question.task_type)
            job = Rollout(
                scope=Scope(task_type=question.task_type, question_id=question.question_id),
                run_key=salt,
                question=question,
                skill=skill,
                prompts=texts.prompts,
                salt=salt,
                others=texts.others(skill),
            )
            results[place] = await system.address("rollout").ask(job)

    async with anyio.create_task_group() as tasks:
        for place, (question, salt) in enumerate(asked):
            tasks.start_soon(one, place, question, salt)
    return [results[place] for place in range(len(asked))]
