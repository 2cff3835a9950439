"""From questions and first documents to a seed: one baseline pass, its diagnosis, the split.

A smaller composition root beside ``actors.system``: the same rooms, wired for one pass. The
baseline is a real pass of the agent over every question, with whatever endpoint is configured.
What was answered lies in the cache of the pass's work folder, so that a pass that was stopped,
killed or hit by an outage goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import structlog

from actors.commands.offline import ask_judge, for_each, run_offline
from actors.commands.progress import Progress
from actors.commands.seed_parts import complete_seed
from actors.commands.splitting import SplitFacts, make_split
from actors.config import agent_of
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.questions import load_dataset
from actors.runtime.errors import ActorDead, AskFailed
from actors.runtime.supervisor import Supervisor
from actors.system import Paths, answering_specs
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.seed import BASELINE
from actors.workspace.versions import read_prompts, read_skills
from protocol.base import Scope
from protocol.dataset import Question
from protocol.diagnoser import Diagnose, Diagnosis
from protocol.documents import Package, PackageTexts
from protocol.rollout import Answered, Missed, Rollout
from protocol.seed import (
    BaselineDiagnosis,
    BaselinePrediction,
    SplitParameters,
)
from protocol.settings import Config

__all__ = [
    "SEED_PASS",
    "BaselineFailed",
    "BaselinePass",
    "Stopped",
    "baseline_pass",
    "make_seed",
    "stored_diagnosis",
]

SEED_PASS = "baseline/seed"
"""The run key of the pass in its run.db, and the salt of its chats."""

log = structlog.get_logger("seed")


class BaselineFailed(Exception):
    """The baseline pass has missing outcomes or diagnoses; the message names them."""


class Stopped(Exception):
    """A signal ended the work. at_once: a second one did, so that nothing was waited for."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__("stopped at once" if at_once else "stopped in order")
        self.at_once = at_once


