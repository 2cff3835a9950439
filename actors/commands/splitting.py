"""A split and what it gives: made, and described before anything is spent.

Above the rooms, since what a split is worth is told by the dataset's pre-flight and by the
gate's power alike. Pure. ``split_report`` shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from actors.dataset.emptied import Emptied, emptied_classes
from actors.dataset.errors import MissingOutcomeError
from actors.dataset.fingerprint import dataset_fingerprint, sha256_hex
from actors.dataset.plan import plan_classes
from actors.dataset.pools import encode_pools
from actors.dataset.preflight import preflight, trainable_only
from actors.dataset.questions import Dataset
from actors.dataset.split import BaselineOutcome, split_pools
from actors.dataset.tiers import Tiered, tiered_outcomes
from actors.dataset.units import make_units
from actors.gate.levels import alpha_of, draws_of, stages_of
from actors.gate.package_power import PackagePower, forecast_power
from actors.gate.power import power_of
from protocol.dataset import ClassCount, ClassWork, DataSummary, EpochPlan, Question, Unit
from protocol.gate import Power, PowerTable
from protocol.seed import (
    BaselineDiagnosis,
    BaselinePrediction,
    Pools,
    SplitManifest,
    SplitParameters,
)
from protocol.settings import Config

__all__ = [
    "TOOL_VERSION",
    "ClassFacts",
    "PoolFacts",
    "Split",
    "SplitFacts",
    "describe",
    "make_split",
]

TOOL_VERSION = "trm 0.1.0"


class PoolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A pool in numbers. wrong, t2, t1: in the baseline; None for test, which is chosen blind.

    t2: a skill defect was found; t1: a lapse.
    """

    pool: str
    videos: int
    questions: int
    wrong: int | None
    t2: int | None
    t1: int | None


class ClassFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A class with pre-flight's verdict, and what its first ladder can see.

    ladder: None for a class that does not train. steps: gate decisions of all epochs, at most.
    """

    count: ClassCount
    ladder: Power | None
    in_sample: bool
    steps: int


class SplitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a split gives, before anything is spent.

    unstratified: videos without a sub-category, which are one stratum of their own.
    moved: videos that went from diag to val for its wrong answers. val, test: the smallest gain
    of a whole package that the pool can resolve, if as large a share of it is wrong as of
    trainval in the baseline: val is answered afresh, test's own answers are not looked at.
    emptied: classes that do not train, but would after fewer moves.
    undiagnosed, stray_diagnoses, unknown: see ``dataset.tiers``.
    """

    pools_sha256: str
    dataset_fingerprint: str
    baseline_run_id: str
    parameters: SplitParameters
    n_questions: int
    n_videos: int
    unstratified: int
    excluded: tuple[str, ...]
    pools: tuple[PoolFacts, ...]
    moved: tuple[str, ...]
    val: PackagePower
    test: PackagePower
    classes: tuple[ClassFacts, ...]
    emptied: tuple[Emptied, ...]
    undiagnosed: tuple[str, ...]
    stray_diagnoses: tuple[str, ...]
    unknown: tuple[str, ...]


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """The two files of a split, and what it gives. table: pre-flight's, as a run prints it."""

    pools_json: bytes
    manifest: SplitManifest
    facts: SplitFacts
    data: DataSummary
    plan: EpochPlan
    power: PowerTable


