"""The loop through a small house: what is done, in which order, and where it goes on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.config import load_config
from actors.trainer.state import TrainerState
from protocol.base import Refused
from protocol.ledger import Select, rows_of
from protocol.ledger import Selected as Rows
from protocol.rows import EvaluationRow, RejectedRow, StepRow
from protocol.trainer import Train, TrainingEnded
from tests.trainer.house import CLASSES, House, opened

pytestmark = pytest.mark.anyio


async def _steps(house: House) -> list[StepRow]:
    rows = Rows(rows=await house.database.select(Select(table="steps")))
    return list(rows_of(StepRow, rows))


async def test_a_whole_training(tmp_path: Path) -> None:
    """Two epochs: the edit is taken, val is evaluated, the best package goes to test."""
    async with opened(tmp_path) as (house, tasks):
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.status, ended.epochs, ended.best_hard.skills) == ("done", 2, "v2")
        assert house.texts["v2"] == dict.fromkeys(CLASSES, "start\ngood\n")
        rows = Rows(rows=await house.database.select(Select(table="evaluations")))
        kinds = [(row.epoch, row.pool, row.kind, row.right) for row in rows_of(EvaluationRow, rows)]
        assert kinds == [
            (0, "test", "seed", 0),
            (0, "val", "seed", 0),
            (1, "test", "best_hard", 10),
            (1, "test", "best_mixed", 10),
            (1, "test", "final", 10),
            (1, "val", "fast", 10),
            (1, "val", "final", 10),
            (2, "test", "best_hard", 10),
            (2, "test", "best_mixed", 10),
            (2, "test", "final", 10),
            (2, "val", "fast", 10),
            (2, "val", "final", 10),
        ]
        assert [row.result for row in await _steps(house)].count("accept") == len(CLASSES)


async def test_W_5_the_epoch_is_observed_once_and_checkpointed_at_once(tmp_path: Path) -> None:
    """W-5, P1-7: observe, checkpoint, flush, checkpoint, epoch row, manifest: in this order."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        order = [
            event
            for event in house.happened
            if event.startswith(("observe", "checkpoint", "flush", "row epochs", "manifest"))
        ]
        assert order[:6] == [
            "observe 1",
            "checkpoint epoch 1 observed",
            "flush",
            "checkpoint epoch 1",
            "row epochs ",
            "manifest 1",
        ]