class BaselinePass(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass found; everything is ordered by question id.

    missed: questions without an outcome, which are not wrong. undiagnosed: wrong answers about
    which the judge said nothing, one line each.
    """

    predictions: tuple[BaselinePrediction, ...]
    diagnoses: tuple[BaselineDiagnosis, ...]
    missed: tuple[Missed, ...]
    undiagnosed: tuple[str, ...]


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
) -> SplitFacts:
    """Answer every question once under ``out``'s v1 documents, split, and complete the seed.

    out: a folder with skills/v1 and prompts/v1; gets baseline.db, pools.json,
    split_manifest.json and seed.json. paths.workspace: where run.db and cache.db may lie.

    Raises BaselineFailed if a question stays missing or undiagnosed, Stopped; nothing is written
    then.
    """
    dataset = load_dataset(paths.questions, paths.exclude, duration=config.data.duration)
    texts = PackageTexts(
        package=Package(skills="v1", prompts="v1"),
        skills=read_skills(out / "skills", "v1"),
        prompts=read_prompts(out / "prompts", "v1"),
    )
    found = await baseline_pass(config, paths, dataset.questions, texts)
    lacking = [f"{m.question_id}: {m.kind} {m.detail}" for m in found.missed]
    lacking += found.undiagnosed
    if lacking:
        raise BaselineFailed(
            f"{len(lacking)} of {len(dataset.questions)} questions have no baseline outcome:\n  "
            + "\n  ".join(sorted(lacking)[:20])
        )
    split = make_split(
        dataset,
        baseline_run_id,
        found.predictions,
        found.diagnoses,
        parameters,
        config,
        tool_version=tool_version,
    )
    baseline_db = paths.workspace / BASELINE
    make_baseline_db(baseline_db, baseline_run_id, found.predictions, found.diagnoses)
    complete_seed(
        out,
        name,
        run_id=baseline_run_id,
        baseline_db=baseline_db,
        pools_json=split.pools_json,
        manifest=split.manifest,
        questions=dataset.questions,
        skills_dir=out / "skills" / "v1",
        prompts_dir=out / "prompts" / "v1",
        subtitles=subtitles,
        agent=agent_of(config),
        tool_version=tool_version,
        force=True,
    )
    return split.facts


async def baseline_pass(
    config: Config,
    paths: Paths,
    questions: Sequence[Question],
    texts: PackageTexts,
    *,
    say: Callable[[str], None] | None = None,
) -> BaselinePass:
    """Answer every question once and have the wrong answers judged.

    paths.workspace: the work folder, which keeps run.db and cache.db. say: gets a line about the
    progress now and then. SIGINT and SIGTERM are obeyed as in a training.

    Raises Stopped if a signal came before every question was asked, SystemFailed.
    """
    work = _Pass(config, questions, texts, say)
    at_once = await run_offline(
        config, lambda served, listener: answering_specs(served, paths, listener), work.run
    )
    if work.unasked:
        raise Stopped(at_once=at_once)
    found = work.result()
    log.info(
        "seed.baseline",
        right=sum(row.right for row in found.predictions),
        questions=len(questions),
        diagnosed=len(found.diagnoses),
        missing=len(found.missed),
    )
    return found


class _Pass:
    """One pass under way. Asks no more at a time than the actors can work on."""

    def __init__(
        self,
        config: Config,
        questions: Sequence[Question],
        texts: PackageTexts,
        say: Callable[[str], None] | None,
    ) -> None:
        self._width = config.agent.concurrency + config.diagnoser.concurrency
        self._questions = {question.question_id: question for question in questions}
        self._texts = texts
        self._answers: dict[str, Answered] = {}
        self._diagnoses: dict[str, Diagnosis] = {}
        self._missed: dict[str, Missed] = {}
        self._undiagnosed: dict[str, str] = {}
        self._progress = None if say is None else Progress("baseline", len(questions), say)

    @property
    def unasked(self) -> int:
        """Questions of which a stop left nothing known."""
        known = self._answers.keys() | self._missed.keys()
        judged = self._diagnoses.keys() | self._undiagnosed.keys()
        return sum(
            name not in known
            or (name in self._answers and not self._answers[name].right and name not in judged)
            for name in self._questions
        )

    async def run(self, system: Supervisor) -> None:
        """Answer what can be answered; after a stop nothing new is asked."""
        await for_each(
            system,
            self._questions.values(),
            partial(self._one, system),
            width=self._width,
            progress=self._progress,
        )

    async def _one(self, system: Supervisor, question: Question) -> None:
        question_id = question.question_id
        scope = Scope(task_type=question.task_type, question_id=question_id)
        skill = self._texts.skill_for(question.task_type)
        job = Rollout(
            scope=scope,
            run_key=SEED_PASS,
            question=question,
            skill=skill,
            prompts=self._texts.prompts,
            salt=SEED_PASS,
            others=self._texts.others(skill),
        )
        reply: Answered | Missed
        try:
            reply = await system.address("rollout").ask(job)
        except ActorDead:
            raise
        except AskFailed as failure:
            reply = job.missed(str(failure))
        if isinstance(reply, Missed):
            if not system.draining:  # else the stop itself may have kept it from an answer
                self._missed[question_id] = reply
            return
        self._answers[question_id] = reply
        if reply.right:
            return
        found = await ask_judge(
            system,
            Diagnose(
                scope=scope,
                run_key=SEED_PASS,
                question=question,
                skill=skill,
                letter=reply.letter,
            ),
        )
        if isinstance(found, str):
            self._undiagnosed[question_id] = found
        elif found is not None:
            self._diagnoses[question_id] = found

    def result(self) -> BaselinePass:
        """Everything, ordered by question id."""
        order = sorted(self._questions)
        return BaselinePass(
            predictions=tuple(
                _prediction(self._questions[name], self._answers[name])
                for name in order
                if name in self._answers
            ),
            diagnoses=tuple(
                stored_diagnosis(self._questions[name], self._diagnoses[name])
                for name in order
                if name in self._diagnoses
            ),
            missed=tuple(self._missed[name] for name in order if name in self._missed),
            undiagnosed=tuple(
                self._undiagnosed[name] for name in order if name in self._undiagnosed
            ),
        )


def _prediction(question: Question, answer: Answered) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        letter=answer.letter,
        right=answer.right,
        confidence=answer.confidence,
    )


def stored_diagnosis(question: Question, found: Diagnosis) -> BaselineDiagnosis:
    """The judge's finding as a row that belongs to exactly this question."""
    return BaselineDiagnosis(
        fingerprint=question_fingerprint(question),
        question_id=question.question_id,
        error_type=found.error_type,
        cause=found.cause,
        degraded=found.degraded,
        finding=found.finding,
    )
