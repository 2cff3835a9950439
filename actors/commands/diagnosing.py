"""Diagnosing a baseline's wrong answers offline: the real judge over stored trajectories.

A composition root for one pass, like ``actors.commands.seeding``: ledger, cache, llm and diagnoser
(and the simulator, where it is the endpoint). Trajectories of whatever program are written into the
work folder's ledger as traces first, so that the diagnoser finds them where it always looks.
"""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from actors.commands.extraction import choose_run, standing_rows
from actors.commands.offline import ask_judge, for_each, run_offline
from actors.commands.progress import Progress
from actors.commands.seeding import SEED_PASS, stored_diagnosis
from actors.dataset.fingerprint import question_fingerprint
from actors.ledger.reader import open_reader
from actors.rollout.answer_text import storable
from actors.runtime.actor import Actor
from actors.runtime.address import Address
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.system import Paths, answering_specs
from actors.workspace.baseline_db import refuse_unsettled
from actors.workspace.errors import SeedError
from actors.workspace.harness_db import BadTrajectory, kind_of, steps_of
from protocol.base import Event, Request, Scope
from protocol.dataset import Question
from protocol.diagnoser import Diagnose
from protocol.documents import Skill
from protocol.ledger import Record, Where
from protocol.llm import Chat
from protocol.rollout import Step
from protocol.rows import OutcomeRow, TraceRow
from protocol.seed import BaselineDiagnosis, BaselinePrediction
from protocol.settings import Config, DiagnoserSettings

__all__ = ["Case", "Judged", "Traces", "choose_wrong", "diagnose_cases", "read_traces"]

_RUN_KEY = "diagnosis"

R = TypeVar("R")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong answer with everything that its diagnosis needs. again: it has a doubtful one."""

    question: Question
    letter: str | None
    skill: Skill
    traces: tuple[TraceRow, ...]
    again: bool


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Trajectories by question id. lacking: why a wanted question has none, one line each."""

    rows: Mapping[str, tuple[TraceRow, ...]]
    lacking: Mapping[str, str]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge said. silent: cases about which nothing was said, and why, one line each.

    stopped: a signal came before every case was asked; at_once: it came twice.
    """

    diagnoses: tuple[BaselineDiagnosis, ...]
    silent: tuple[str, ...]
    stopped: bool
    at_once: bool


def choose_wrong(
    questions: Iterable[Question],
    predictions: Iterable[BaselinePrediction],
    diagnoses: Iterable[BaselineDiagnosis],
    *,
    retry_uncertain: bool,
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Ids of the wrong answers to diagnose, sorted, and those among them that are asked again.

    A stored diagnosis is final unless the judge failed (no cause). retry_uncertain: also those
    are asked again that are uncertain or degraded (row P2-4); never a defect or a lapse.
    """
    by_id = {question.question_id: question for question in questions}
    found = {row.fingerprint: row for row in diagnoses}
    wanted: list[str] = []
    again: set[str] = set()
    for row in predictions:
        if row.right or row.question_id not in by_id:
            continue
        known = found.get(question_fingerprint(by_id[row.question_id]))
        if known is None or known.cause is None:
            wanted.append(row.question_id)
        elif retry_uncertain and (known.degraded or known.cause == "uncertain"):
            wanted.append(row.question_id)
            again.add(row.question_id)
    return tuple(sorted(wanted)), frozenset(again)


# -- trajectories -----------------------------------------------------------------------


def read_traces(
    path: Path,
    run_id: str,
    questions: Sequence[Question],
    letters: Mapping[str, str | None],
    *,
    named: bool,
) -> Traces:
    """The trajectories of these answers.

    run_id: of the baseline, or as ``named`` by hand. letters: what the baseline says was
    answered; a trajectory that led to another letter is not that of the answer.

    Raises SeedError if the file holds none.
    """
    if kind_of(path) == "harness":
        run_id = choose_run(path, run_id, "predictions", "run_id")
        return _harness_traces(path, run_id, questions, letters)
    if kind_of(path) == "run":
        return _run_traces(path, run_id, questions, letters, named=named)
    what = "is a baseline.db, which holds answers but not how they came about"
    raise SeedError(path, what, "give the harness.db or run.db that it was made from")


