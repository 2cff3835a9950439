"""The dataset actor, without the runtime: real files, handlers called directly."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.dataset.actor import DatasetActor
from actors.dataset.errors import PoolsError, QuestionsError
from protocol.base import Refused
from protocol.dataset import (
    DescribeData,
    EpochPlan,
    GetPool,
    KnownOutcome,
    PlanEpoch,
    Question,
)
from protocol.factorial import FactorialUnits, GetUnits
from protocol.settings import DataSettings
from tests.dataset.material import BareContext, freeze, pools_of, question, write_jsonl

pytestmark = pytest.mark.anyio

SETTINGS = DataSettings(
    seed="seeds/made-up",
    questions="questions.jsonl",
    duration=None,
    exclude=None,
    trees="trees",
    batch_size=3,
    design_share=0.5,
    eval_min_per_class=2,
    trainable_min_units=8,
    tree_cache=1,
    search="bm25",
)
DIAG = (
    *(question(v, 1, "Big") for v in range(16)),
    *(question(v, 2, "Middle") for v in range(9)),
    *(question(v, 3, "Tiny") for v in range(3)),
)
VAL = tuple(question(v, n, c) for v in (20, 21) for n, c in ((1, "Big"), (2, "Middle")))
TEST = tuple(question(v, 3, "Tiny") for v in (30, 31))


async def started(
    folder: Path, *, diag: tuple[Question, ...] = DIAG, val: tuple[Question, ...] = VAL
) -> DatasetActor:
    questions = (*diag, *val, *TEST)
    path = write_jsonl(folder / "questions.jsonl", questions)
    freeze(folder, pools_of(diag, val, TEST), questions)
    actor = DatasetActor(SETTINGS, 7, path, None, folder)
    await actor.on_start(BareContext())
    return actor


def known(questions: tuple[Question, ...]) -> tuple[KnownOutcome, ...]:
    return tuple(
        KnownOutcome(question_id=q.question_id, right=index % 3 != 0)
        for index, q in enumerate(questions)
    )


async def test_p0_3_pools_and_summary(tmp_path: Path) -> None:
    """P0-3: a micro class leaves diag and val, is printed, and stays in test."""
    with capture_logs() as logs:
        actor = await started(tmp_path)
    dropped = [line for line in logs if line["event"] == "data.class_dropped"]
    assert [line["class"] for line in dropped] == ["Tiny"]
    assert "n_units 3 < trainable_min_units 8" in dropped[0]["reason"]
    diag, val, test = [
        (await actor.pool(GetPool(pool=pool))).questions for pool in ("diag", "val", "test")
    ]
    assert {q.task_type for q in diag} == {"Big", "Middle"}
    assert [q.question_id for q in val] == ["020-1", "020-2", "021-1", "021-2"]
    assert test == TEST
    summary = await actor.describe(DescribeData())
    assert summary.baseline_run_id == "base-1"
    assert summary.n_questions == len(DIAG) + len(VAL) + len(TEST)
    assert [count.trainable for count in summary.classes] == [True, True, False]


async def test_plan_of_an_epoch(tmp_path: Path) -> None:
    """Classes by name; batches hold the design fold; a small class is in_sample."""
    actor = await started(tmp_path)
    plan = await actor.plan(PlanEpoch(epoch=1, known=known(DIAG)))
    assert isinstance(plan, EpochPlan)
    big, middle = plan.classes
    assert (big.task_type, middle.task_type) == ("Big", "Middle")
    assert (big.in_sample, len(big.ladder)) == (False, 8)
    shown = {q.question_id for batch in big.batches for q in batch}
    tested = {q.question_id for unit in big.ladder for q in unit.questions}
    assert len(shown) == 8
    assert not shown & tested
    assert (middle.in_sample, len(middle.ladder)) == (True, 9)
    assert sum(len(batch) for batch in middle.batches) == 9
    assert await actor.plan(PlanEpoch(epoch=1, known=known(DIAG))) == plan
    assert await actor.plan(PlanEpoch(epoch=2, known=known(DIAG))) != plan


async def test_fold_does_not_follow_outcomes(tmp_path: Path) -> None:
    """The ladder is the same whatever was right: it is drawn blind."""
    actor = await started(tmp_path)
    flipped = tuple(KnownOutcome(question_id=k.question_id, right=not k.right) for k in known(DIAG))
    plans = [await actor.plan(PlanEpoch(epoch=1, known=which)) for which in (known(DIAG), flipped)]
    ladders = [
        [work.ladder for work in plan.classes] for plan in plans if isinstance(plan, EpochPlan)
    ]
    assert len(ladders) == 2
    assert ladders[0] == ladders[1]


async def test_fail_loud_plan_without_outcome(tmp_path: Path) -> None:
    """Row fail-loud: refused with the questions that have no outcome; Tiny is not asked for."""
    actor = await started(tmp_path)
    refused = await actor.plan(PlanEpoch(epoch=1, known=known(DIAG[2:])))
    assert isinstance(refused, Refused)
    assert refused.details == ("000-1", "001-1")
    assert "2 of 25 diag questions" in refused.what


async def test_two_outcomes_of_one_question_are_refused(tmp_path: Path) -> None:
    """Which one is the latest cannot be guessed."""
    actor = await started(tmp_path)
    torn = KnownOutcome(question_id="000-1", right=True)
    refused = await actor.plan(PlanEpoch(epoch=1, known=(*known(DIAG), torn)))
    assert isinstance(refused, Refused)
    assert refused.details == ("000-1",)


async def test_nothing_trainable_is_refused(tmp_path: Path) -> None:
    """Not a crash: a reply with every class and its reason."""
    actor = await started(tmp_path, val=VAL[:1])
    refused = await actor.plan(PlanEpoch(epoch=1, known=known(DIAG)))
    assert isinstance(refused, Refused)
    assert len(refused.details) == 3


async def test_w_2_start_refuses_foreign_pools(tmp_path: Path) -> None:
    """W-2: an actor never starts on pools of other questions, nor on broken questions."""
    await started(tmp_path)
    write_jsonl(tmp_path / "questions.jsonl", DIAG)
    actor = DatasetActor(SETTINGS, 7, tmp_path / "questions.jsonl", None, tmp_path)
    with pytest.raises(PoolsError, match="dataset_fingerprint"):
        await actor.on_start(BareContext())
    (tmp_path / "questions.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(QuestionsError, match="line 1"):
        await actor.on_start(BareContext())


async def test_excluded_questions_are_in_no_pool(tmp_path: Path) -> None:
    """The actor leaves out what the split left out."""
    write_jsonl(tmp_path / "questions.jsonl", (*DIAG, *VAL, *TEST))
    (tmp_path / "wrong.txt").write_text(f"{DIAG[0].question_id}\n", encoding="utf-8")
    left = (*DIAG[1:], *VAL, *TEST)
    freeze(tmp_path, pools_of(DIAG[1:], VAL, TEST), left)
    questions, exclude = tmp_path / "questions.jsonl", tmp_path / "wrong.txt"
    actor = DatasetActor(SETTINGS, 7, questions, exclude, tmp_path)
    await actor.on_start(BareContext())
    assert (await actor.describe(DescribeData())).n_questions == len(left)


async def test_units_without_outcomes(tmp_path: Path) -> None:
    """All diag units of the trainable classes, by class and video; refused if there is none."""
    found = await (await started(tmp_path)).units(GetUnits())
    assert isinstance(found, FactorialUnits)
    assert [unit.task_type for unit in found.units] == ["Big"] * 16 + ["Middle"] * 9
    assert sorted(found.units, key=lambda unit: unit.unit_id) == list(found.units)
    (tmp_path / "none").mkdir()
    refused = await (await started(tmp_path / "none", diag=DIAG[-3:])).units(GetUnits())
    assert isinstance(refused, Refused)
    assert any("Tiny" in line for line in refused.details)
