"""Gathers what the tables of ``actors.summary`` show: before a run from the actors, after it
from the workspace's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.baseline.seed_db import read_predictions
from actors.config import agent_of
from actors.curves import curves_table, epochs_table, outcomes_on_test, review
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.estimate import CALLS_PER_ROLLOUT, SIMULATED_CALLS_PER_ROLLOUT, Passes
from actors.factorial_report import (
    factorial_epochs,
    factorial_part,
    factorial_truth,
    schedule_text,
    true_gains,
)
from actors.factorial_view import FactorialView, factorial_view, void_words
from actors.gate.package_power import (
    PackagePower,
    forecast_power,
    package_power,
    seed_pass_power,
)
from actors.launch_changes import changes_words
from actors.ledger.reader import Reader, open_reader
from actors.run_shape import run_shape
from actors.runtime.supervisor import Supervisor
from actors.summary import (
    VERDICTS,
    OnTest,
    Truth,
    calls_table,
    classes_table,
    cost_text,
    packages_text,
    preflight_table,
    skill_texts,
    truth_table,
    where_lines,
)
from actors.system import (
    Paths,
    RunResult,
    read_seed_info,
    read_seed_package,
    seed_serves,
    simulated_roles,
)
from actors.tables import paired_words, prose, render
from actors.trainer.score import mcnemar
from actors.twin.truth import class_accuracy, classify, prompts_text
from actors.twin.world import load_world
from actors.verdict import Compared, Learnt, verdict
from actors.workspace.manifest import read_manifest
from actors.workspace.versions import read_prompts
from protocol.base import Refused
from protocol.baseline import SeedOutcomes
from protocol.dataset import DataSummary, DescribeData, GetPool, PlanEpoch, Question
from protocol.documents import Package
from protocol.factorial import GetUnits
from protocol.gate import GetPower, LadderSize
from protocol.ledger import Select, Where, rows_of
from protocol.rows import DecisionRow, EpochRow, EvaluationRow, StepRow
from protocol.settings import Config
from protocol.trainer import TrainingEnded

__all__ = ["final_report", "preflight_report"]


async def preflight_report(system: Supervisor, config: Config, paths: Paths) -> str:
    """What this run can see, before it spends anything: classes, ladders, resolvable gains."""
    data = await system.address("dataset").ask(DescribeData())
    if config.gate.design == "factorial":
        return await _factorial_preflight(system, config, paths, data)
    seeded = await system.address("baseline").ask(SeedOutcomes())
    right = {outcome.question_id: outcome.right for outcome in seeded.outcomes}
    plan = await system.address("dataset").ask(PlanEpoch(epoch=1, known=seeded.outcomes))
    if isinstance(plan, Refused):
        return f"{plan.what}\n{plan.remedy}\n" + "\n".join(plan.details)
    ladders = tuple(
        LadderSize(
            task_type=work.task_type,
            n_units=len(work.ladder),
            n_wrong=sum(
                not all(right.get(question.question_id, False) for question in unit.questions)
                for unit in work.ladder
            ),
        )
        for work in plan.classes
    )
    power = await system.address("gate").ask(GetPower(ladders=ladders))
    val = (await system.address("dataset").ask(GetPool(pool="val"))).questions
    test = (await system.address("dataset").ask(GetPool(pool="test"))).questions
    shape = run_shape(
        config,
        plan.classes,
        val=len(val),
        test=len(test),
        wrong=1.0 - sum(right.values()) / len(right) if right else 0.0,
        serves=seed_serves(config, paths.workspace),
        n_prompts=1 + len(read_seed_package(paths.workspace).prompts.tools),
    )
    parts: list[Table | Group | Text] = [
        preflight_table(data, plan, power, config.trainer),
        packages_text(await _packages(system, right)),
        cost_text(shape, simulated="search" in simulated_roles(config)),
    ]
    if not seed_serves(config, paths.workspace):
        parts.append(_foreign_baseline(config, paths))
    return render(parts)


async def _factorial_preflight(
    system: Supervisor, config: Config, paths: Paths, data: DataSummary
) -> str:
    """The same with the schedule in place of ladders, which the factorial gate has not."""
    found = await system.address("dataset").ask(GetUnits())
    if isinstance(found, Refused):
        return f"{found.what}\n{found.remedy}\n" + "\n".join(found.details)
    seeded = await system.address("baseline").ask(SeedOutcomes())
    right = {outcome.question_id: outcome.right for outcome in seeded.outcomes}
    simulated = "search" in simulated_roles(config)
    calls = SIMULATED_CALLS_PER_ROLLOUT if simulated else CALLS_PER_ROLLOUT
    parts: list[Table | Group | Text] = [
        schedule_text(
            config, data, found.units, calls, await _passes(system, config, paths, right)
        ),
        packages_text(await _packages(system, right)),
    ]
    if not seed_serves(config, paths.workspace):
        parts.append(_foreign_baseline(config, paths))
    return render(parts)


async def _packages(
    system: Supervisor, right: Mapping[str, bool]
) -> list[tuple[str, PackagePower]]:
    """What val and test can resolve of a whole package. right: in the baseline.

    Val by the seed's own pass, where the run has it already, else by trainval's share of wrong
    answers. Test was chosen blind: its own answers count there.
    """
    dataset = system.address("dataset")
    diag, val, test = [
        (await dataset.ask(GetPool(pool=pool))).questions for pool in ("diag", "val", "test")
    ]
    of_val = Select(table=EvaluationRow.TABLE, where=(Where(column="pool", value="val"),))
    passes = rows_of(EvaluationRow, await system.address("ledger").ask(of_val))
    trainval = (*diag, *val)
    return [
        (
            "val",
            seed_pass_power(passes)
            or forecast_power(len(val), _wrong(trainval, right), len(trainval)),
        ),
        ("test", package_power(len(test), _wrong(test, right))),
    ]


async def _passes(
    system: Supervisor, config: Config, paths: Paths, right: Mapping[str, bool]
) -> Passes:
    """What is answered beside a schedule."""
    val, test = [
        (await system.address("dataset").ask(GetPool(pool=pool))).questions
        for pool in ("val", "test")
    ]
    told = config.trainer.run_holdout_eval
    return Passes(
        val=len(val),
        test=len(test) if told else 0,
        test_seed=told and not seed_serves(config, paths.workspace),
        wrong=1.0 - sum(right.values()) / len(right) if right else 0.0,
    )


def _wrong(questions: Sequence[Question], right: Mapping[str, bool]) -> int:
    return sum(not right.get(question.question_id, False) for question in questions)


def _foreign_baseline(config: Config, paths: Paths) -> Text:
    """The seed was made with another agent: its answers serve for the split and nothing else."""
    info = read_seed_info(paths.workspace)
    return Text(
        "The seed's baseline was answered by another agent, so it serves for the split only:\n"
        f"  seed  {info.agent}\n  run   {agent_of(config)}\n"
        "This run draws every baseline itself. 'wrong' and the gains above are the other agent's, "
        "but for those that name this run."
    )


def final_report(
    config: Config,
    paths: Paths,
    ended: TrainingEnded,
    result: RunResult,
    report: str,
    resume: str,
) -> str:
    """What is told at the end of a run: the verdict, then the tables it rests on.

    report, resume: command lines that make a page of it and train further.
    """
    dataset = load_dataset(paths.questions, paths.exclude, duration=config.data.duration)
    frozen = load_frozen(paths.workspace, dataset.questions)
    seeded = read_predictions(paths.workspace / "baseline.db")
    predictions = {prediction.question_id: prediction.right for prediction in seeded}
    parts: list[Table | Group | Text] = []
    with open_reader(paths.workspace / "run.db") as reader:
        together = factorial_view(reader)
        if together is not None and together.void:
            parts.append(Text(void_words(together.run)))
        tested = _tested(reader, ended, frozen.test, predictions)
        known = paths.world is not None and "search" in simulated_roles(config)
        parts.append(
            _lead(config, ended, _verdict(reader, ended, together, tested), simulated=known)
        )
        if changed := changes_words(read_manifest(paths.workspace).changes):
            parts.append(prose(changed))
        parts.append(
            epochs_table(reader) if together is None else factorial_epochs(reader, together)
        )
        parts += _val_line(reader, ended)
        if tested is not None:
            parts.append(curves_table(reader))
        questions = (*frozen.diag, *frozen.val, *frozen.test) if known else ()
        steps = reader.rows(StepRow) if together is None else None
        if tested is not None or steps:
            parts.append(classes_table(steps, tested))
        if together is not None:
            gains = _worth(reader, config, paths, questions)
            parts += [factorial_part(together, gains), *factorial_truth(together, gains)]
        if known and together is None:
            parts.append(truth_table(_truths(reader, paths, ended.seed_package, questions)))
        parts.append(calls_table(reader, result.restarts, result.seconds))
    parts.append(where_lines(paths.workspace, report, resume if together is None else None))
    return "\n" + render(parts)


def _worth(
    reader: Reader, config: Config, paths: Paths, questions: tuple[Question, ...]
) -> dict[str, float]:
    """What the planted world knows of every edit; nothing where no simulator answered."""
    if paths.world is None or not questions:
        return {}
    world = load_world(paths.world.read_bytes())
    return true_gains(reader, config, read_seed_package(paths.workspace), world, questions)


def _tested(
    reader: Reader,
    ended: TrainingEnded,
    questions: Sequence[Question],
    predictions: Mapping[str, bool],
) -> OnTest | None:
    """Test under the seed and the best package; None where it was not evaluated."""
    before = outcomes_on_test(reader, ended.seed_package, predictions)
    after = outcomes_on_test(reader, ended.best_hard, predictions)
    if before is None or after is None:
        return None
    ids = {question.question_id for question in questions}
    sides = ({one: right for one, right in side.items() if one in ids} for side in (before, after))
    return OnTest(questions, *sides)


def _verdict(
    reader: Reader, ended: TrainingEnded, together: FactorialView | None, tested: OnTest | None
) -> str:
    """The run in a sentence; empty where its claims are void, which is told instead."""
    if ended.claims_void:
        return ""
    steps = reader.rows(StepRow)
    if together is not None:
        adopted = 0 if together.run is None else together.run.adopted
        learnt = Learnt(len(steps), len(together.proposed), adopted)
    else:
        results = Counter(row.result for row in steps)
        learnt = Learnt(len(steps), sum(results[one] for one in VERDICTS), results["accept"])
    test = None
    if tested is not None:
        test = Compared(len(tested.questions), *tested.right, mcnemar(tested.before, tested.after))
    is_seed = ended.best_hard == ended.seed_package
    val = None if is_seed else _on_val(reader, ended)
    return verdict(learnt, is_seed=is_seed, test=test, val=val)


def _on_val(reader: Reader, ended: TrainingEnded) -> Compared:
    """The best package against the seed's own fresh pass on val."""
    rows = {
        row.package: row
        for row in sorted(reader.rows(EvaluationRow), key=lambda row: -row.epoch)
        if row.pool == "val" and row.kind in ("seed", "final")
    }
    before, after = rows[ended.seed_package], rows[ended.best_hard]
    paired = review(reader, ended.seed_package, ended.best_hard)
    return Compared(before.planned, before.right, after.right, paired)