async def test_W_5_a_crash_after_the_observation_does_not_observe_again(tmp_path: Path) -> None:
    """W-5: the second checkpoint fails; the resumed trainer finds the epoch observed."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.fail_checkpoint = "epoch 1"
        with pytest.raises(OSError, match="No space"):
            await (await house.start(tasks)).train(Train())
        (first,) = house.checkpoints
        assert first is not None
        assert msgspec.json.decode(first, type=TrainerState).gate_epoch_observed
        house.fail_checkpoint = None
        await (await house.start(tasks, restored=first)).train(Train())
        assert [event for event in house.happened if event.startswith("observe")] == ["observe 1"]
        assert "manifest 1" in house.happened


async def test_a_checkpoint_ahead_of_the_ledger_is_rolled_forward_by_one(tmp_path: Path) -> None:
    """Died after the checkpoint and before the epoch row: the row is written on resume."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        whole = house.checkpoints[1]
        (row,) = await house.database.select(Select(table="epochs"))
        await house.forget("epochs")
        house.happened.clear()
        ended = await (await house.start(tasks, restored=whole)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert await house.database.select(Select(table="epochs")) == (row,)
        assert "manifest 1" in house.happened


@pytest.mark.parametrize("epoch", [1, 7], ids=["lost ledger", "foreign checkpoint"])
async def test_a_checkpoint_without_its_ledger_is_refused(tmp_path: Path, epoch: int) -> None:
    """A run.db that was lost or replaced is not forged: nothing is written to it."""
    (tmp_path / "other").mkdir()
    async with opened(tmp_path / "other", "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        state = msgspec.json.decode(house.checkpoints[1] or b"", type=TrainerState)
    async with opened(tmp_path, "trainer.epochs=9") as (house, tasks):
        state = msgspec.structs.replace(state, epoch=epoch, observed_epoch=epoch)
        restored = msgspec.json.encode(state)
        ended = await (await house.start(tasks, restored=restored)).train(Train())
        assert isinstance(ended, Refused)
        assert f"epoch {epoch}" in ended.what
        assert not [event for event in house.happened if event.startswith("row")]


async def test_the_previous_checkpoint_serves(tmp_path: Path) -> None:
    """checkpoint.json is damaged: the one before it redoes the boundary, and nothing else."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        observed = house.checkpoints[0]
        before = await _steps(house)
        house.happened.clear()
        house.rolled.clear()
        ended = await (await house.start(tasks, restored=observed)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert await _steps(house) == before
        assert house.rolled == []
        assert "observe 1" not in house.happened


async def test_P1_4_an_outage_in_a_step_leaves_no_step(tmp_path: Path) -> None:
    """P1-4: too much missing, or an editor that is away: the step is not done."""
    async with opened(tmp_path) as (house, tasks):
        house.lose = lambda job: "/s1/" in job.run_key
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert ended.passing
        assert await _steps(house) == []
        house.lose = lambda _: False
        house.editor_away = True
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert ended.passing
        assert await _steps(house) == []
        house.editor_away = False
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)


async def test_another_agents_predictions_do_not_stand_for_the_seed(tmp_path: Path) -> None:
    """The seed was answered by another model: its package is evaluated on test by this one."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.seed_serves = False
        await (await house.start(tasks)).train(Train())
        keys = {job.run_key for job in house.rolled if "/test/" in job.run_key}
        assert keys == {"e0/test/seed", "e1/test/final"}


async def test_P2_3_a_resumed_epoch_goes_on_after_its_whole_steps(tmp_path: Path) -> None:
    """P2-3: whole steps are kept, the interrupted one begins anew, nothing is counted twice."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):

        def stop_after_first(_: str) -> None:
            house.draining = True

        house.on_step = stop_after_first
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert ended.status == "drained"
        before = await _steps(house)
        assert [row.step for row in before] == [1, 1]
        house.draining = False
        house.on_step = lambda _: None
        house.rolled.clear()
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert ended.status == "done"
        after = await _steps(house)
        assert [row for row in after if row.step == 1] == before
        assert [row.step for row in after] == [1, 2, 1, 2]
        steps = [job.run_key for job in house.rolled if job.run_key.endswith("/rollout")]
        assert all("/s2/" in key for key in steps)
        assert all("good" in job.skill.text for job in house.rolled if "/s2/" in job.run_key)


async def test_P0_5_early_stop_after_patience_epochs(tmp_path: Path) -> None:
    """P0-5: no better package in two epochs stops the training, steps do not matter."""
    async with opened(tmp_path, "trainer.epochs=9") as (house, tasks):
        house.edit = lambda _: "bad\n"
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.status, ended.epochs) == ("early_stop", 2)
        assert ended.best_hard == ended.seed_package
        rejected = Rows(rows=await house.database.select(Select(table="rejected")))
        assert len(rows_of(RejectedRow, rejected)) == 8  # 2 epochs x 2 classes x 2 steps


async def test_P1_5_a_step_with_a_degraded_judge_stops_the_run(tmp_path: Path) -> None:
    """P1-5: more than half degraded is an error that names the step; nothing is learnt."""
    async with opened(tmp_path) as (house, tasks):
        house.degraded = True
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert "degraded" in ended.what
        assert await _steps(house) == []


async def test_a_gate_that_cannot_test_stops_the_run(tmp_path: Path) -> None:
    """Row fail-loud: an uncovered unit is an error, not a rejection."""
    async with opened(tmp_path) as (house, tasks):
        house.refuse_trial = True
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert ended.details == ("u1",)


async def test_P1_4_a_pass_below_coverage_decides_nothing(tmp_path: Path) -> None:
    """P1-4: missing is retried; what stays missing stops the pass, and no row is written."""
    async with opened(tmp_path) as (house, tasks):
        house.lose = lambda job: job.question.question_id == "Co-10"
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert "only 90.0%" in ended.what
        tries = [job for job in house.rolled if job.question.question_id == "Co-10"]
        assert len(tries) == 3
        assert await house.database.select(Select(table="evaluations")) == ()
        house.lose = lambda _: False
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)


async def test_P1_1_every_pass_of_an_epoch_carries_the_epochs_salt(tmp_path: Path) -> None:
    """P1-1: resampled across epochs, the same within one."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        salts = {(job.run_key.split("/")[0], job.salt) for job in house.rolled}
        seed = house.config.run.seed
        assert salts == {(f"e{epoch}", f"seed{seed}/e{epoch}") for epoch in range(3)}


async def test_other_skills_stand_as_the_epoch_found_them(tmp_path: Path) -> None:
    """Classes run side by side: none may see another's steps, or their order would matter."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
    for job in house.rolled:
        (other,) = job.others
        assert {other.task_type, job.skill.task_type} == set(CLASSES)
        began = "start\n" if job.run_key.startswith(("e0/", "e1/")) else "start\ngood\n"
        if job.run_key.endswith("/rollout"):
            assert other.text == began
    later = [
        job.skill.text for job in house.rolled if job.run_key == "e1/counting-problem/s2/rollout"
    ]
    assert set(later) == {"start\ngood\n"}


async def test_a_score_of_zero_is_a_score(tmp_path: Path) -> None:
    """A pass with nothing right is no missing pass: on resume it stands and is not run again.

    A peer took 0.0 for "not evaluated", ran its baseline again and began at step 0.
    """
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.edit = lambda _: None
        await (await house.start(tasks)).train(Train())
        rows = Rows(rows=await house.database.select(Select(table="evaluations")))
        assert {row.right for row in rows_of(EvaluationRow, rows)} == {0}
        house.config = load_config(None, ["trainer.epochs=2"])
        house.rolled.clear()
        await (await house.start(tasks, restored=house.checkpoints[-1])).train(Train())
        assert {job.run_key.split("/")[0] for job in house.rolled} == {"e2"}


async def test_a_manifest_behind_its_epoch_is_brought_up(tmp_path: Path) -> None:
    """Killed after the epoch's row and before the manifest: resuming replaces the manifest.

    It named the package before the last one for good, while the run said that it was done.
    """
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        before = house.manifest
        await (await house.start(tasks)).train(Train())
        after = house.manifest
        assert (before.epoch, after.epoch) == (0, 1)
        house.manifest = before
        await (await house.start(tasks, restored=house.checkpoints[-1])).train(Train())
        assert house.manifest == after