def make_split(
    dataset: Dataset,
    run_id: str,
    predictions: Iterable[BaselinePrediction],
    diagnoses: Iterable[BaselineDiagnosis],
    parameters: SplitParameters,
    config: Config,
    *,
    tool_version: str = TOOL_VERSION,
) -> Split:
    """Split the questions by the baseline ``run_id``; the same arguments give the same bytes.

    config: for the thresholds of pre-flight and the levels of the gate; they decide nothing here.

    Raises SplitError, and InfeasibleSplitError saying what would be feasible.
    """
    tiered = tiered_outcomes(dataset.questions, predictions, diagnoses)
    pools, report = split_pools(
        dataset.questions,
        tiered.outcomes,
        parameters,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    data = encode_pools(pools)
    manifest = SplitManifest(
        pools_sha256=sha256_hex(data),
        baseline_run_id=run_id,
        parameters=parameters,
        dataset_fingerprint=dataset_fingerprint(dataset.questions),
        tool_version=tool_version,
        excluded=dataset.excluded,
    )
    return describe(dataset, tiered, data, manifest, config, moved=report.moved)


def describe(
    dataset: Dataset,
    tiered: Tiered,
    pools_json: bytes,
    manifest: SplitManifest,
    config: Config,
    *,
    moved: tuple[str, ...] = (),
) -> Split:
    """What a split that is there already gives. moved: as far as it is known.

    Raises MissingOutcomeError if a diag question has no outcome, KeyError if the pools hold an id
    that no question has (``dataset.pools`` tells that better).
    """
    pools = msgspec.json.decode(pools_json, type=Pools)
    by_id = {question.question_id: question for question in dataset.questions}
    diag, val, test = (
        [by_id[question_id] for question_id in ids] for ids in (pools.diag, pools.val, pools.test)
    )
    known = {outcome.question_id: outcome for outcome in tiered.outcomes}
    counts = preflight(
        diag,
        val,
        test,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    right = {question_id: outcome.right for question_id, outcome in known.items()}
    lacking = [question_id for question_id in pools.diag if question_id not in right]
    if lacking:
        raise MissingOutcomeError(lacking)
    work = plan_classes(
        _by_class(trainable_only(diag, counts)),
        right,
        config.data,
        seed=config.run.seed,
        epoch=1,
    )
    power = tuple(_power(entry, right, config) for entry in work)
    judged = trainable_only(val, counts)  # packages are compared on the classes that train
    same_classes = trainable_only([*diag, *val], counts)
    facts = SplitFacts(
        pools_sha256=manifest.pools_sha256,
        dataset_fingerprint=manifest.dataset_fingerprint,
        baseline_run_id=manifest.baseline_run_id,
        parameters=manifest.parameters,
        n_questions=len(dataset.questions),
        n_videos=len({question.video_id for question in dataset.questions}),
        unstratified=len({q.video_id for q in dataset.questions if q.sub_category is None}),
        excluded=dataset.excluded,
        pools=(_pool("diag", diag, known), _pool("val", val, known), _pool("test", test, None)),
        moved=moved,
        val=_forecast(judged, same_classes, known),
        test=_forecast(test, [*diag, *val], known),
        classes=_classes(counts, work, power, config),
        emptied=emptied_classes(
            diag,
            val,
            known,
            manifest.parameters,
            eval_min_per_class=config.data.eval_min_per_class,
            trainable_min_units=config.data.trainable_min_units,
        ),
        undiagnosed=tiered.undiagnosed,
        stray_diagnoses=tiered.stray_diagnoses,
        unknown=tiered.unknown,
    )
    return Split(
        pools_json=pools_json,
        manifest=manifest,
        facts=facts,
        data=DataSummary(
            dataset_fingerprint=facts.dataset_fingerprint,
            pools_sha256=facts.pools_sha256,
            baseline_run_id=facts.baseline_run_id,
            n_videos=facts.n_videos,
            n_questions=facts.n_questions,
            classes=counts,
        ),
        plan=EpochPlan(epoch=1, classes=work),
        power=PowerTable(classes=power),
    )


def _by_class(questions: Iterable[Question]) -> dict[str, list[Unit]]:
    units: dict[str, list[Unit]] = {}
    for unit in make_units(questions):
        units.setdefault(unit.task_type, []).append(unit)
    return units


def _power(work: ClassWork, right: Mapping[str, bool], config: Config) -> Power:
    n_units = len(work.ladder)
    return power_of(
        work.task_type,
        n_units,
        sum(
            not all(right[question.question_id] for question in unit.questions)
            for unit in work.ladder
        ),
        alpha_of(config.gate, n_units),
        draws_of(config.gate, n_units),
        stages_of(config.gate),
    )


def _classes(
    counts: Iterable[ClassCount],
    work: Iterable[ClassWork],
    power: Iterable[Power],
    config: Config,
) -> tuple[ClassFacts, ...]:
    works = {entry.task_type: entry for entry in work}
    powers = {entry.task_type: entry for entry in power}
    facts = []
    for count in counts:
        mine = works.get(count.task_type)
        steps = 0 if mine is None else len(mine.batches[: config.trainer.max_batches])
        facts.append(
            ClassFacts(
                count=count,
                ladder=powers.get(count.task_type),
                in_sample=mine is not None and mine.in_sample,
                steps=steps * config.trainer.epochs,
            )
        )
    return tuple(facts)


def _wrong(questions: Iterable[Question], known: Mapping[str, BaselineOutcome]) -> int:
    return sum(
        question.question_id in known and not known[question.question_id].right
        for question in questions
    )


def _pool(
    name: str, questions: Collection[Question], known: Mapping[str, BaselineOutcome] | None
) -> PoolFacts:
    videos = len({question.video_id for question in questions})
    wrong = t2 = t1 = None
    if known is not None:
        tiers = [
            known[question.question_id].tier
            for question in questions
            if question.question_id in known and not known[question.question_id].right
        ]
        wrong, t2, t1 = len(tiers), tiers.count(2), tiers.count(1)
    return PoolFacts(pool=name, videos=videos, questions=len(questions), wrong=wrong, t2=t2, t1=t1)


def _forecast(
    pool: Collection[Question],
    trainval: Collection[Question],
    known: Mapping[str, BaselineOutcome],
) -> PackagePower:
    """As if the pool were as hard as trainval: its own outcomes do not count.

    Test's are not looked at. Val was chosen by its own, which makes them luckier or unluckier
    than the fresh pass that it is judged by.
    """
    return forecast_power(len(pool), _wrong(trainval, known), len(trainval))