def _val_line(reader: Reader, ended: TrainingEnded) -> list[Text]:
    """What val says of the best package, which it chose."""
    if ended.best_hard == ended.seed_package:
        return []
    paired = _on_val(reader, ended).paired
    if not paired.pairs:
        return []
    return [
        prose(
            f"On val, best against seed: {paired.wins} won, {paired.losses} lost of {paired.pairs}",
            f"pairs: {paired_words(paired)}; flattered, since val chose the best.",
        )
    ]


def _lead(config: Config, ended: TrainingEnded, said: str, *, simulated: bool) -> Text:
    """The verdict, and what must be known to read it."""
    why = "patience is out" if ended.status == "early_stop" else "all epochs done"
    if ended.best_hard == ended.seed_package:
        best = f"the seed package {ended.seed_package} remains the best"
    else:
        best = f"best package {ended.best_hard} (seed: {ended.seed_package})"
    routing = {
        "oracle": "the benchmark's class label picks the skill (skill_routing: oracle)",
        "manual": "the agent picks its skill itself (skill_routing: manual)",
    }[config.agent.skill_routing]
    lines = [prose(said)] if said else []
    lines += [
        prose(f"Training ended after {ended.epochs} epochs ({why}); {best}."),
        prose(f"Routing: {routing}."),
    ]
    if simulated:
        words = "The agent was the simulator: these numbers say nothing about a language model."
        lines.append(prose(words))
    return Text("\n").join(lines)


def _truths(
    reader: Reader, paths: Paths, seed: Package, questions: tuple[Question, ...]
) -> list[Truth]:
    """Every decision with the planted gain of its candidate over the class's questions.

    Both sides of a decision were answered with the prompts that the epoch began with.
    """
    assert paths.world is not None, "asked only where a simulator answered"
    world = load_world(paths.world.read_bytes())
    texts = skill_texts(reader)
    stood = {row.epoch: row.prompts_version for row in reader.rows(EpochRow)}
    decisions = reader.rows(DecisionRow)
    versions = {row.epoch: stood.get(row.epoch - 1, seed.prompts) for row in decisions}
    told = {
        version: prompts_text(read_prompts(paths.workspace / "prompts", version))
        for version in set(versions.values())
    }
    truths = []
    for row in decisions:
        before, after = (
            class_accuracy(
                world, questions, row.task_type, texts[digest], told[versions[row.epoch]]
            )
            for digest in (row.current_hash, row.candidate_hash)
        )
        truths.append(Truth(row, after - before, classify(after - before)))
    return truths
