"""From questions and first documents to a seed: one baseline pass, its diagnosis, the split.

A smaller composition root beside ``actors.system``: the same rooms, wired for one pass. The
baseline is a real pass of the agent over every question, with whatever endpoint is configured.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio
import structlog

from actors.config import agent_of
from actors.dataset.fingerprint import dataset_fingerprint, question_fingerprint, sha256_hex
from actors.dataset.pools import encode_pools
from actors.dataset.questions import load_questions
from actors.dataset.split import BaselineOutcome, SplitReport, split_pools
from actors.runtime.supervisor import Supervisor
from actors.system import Paths, answering_specs, uses_twin, with_twin_address
from actors.twin.process import base_url_of, bind_loopback
from actors.workspace.atomic import write_atomic
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.files import pretty_json
from actors.workspace.seed import init_seed
from actors.workspace.versions import read_prompts, read_skills
from protocol.base import Refused, Scope
from protocol.dataset import Question
from protocol.diagnoser import Diagnose, Diagnosis
from protocol.documents import Package, PackageTexts
from protocol.rollout import Answered, Missed, Rollout
from protocol.seed import (
    BaselineDiagnosis,
    BaselinePrediction,
    SplitManifest,
    SplitParameters,
)
from protocol.settings import Config

__all__ = ["BaselineFailed", "make_seed"]

_RUN_KEY = "baseline/seed"
log = structlog.get_logger("seed")


class BaselineFailed(Exception):
    """The baseline pass has missing outcomes or diagnoses; the message names them."""


async def make_seed(
    config: Config,
    paths: Paths,
    out: Path,
    *,
    name: str,
    baseline_run_id: str,
    parameters: SplitParameters,
    subtitles: bool,
    tool_version: str,
) -> SplitReport:
    """Answer every question once under ``out``'s v1 documents, split, and complete the seed.

    out: a folder with skills/v1 and prompts/v1; gets baseline.db, pools.json,
    split_manifest.json and seed.json. paths.workspace: where run.db and cache.db may lie.

    Raises BaselineFailed if a question stays missing; nothing is written then.
    """
    questions = load_questions(paths.questions)
    texts = PackageTexts(
        package=Package(skills="v1", prompts="v1"),
        skills=read_skills(out / "skills", "v1"),
        prompts=read_prompts(out / "prompts", "v1"),
    )
    answers, diagnoses = await _baseline(config, paths, questions, texts)
    pools, report = split_pools(
        questions,
        _outcomes(answers, diagnoses),
        parameters,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    data = encode_pools(pools)
    manifest = SplitManifest(
        pools_sha256=sha256_hex(data),
        baseline_run_id=baseline_run_id,
        parameters=parameters,
        dataset_fingerprint=dataset_fingerprint(questions),
        tool_version=tool_version,
    )
    parts = paths.workspace
    write_atomic(parts / "pools.json", data)
    write_atomic(parts / "split_manifest.json", pretty_json(manifest))
    make_baseline_db(
        parts / "baseline.db",
        baseline_run_id,
        [_prediction(question, answers[question.question_id]) for question in questions],
        [
            _stored(question, diagnoses)
            for question in questions
            if question.question_id in diagnoses
        ],
    )
    init_seed(
        out,
        name,
        baseline_run_id=baseline_run_id,
        baseline_db=parts / "baseline.db",
        pools_json=parts / "pools.json",
        split_manifest=parts / "split_manifest.json",
        skills_dir=out / "skills" / "v1",
        prompts_dir=out / "prompts" / "v1",
        subtitles=subtitles,
        agent=agent_of(config),
        tool_version=tool_version,
        force=True,
    )
    return report


def _outcomes(
    answers: dict[str, Answered], diagnoses: dict[str, Diagnosis]
) -> list[BaselineOutcome]:
    return [
        BaselineOutcome(question_id=key, right=answer.right)
        if key not in diagnoses
        else BaselineOutcome(
            question_id=key,
            right=answer.right,
            cause=diagnoses[key].cause,
            degraded=diagnoses[key].degraded,
        )
        for key, answer in answers.items()
    ]


def _prediction(question: Question, answer: Answered) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        letter=answer.letter,
        right=answer.right,
        confidence=answer.confidence,
    )


def _stored(question: Question, diagnoses: dict[str, Diagnosis]) -> BaselineDiagnosis:
    found = diagnoses[question.question_id]
    return BaselineDiagnosis(
        fingerprint=question_fingerprint(question),
        question_id=question.question_id,
        error_type=found.error_type,
        cause=found.cause,
        degraded=found.degraded,
        finding=found.finding,
    )


async def _baseline(
    config: Config, paths: Paths, questions: Sequence[Question], texts: PackageTexts
) -> tuple[dict[str, Answered], dict[str, Diagnosis]]:
    answers: dict[str, Answered] = {}
    diagnoses: dict[str, Diagnosis] = {}
    missing: list[str] = []

    async def answer(system: Supervisor, question: Question) -> None:
        scope = Scope(task_type=question.task_type, question_id=question.question_id)
        skill = texts.skill_for(question.task_type)
        reply: Answered | Missed = await system.address("rollout").ask(
            Rollout(
                scope=scope,
                run_key=_RUN_KEY,
                question=question,
                skill=skill,
                prompts=texts.prompts,
                salt=_RUN_KEY,
            )
        )
        if isinstance(reply, Missed):
            missing.append(f"{question.question_id}: {reply.kind} {reply.detail}")
            return
        answers[question.question_id] = reply
        if reply.right:
            return
        found = await system.address("diagnoser").ask(
            Diagnose(
                scope=scope,
                run_key=_RUN_KEY,
                question=question,
                skill=skill,
                letter=reply.letter,
            )
        )
        if isinstance(found, Refused):
            missing.append(f"{question.question_id}: {found.what}")
        else:
            diagnoses[question.question_id] = found

    with ExitStack() as stack:
        listener = stack.enter_context(bind_loopback()) if uses_twin(config) else None
        if listener is not None:
            config = with_twin_address(config, base_url_of(listener))
        async with (
            Supervisor(
                answering_specs(config, paths, listener), config.runtime, signals=True
            ) as system,
            anyio.create_task_group() as group,
        ):
            for question in questions:
                group.start_soon(answer, system, question)
    if missing:
        raise BaselineFailed(
            f"{len(missing)} of {len(questions)} questions have no baseline outcome:\n  "
            + "\n  ".join(sorted(missing)[:20])
        )
    right = sum(reply.right for reply in answers.values())
    log.info("seed.baseline", right=right, questions=len(questions), diagnosed=len(diagnoses))
    return dict(sorted(answers.items())), dict(sorted(diagnoses.items()))
