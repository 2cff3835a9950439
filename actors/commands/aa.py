"""``bin/train --aa N``: the current package tested against itself, to see that the level holds.

A composition root like the offline passes: the gate and all that it asks, without a trainer. Every
comparison has a snapshot of its own, never the seed's answers, so that the tests are independent of
each other and of what chose the pools. Their rows lie under ``aa/``: no epoch reads them.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec

from actors.commands.aa_report import null_tables
from actors.commands.aa_tally import Flips, NullReport, NullTest, count_flips, report_of
from actors.commands.console import show
from actors.commands.offline import for_each, run_offline
from actors.commands.progress import Progress
from actors.launch import Launch
from actors.ledger.reader import open_reader
from actors.runtime.errors import ActorDead, AskFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.streams import StdoutLost
from actors.system import Paths, specs
from actors.workspace.manifest import read_manifest
from actors.workspace.versions import read_prompts, read_skills
from protocol.base import Refused, Scope
from protocol.baseline import SeedOutcomes
from protocol.dataset import ClassWork, PlanEpoch
from protocol.documents import PackageTexts, library_hash
from protocol.gate import Trial
from protocol.keys import null_key
from protocol.ledger import AskSpent, Spent, Where
from protocol.rows import BaselineRow, OutcomeRow
from protocol.settings import Config

__all__ = ["NullRun", "compare_with_itself", "planned"]

DONE, FAILED, RESUMABLE, INTERRUPTED = 0, 1, 75, 130

_WIDTH = 16  # comparisons at a time; each asks for a snapshot, then for a block after the other


class NullRun:
    """N comparisons under way. trouble: why some have no result, with what to do."""

    def __init__(self, launch: Launch, n: int, say: Callable[[str], None]) -> None:
        self._launch = launch
        self._n = n
        self._say = say
        self._progress = Progress("null comparisons", n, say)
        self.package = _package(launch.paths.workspace)
        self.tests: list[NullTest] = []
        self.trouble: list[Refused] = []
        self.spent: Spent | None = None

    async def run(self, system: Supervisor) -> None:
        """Ask for all of them; after a stop nothing new is."""
        seeded = await system.address("baseline").ask(SeedOutcomes())
        epoch = read_manifest(self._launch.paths.workspace).epoch + 1
        plan = await system.address("dataset").ask(PlanEpoch(epoch=epoch, known=seeded.outcomes))
        if isinstance(plan, Refused):
            self.trouble.append(plan)
            return
        before = await system.address("ledger").ask(AskSpent())
        one = partial(self._one, system)
        width = min(_WIDTH, self._launch.config.agent.concurrency)
        pairs = planned(self._n, plan.classes)
        await for_each(system, pairs, one, width=width, progress=self._progress)
        if not system.draining:
            self.spent = _less(await system.address("ledger").ask(AskSpent()), before)

    async def _one(self, system: Supervisor, pair: tuple[ClassWork, int]) -> None:
        work, index = pair
        if self.trouble:
            return
        texts = self.package
        skill = texts.skill_for(work.task_type)
        trial = Trial(
            scope=Scope(task_type=work.task_type),
            run_key=null_key(work.task_type, index),
            current=skill,
            candidate=skill,
            prompts=texts.prompts,
            units=work.ladder,
            in_sample=work.in_sample,
            others=texts.others(skill),
            null_index=index,
            null_generation=index + 1,  # 0 may hold the seed's answers, which chose the pools
        )
        try:
            decided = await system.address("gate").ask(trial)
        except ActorDead:
            raise
        except AskFailed as failure:
            decided = Refused(
                what=f"{trial.run_key}: {failure}",
                remedy="see logs/train.jsonl, then ask for the same comparisons again",
                passing=True,
            )
        if isinstance(decided, Refused):
            if not system.draining:
                self.trouble.append(decided)
            return
        self.tests.append(NullTest(task_type=work.task_type, index=index, decision=decided))

    def report(self) -> NullReport:
        """What came of it; the answers are read from run.db."""
        tests = sorted(self.tests, key=lambda test: (test.task_type, test.index))
        manual = self._launch.config.agent.skill_routing == "manual"
        flips: dict[tuple[str, int], Flips] = {}
        with open_reader(self._launch.paths.workspace / "run.db") as reader:
            for test in tests:
                skill = self.package.skill_for(test.task_type)
                others = self.package.others(skill)
                baseline = reader.rows(
                    BaselineRow,
                    Where(column="task_type", value=test.task_type),
                    Where(
                        column="skill_hash",
                        value=library_hash(skill, others) if manual else skill.hash,
                    ),
                    Where(column="prompts_version", value=self.package.prompts.version),
                    Where(column="generation", value=test.index + 1),
                    Where(column="confirms", value=""),
                )
                key = f"{null_key(test.task_type, test.index)}/gate/*"
                outcomes = reader.rows(OutcomeRow, Where(column="run_key", value=key))
                flips[test.task_type, test.index] = count_flips(baseline, outcomes)
        return report_of(self._n, tests, flips)


def planned(n: int, classes: Sequence[ClassWork]) -> tuple[tuple[ClassWork, int], ...]:
    """Which class has which comparisons: the classes in turn, each counting from 0."""
    made: Counter[str] = Counter()
    pairs = []
    for number in range(n):
        work = classes[number % len(classes)]
        pairs.append((work, made[work.task_type]))
        made[work.task_type] += 1
    return tuple(pairs)


def compare_with_itself(launch: Launch, n: int, say: Callable[[str], None], again: str) -> int:
    """Run ``n`` null comparisons, print what they show; returns the exit code.

    again: the command that asks for the same ones in the same workspace. Raises SystemFailed,
    WorkspaceError.
    """
    nulls = NullRun(launch, n, say)

    def specs_of(config: Config, listener: socket.socket | None) -> list[ActorSpec]:
        return _needed(config, launch.paths, listener)

    at_once = anyio.run(run_offline, launch.config, specs_of, nulls.run)
    report = nulls.report()
    try:
        show(null_tables(report, nulls.package.package, nulls.spent))
    except StdoutLost as lost:  # the verdict is the exit code all the same
        say(f"bin/train: {lost}; the answers are kept, and this prints it again: {again}")
    for refused in nulls.trouble[:1]:
        say(f"The comparisons cannot go on: {refused.what}")
        for detail in refused.details[:5]:
            say(f"  {detail}")
        say(f"What to do: {refused.remedy}\nGo on with: {again}")
        return RESUMABLE if refused.passing else FAILED
    if report.tests < n:
        say(f"Stopped after {report.tests} of {n}; go on with: {again}")
        return INTERRUPTED if at_once else RESUMABLE
    return FAILED if report.verdict == "above" else DONE


def _needed(config: Config, paths: Paths, listener: socket.socket | None) -> list[ActorSpec]:
    """The gate, the dataset and everything that they ask, and the simulator where there is one."""
    by_name = {spec.name: spec for spec in specs(config, paths, listener)}
    needed: dict[str, ActorSpec] = {}
    waiting = ["gate", "dataset", *(name for name in ("twin",) if name in by_name)]
    while waiting:
        spec = by_name[waiting.pop()]
        needed[spec.name] = spec
        waiting += [name for name in spec.asks if name not in needed]
    return list(needed.values())


def _package(workspace: Path) -> PackageTexts:
    """The package that stands. Raises WorkspaceError."""
    current = read_manifest(workspace).current
    return PackageTexts(
        package=current,
        skills=read_skills(workspace / "skills", current.skills),
        prompts=read_prompts(workspace / "prompts", current.prompts),
    )


def _less(after: Spent, before: Spent) -> Spent:
    return msgspec.structs.replace(
        after,
        calls=after.calls - before.calls,
        prompt_tokens=after.prompt_tokens - before.prompt_tokens,
        completion_tokens=after.completion_tokens - before.completion_tokens,
        usd=after.usd - before.usd,
    )
