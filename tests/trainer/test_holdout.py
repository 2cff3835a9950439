"""Four curves on test, each package answered once (row holdout)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from actors.config import load_config
from actors.trainer.holdout import SEED_OUTCOMES, memo_of, seed_row
from actors.trainer.state import TrainerState
from protocol.dataset import KnownOutcome
from protocol.documents import Package
from protocol.ledger import Select, rows_of
from protocol.ledger import Selected as Rows
from protocol.rows import EvaluationRow
from protocol.trainer import Train, TrainingEnded
from tests.trainer.house import VAL, House, opened

BASE = Package(skills="v1", prompts="v1")


async def curves(house: House) -> dict[tuple[int, str], EvaluationRow]:
    rows = Rows(rows=await house.database.select(Select(table="evaluations")))
    return {
        (row.epoch, row.kind): row for row in rows_of(EvaluationRow, rows) if row.pool == "test"
    }


def rolled(house: House) -> Counter[str]:
    return Counter(job.run_key for job in house.rolled if "/test/" in job.run_key)


@pytest.mark.anyio
async def test_holdout_all_four_curves_and_one_pass_per_epoch(tmp_path: Path) -> None:
    """Row holdout: the seed costs no call, ``final`` one pass; the best ones are pointers."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        rows = await curves(house)
        kinds = {(e, kind) for e in (1, 2) for kind in ("final", "best_hard", "best_mixed")}
        assert set(rows) == {(0, "seed")} | kinds
        assert rows[0, "seed"].outcomes_key == SEED_OUTCOMES
        assert rolled(house) == {"e1/test/final": 10, "e2/test/final": 10}
        for epoch in (1, 2):
            for kind in ("best_hard", "best_mixed"):
                assert rows[epoch, kind].outcomes_key == "e1/test/final"


@pytest.mark.anyio
async def test_holdout_best_hard_is_answered_only_if_its_package_never_was(tmp_path: Path) -> None:
    """Row holdout: test was off while the best package stood; it is answered once, later."""
    async with opened(tmp_path, "trainer.epochs=1", "trainer.run_holdout_eval=false") as (
        house,
        tasks,
    ):
        await (await house.start(tasks)).train(Train())
        assert rolled(house) == Counter()
        state = msgspec.json.decode(house.checkpoints[-1] or b"", type=TrainerState)
        assert state.best_hard.skills == "v2"
        back = msgspec.json.encode(msgspec.structs.replace(state, current=BASE))
        house.config = load_config(None, ["trainer.epochs=2"])
        house.edit = lambda _: None
        await (await house.start(tasks, restored=back)).train(Train())
        rows = await curves(house)
        assert (rows[2, "final"].skills_version, rows[2, "final"].right) == ("v1", 0)
        assert (rows[2, "best_hard"].skills_version, rows[2, "best_hard"].right) == ("v2", 10)
        assert rows[2, "best_mixed"].outcomes_key == "e2/test/best_hard"
        assert rolled(house) == {"e2/test/final": 10, "e2/test/best_hard": 10}


@pytest.mark.anyio
async def test_holdout_the_memo_is_rebuilt_from_the_ledger_on_resume(tmp_path: Path) -> None:
    """Row holdout: a resumed run answers nothing that the evaluation table holds already."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        rows = await curves(house)
        house.rolled.clear()
        await (await house.start(tasks, restored=house.checkpoints[-1])).train(Train())
        assert house.rolled == []
        assert await curves(house) == rows


@pytest.mark.anyio
async def test_holdout_an_empty_test_pool_blocks_no_epoch(tmp_path: Path) -> None:
    """Nothing is decided on test: where it has no question, no curve is drawn, all else goes on."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.no_test = True
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert ended.epochs == 1
        assert await curves(house) == {}
        assert rolled(house) == Counter()


def test_holdout_the_seeds_predictions_make_a_row_without_a_call() -> None:
    """A question without a prediction is missing, never wrong."""
    known = [
        KnownOutcome(question_id=question.question_id, right=True, confidence=1.0)
        for question in VAL[1:]
    ]
    row = seed_row(BASE, VAL, known)
    assert (row.planned, row.right, row.missing) == (10, 9, 1)
    assert row.soft == 1.0


def test_holdout_a_package_points_at_its_first_final_row() -> None:
    """Whatever else was drawn of it later."""
    row = seed_row(BASE, VAL, [])

    def made(epoch: int, kind: str) -> EvaluationRow:
        key = f"e{epoch}/test/{kind}"
        return EvaluationRow(
            **{
                **{name: getattr(row, name) for name in row.__struct_fields__},
                "run_key": key,
                "outcomes_key": key,
                "epoch": epoch,
                "kind": kind,
            }
        )

    rows = [made(3, "final"), made(2, "best_hard"), made(2, "final")]
    assert memo_of(rows)[BASE].run_key == "e2/test/final"