def _harness_traces(
    path: Path, run_id: str, questions: Sequence[Question], letters: Mapping[str, str | None]
) -> Traces:
    rows: dict[str, tuple[TraceRow, ...]] = {}
    lacking: dict[str, str] = {}
    standing = standing_rows(path, run_id, questions)
    for question in questions:
        question_id = question.question_id
        try:
            if question_id not in standing:
                raise BadTrajectory(f"no row in {run_id}")
            row, letter = standing[question_id]
            if letter != letters[question_id]:
                raise BadTrajectory(f"row {row.row} answered {letter}, not {letters[question_id]}")
            steps = steps_of(row)
        except BadTrajectory as problem:
            lacking[question_id] = f"{question_id}: {problem}"
            continue
        rows[question_id] = tuple(_trace(question_id, step) for step in steps)
    return Traces(rows=rows, lacking=lacking)


def _run_traces(
    path: Path,
    run_id: str,
    questions: Sequence[Question],
    letters: Mapping[str, str | None],
    *,
    named: bool,
) -> Traces:
    refuse_unsettled(path)
    try:
        with open_reader(path, at_rest=True) as reader:
            outcomes = reader.rows(OutcomeRow, Where(column="run_key", value=run_id))
            if not outcomes and not named:  # a seed's baseline is named after the seed
                run_id = SEED_PASS
                outcomes = reader.rows(OutcomeRow, Where(column="run_key", value=run_id))
            found = reader.rows(TraceRow, Where(column="run_key", value=run_id))
    except sqlite3.Error as error:
        raise SeedError(path, f"cannot be read: {error}", "give the run.db of a run") from error
    if not outcomes:
        choose_run(path, run_id, OutcomeRow.TABLE, "run_key")  # raises with those there are
    answered = {row.question_id: row.letter for row in outcomes}
    steps: dict[str, list[TraceRow]] = {}
    for row in found:
        steps.setdefault(row.question_id, []).append(row)
    rows: dict[str, tuple[TraceRow, ...]] = {}
    lacking: dict[str, str] = {}
    for question in questions:
        name = question.question_id
        if name not in steps:
            lacking[name] = f"{name}: no steps of {run_id} are stored"
        elif answered.get(name) != letters[name]:
            lacking[name] = f"{name}: {run_id} answered {answered.get(name)}, not {letters[name]}"
        else:
            rows[name] = tuple(msgspec.structs.replace(r, run_key=_RUN_KEY) for r in steps[name])
    return Traces(rows=rows, lacking=lacking)


def _trace(question_id: str, step: Step) -> TraceRow:
    return TraceRow(
        run_key=_RUN_KEY,
        question_id=question_id,
        step=step.index,
        thought=storable(step.thought),
        tool=None if step.tool is None else storable(step.tool),
        arguments=storable(step.arguments),
        observation=storable(step.observation),
        raw=storable(step.raw),
        node_ids=storable(json.dumps(step.node_ids, ensure_ascii=False)),
        prompt_tokens=step.prompt_tokens,
        completion_tokens=step.completion_tokens,
        seconds=step.seconds,
    )


# -- asking -----------------------------------------------------------------------------


