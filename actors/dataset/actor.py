"""The dataset actor: what there is to learn from, and the work of an epoch.

Loads and verifies everything when it starts and keeps it; answers from memory. Must
never hand out a test question for training, nor drop a question without saying so.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import anyio.to_thread

from actors.dataset.plan import plan_classes
from actors.dataset.pools import FrozenData, load_frozen
from actors.dataset.preflight import preflight, trainable_only
from actors.dataset.questions import load_dataset
from actors.dataset.units import make_units
from actors.runtime.actor import Actor, Context, handles
from protocol.base import Refused
from protocol.dataset import (
    ClassCount,
    DataSummary,
    DescribeData,
    EpochPlan,
    GetPool,
    KnownOutcome,
    PlanEpoch,
    PoolQuestions,
    Unit,
)
from protocol.factorial import FactorialUnits, GetUnits
from protocol.settings import DataSettings

__all__ = ["DatasetActor"]


class DatasetActor(Actor):
    """Owns the questions and the frozen pools of one run.

    seed: the run's. questions_path, exclude_path: what ``load_dataset`` reads. pools_dir: the
    workspace, with pools.json, split_manifest.json and seed.json.
    """

    def __init__(
        self,
        settings: DataSettings,
        seed: int,
        questions_path: Path,
        exclude_path: Path | None,
        pools_dir: Path,
    ) -> None:
        self._settings = settings
        self._seed = seed
        self._questions_path = questions_path
        self._exclude_path = exclude_path
        self._pools_dir = pools_dir
        self._summary: DataSummary
        self._pools: dict[str, PoolQuestions]
        self._units: dict[str, tuple[Unit, ...]]

    async def on_start(self, context: Context) -> None:
        """Load and verify. Raises QuestionsError or PoolsError with all that is wrong."""
        frozen = await anyio.to_thread.run_sync(self._load)
        classes = preflight(
            frozen.diag,
            frozen.val,
            frozen.test,
            eval_min_per_class=self._settings.eval_min_per_class,
            trainable_min_units=self._settings.trainable_min_units,
        )
        diag = trainable_only(frozen.diag, classes)
        self._pools = {
            "diag": PoolQuestions(questions=diag),
            "val": PoolQuestions(questions=trainable_only(frozen.val, classes)),
            "test": PoolQuestions(questions=frozen.test),
        }
        units: defaultdict[str, list[Unit]] = defaultdict(list)
        for unit in make_units(diag):
            units[unit.task_type].append(unit)
        self._units = {task_type: tuple(members) for task_type, members in units.items()}
        self._summary = _summary(frozen, classes)
        context.log.info(
            "data.loaded",
            questions=self._summary.n_questions,
            videos=self._summary.n_videos,
            trainable=len(self._units),
        )
        for count in classes:
            if not count.trainable:
                context.log.warning(
                    "data.class_dropped", reason=count.reason, **{"class": count.task_type}
                )

    @handles(DescribeData)
    async def describe(self, request: DescribeData) -> DataSummary:
        """The data as loaded."""
        return self._summary

    @handles(GetPool)
    async def pool(self, request: GetPool) -> PoolQuestions:
        """A pool; diag and val without the classes that pre-flight dropped (row P0-3)."""
        return self._pools[request.pool]

    @handles(PlanEpoch)
    async def plan(self, request: PlanEpoch) -> EpochPlan | Refused:
        """Folds and batches. Outcomes of questions outside diag are left aside."""
        right = {known.question_id: known.right for known in request.known}
        refused = self._refusal(request.known, right)
        if refused is not None:
            return refused
        classes = plan_classes(
            self._units, right, self._settings, seed=self._seed, epoch=request.epoch
        )
        return EpochPlan(epoch=request.epoch, classes=classes)

    @handles(GetUnits)
    async def units(self, request: GetUnits) -> FactorialUnits | Refused:
        """All units that may be trained on, by class and video; no outcome is looked at."""
        if not self._units:
            return self._nothing_to_train()
        members = (self._units[task_type] for task_type in sorted(self._units))
        return FactorialUnits(units=tuple(unit for own in members for unit in own))

    def _nothing_to_train(self) -> Refused:
        return Refused(
            what="pre-flight left no class to train",
            remedy="split more videos into trainval, or lower data.eval_min_per_class "
            "or data.trainable_min_units",
            details=tuple(f"{count.task_type}: {count.reason}" for count in self._summary.classes),
        )

    def _refusal(self, known: tuple[KnownOutcome, ...], right: dict[str, bool]) -> Refused | None:
        """Why no plan can be made; None: it can (row fail-loud)."""
        if not self._units:
            return self._nothing_to_train()
        torn = sorted({k.question_id for k in known if right[k.question_id] != k.right})
        if torn:
            return Refused(
                what=f"{len(torn)} questions have two different latest outcomes",
                remedy="send one outcome per question",
                details=tuple(torn),
            )
        diag = self._pools["diag"].questions
        lacking = tuple(q.question_id for q in diag if q.question_id not in right)
        if lacking:
            return Refused(
                what=f"{len(lacking)} of {len(diag)} diag questions have no known outcome",
                remedy="make the seed from a baseline that answered every diag question",
                details=lacking,
            )
        return None

    def _load(self) -> FrozenData:
        dataset = load_dataset(
            self._questions_path, self._exclude_path, duration=self._settings.duration
        )
        return load_frozen(self._pools_dir, dataset.questions)


def _summary(frozen: FrozenData, classes: tuple[ClassCount, ...]) -> DataSummary:
    return DataSummary(
        dataset_fingerprint=frozen.dataset_fingerprint,
        pools_sha256=frozen.pools_sha256,
        baseline_run_id=frozen.baseline_run_id,
        n_videos=len({question.video_id for question in frozen.questions}),
        n_questions=len(frozen.questions),
        classes=classes,
    )