class _AskedAgain:
    """The way to llm for the diagnoser, on which a doubtful case is really asked again.

    The judge's chats carry no salt, so that the cache would give the same doubtful answer for
    ever; those of the cases that are asked again carry the round's.
    """

    def __init__(self, llm: Address, again: Collection[str], salt: str) -> None:
        self._llm = llm
        self._again = again
        self._salt = salt

    @property
    def name(self) -> str:
        """That of the peer behind."""
        return self._llm.name

    async def ask(self, request: Request[R], *, timeout_s: float | None = None) -> R:
        """See ``Address.ask``."""
        if isinstance(request, Chat) and request.scope.question_id in self._again:
            salted = msgspec.structs.replace(request, cache_salt=self._salt)
            request = cast("Request[R]", salted)
        return await self._llm.ask(request, timeout_s=timeout_s)

    async def tell(self, event: Event) -> None:
        """See ``Address.tell``."""
        await self._llm.tell(event)


async def diagnose_cases(
    config: Config,
    paths: Paths,
    cases: Sequence[Case],
    *,
    salt: str,
    say: Callable[[str], None] | None = None,
) -> Judged:
    """Have the cases judged. paths.workspace: the work folder, with run.db and cache.db.

    salt: of the chats of the cases that are asked again. SIGINT and SIGTERM are obeyed as in a
    training. Raises SystemFailed.
    """
    work = _Judging(config.diagnoser, cases, say)
    again = frozenset(case.question.question_id for case in cases if case.again)

    def specs_of(served: Config, listener: socket.socket | None) -> list[ActorSpec]:
        return _judging_specs(answering_specs(served, paths, listener), again, salt)

    return work.result(at_once=await run_offline(config, specs_of, work.run))


def _judging_specs(
    answering: Sequence[ActorSpec], again: Collection[str], salt: str
) -> list[ActorSpec]:
    """The diagnoser, everything that it asks, and the simulator where there is one."""
    by_name = {spec.name: spec for spec in answering}
    needed: dict[str, ActorSpec] = {}
    waiting = ["diagnoser", *(name for name in ("twin",) if name in by_name)]
    while waiting:
        spec = by_name[waiting.pop()]
        needed[spec.name] = spec
        waiting += [name for name in spec.asks if name not in needed]
    diagnoser = needed["diagnoser"]

    def build(peers: Callable[[str], Address]) -> Actor:
        def peer(name: str) -> Address:
            return _AskedAgain(peers(name), again, salt) if name == "llm" else peers(name)

        return diagnoser.factory(peer)

    needed["diagnoser"] = replace(diagnoser, factory=build)
    return list(needed.values())


class _Judging:
    """One pass under way."""

    def __init__(
        self,
        settings: DiagnoserSettings,
        cases: Sequence[Case],
        say: Callable[[str], None] | None,
    ) -> None:
        self._width = settings.concurrency
        self._cases = cases
        self._found: dict[str, BaselineDiagnosis] = {}
        self._silent: dict[str, str] = {}
        self._progress = None if say is None else Progress("diagnosis", len(cases), say)

    async def run(self, system: Supervisor) -> None:
        """Ask what can be asked; after a stop nothing new is."""
        one = partial(self._one, system)
        await for_each(system, self._cases, one, width=self._width, progress=self._progress)

    async def _one(self, system: Supervisor, case: Case) -> None:
        question_id = case.question.question_id
        scope = Scope(task_type=case.question.task_type, question_id=question_id)
        await system.address("ledger").ask(
            Record(scope=scope, rows=case.traces, instead_of=(_RUN_KEY, question_id))
        )
        found = await ask_judge(
            system,
            Diagnose(
                scope=scope,
                run_key=_RUN_KEY,
                question=case.question,
                skill=case.skill,
                letter=case.letter,
            ),
        )
        if isinstance(found, str):
            self._silent[question_id] = found
        elif found is not None:
            self._found[question_id] = stored_diagnosis(case.question, found)

    def result(self, *, at_once: bool) -> Judged:
        """Everything, ordered by question id."""
        asked = len(self._found) + len(self._silent)
        return Judged(
            diagnoses=tuple(row for _, row in sorted(self._found.items())),
            silent=tuple(line for _, line in sorted(self._silent.items())),
            stopped=asked < len(self._cases),
            at_once=at_once,
        )
