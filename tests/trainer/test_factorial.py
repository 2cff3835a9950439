"""A training under the factorial gate: the real gate, in the small house of the trainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.trainer.factorial_rows import new_rows
from protocol.base import Refused, Request
from protocol.documents import Skill
from protocol.factorial import (
    ProposedEdits,
    RunPhase,
)
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow
from protocol.gate import RefreshLadder, Trial
from protocol.redraws import RedrawRow
from protocol.rows import EditRow, EpochRow, EvaluationRow, OutcomeRow, StepRow
from protocol.trainer import Train, TrainingEnded
from tests.trainer.factorial_house import FactorialHouse, append, opened
from tests.trainer.house import CLASSES

pytestmark = pytest.mark.anyio


async def test_a_whole_training_adopts_at_the_end(tmp_path: Path) -> None:
    """Two epochs on the seed's documents, one decision, one new version, val and test once."""
    async with opened(tmp_path) as (house, tasks):
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.status, ended.epochs, ended.best_hard.skills) == ("done", 2, "v2")
        assert not ended.claims_void
        assert house.texts["v2"] == dict.fromkeys(CLASSES, "start\ngood\n")
        evaluations = await house.rows(EvaluationRow)
        assert [(row.epoch, row.pool, row.kind, row.right) for row in evaluations] == [
            (0, "test", "seed", 0),
            (0, "val", "seed", 0),
            (1, "val", "final", 0),
            (2, "test", "best_hard", 10),
            (2, "test", "best_mixed", 10),
            (2, "test", "final", 10),
            (2, "val", "fast", 10),
            (2, "val", "final", 10),
        ]
        val = [job for job in house.rolled if "/val/" in job.run_key]
        assert len(val) == 2 * 10  # the seed's and the adopted package's; epoch 1 made none
        epochs = await house.rows(EpochRow)
        assert [(row.epoch, row.skills_version) for row in epochs] == [(1, "v1"), (2, "v2")]
        assert not any(isinstance(one, Trial | RefreshLadder) for one in house.asked)
        edits = [row for row in await house.rows(FactorialEditRow) if not row.sentinel]
        assert {(row.edit_id, row.born, row.state) for row in edits} == {
            ("e1/counting-problem/1", 1, "adopted"),
            ("e1/temporal-reasoning/1", 1, "adopted"),
        }
        (run,) = await house.rows(FactorialRunRow)
        assert (run.n_edits, run.adopted) == (2, 2)


async def test_every_adopted_line_has_an_origin(tmp_path: Path) -> None:
    """The adoption is the class's last, accepted step, with its edits and both texts."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        steps = {row.run_key: row for row in await house.rows(StepRow)}
        results = {key: row.result for key, row in steps.items() if "counting" in key}
        assert results == {
            "e1/counting-problem/s1": "proposed",
            "e2/counting-problem/s1": "no_edits",
            "e2/counting-problem/s2": "accept",
        }
        step = steps["e2/counting-problem/s2"]
        texts = {(CLASSES[0], "start\n"): "before", (CLASSES[0], "start\ngood\n"): "after"}
        hashes = {name: Skill(task_type=c, text=t).hash for (c, t), name in texts.items()}
        assert (step.skill_before, step.skill_after) == (hashes["before"], hashes["after"])
        rows = [row for row in await house.rows(EditRow) if row.run_key.startswith(step.run_key)]
        assert [(row.content, row.status) for row in rows] == [("good\n", "applied")]
        assert "e1/counting-problem/1" in rows[0].detail


async def test_T7_tested_units_are_never_shown(tmp_path: Path) -> None:
    """No unit of a pair is in an editor draw, and none reaches the proposer in any message."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        pairs = {row.unit_id for row in await house.rows(PairRow)}
        drawn = {
            row.question_id
            for row in await house.rows(OutcomeRow)
            if row.run_key.endswith("/rollout")
        }
        assert pairs
        assert drawn
        assert pairs.isdisjoint(drawn)
        told = " ".join(map(str, house.proposed))
        assert not [unit for unit in pairs if unit in told]
        assert [len(one.earlier) for one in house.proposed] == [0, 0, 1, 1]


async def test_nothing_is_adopted_of_nothing(tmp_path: Path) -> None:
    """Useless lines: the package stays; patience is not asked, since nothing could change."""
    async with opened(tmp_path, "trainer.early_stop_patience=1", "trainer.epochs=3") as (
        house,
        tasks,
    ):
        house.lines = lambda epoch, _: [f"idle {epoch}"]
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.status, ended.epochs, ended.best_hard) == ("done", 3, ended.seed_package)
        finals = [row for row in await house.rows(EvaluationRow) if row.kind == "final"]
        assert {(row.pool, row.skills_version) for row in finals} == {("val", "v1"), ("test", "v1")}
        assert {row.outcomes_key for row in finals if row.pool == "val"} == {"e0/val/seed"}
        assert list(house.texts) == ["v1"]


async def test_it_resumes_from_every_checkpoint(tmp_path: Path) -> None:
    """Whatever checkpoint serves: the same rows, and no question is answered again."""
    async with opened(tmp_path) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        before = await every_row(house)
        n_rolled = len(house.rolled)
        for restored in house.checkpoints[-2:]:
            again = await (await house.start(tasks, restored=restored)).train(Train())
            assert isinstance(again, TrainingEnded)
            assert again.best_hard.skills == "v2"
        assert await every_row(house) == before
        assert len(house.rolled) == n_rolled


@pytest.mark.parametrize("phase", [1, 2, 3])
async def test_edits_are_not_proposed_again(tmp_path: Path, phase: int) -> None:
    """Died once a phase was asked for: its edits stand, since their pairs may have been drawn."""
    async with opened(tmp_path) as (house, tasks):

        def die(request: Request[object]) -> None:
            if isinstance(request, RunPhase) and request.phase == phase:
                raise RuntimeError("killed")

        house.on_gate = die
        with pytest.raises(ExceptionGroup):
            await (await house.start(tasks)).train(Train())
        edits = await house.rows(FactorialEditRow)
        steps = {row.run_key for row in await house.rows(StepRow)}
        n_asked = len(house.proposed)
        house.on_gate = lambda _: None
        restored = house.checkpoints[-1] if house.checkpoints else None
        ended = await (await house.start(tasks, restored=restored)).train(Train())
        assert isinstance(ended, TrainingEnded)
        known = {row.edit_id for row in edits}
        assert known <= {row.edit_id for row in await house.rows(FactorialEditRow)}
        again = [one.run_key.removesuffix("/proposal") for one in house.proposed[n_asked:]]
        assert steps.isdisjoint(again)
        assert ended.best_hard.skills == "v2"


async def test_a_stop_and_an_absent_editor(tmp_path: Path) -> None:
    """Both end the run resumable; the step that had no editor begins anew."""
    async with opened(tmp_path) as (house, tasks):
        house.editor_away = True
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert refused.passing
        house.editor_away = False

        def drain(request: Request[object]) -> None:
            house.draining = house.draining or isinstance(request, RunPhase)

        house.on_gate = drain
        stopped = await (await house.start(tasks)).train(Train())
        assert isinstance(stopped, TrainingEnded)
        assert (stopped.status, stopped.epochs) == ("drained", 0)
        house.on_gate, house.draining = lambda _: None, False
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.status, ended.best_hard.skills) == ("done", "v2")


async def test_P1_4_P1_5_garbled_editor_draws_are_drawn_anew(tmp_path: Path) -> None:
    """P1-4, P1-5: nothing is proposed from them, by agent or judge, nor are they replayed."""
    async with opened(tmp_path, "gate.fold=0.5") as (house, tasks):
        house.more = 6
        house.garble = lambda request: request.run_key.endswith("/rollout")
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert "could not be read" in refused.what
        house.garble, house.degraded = lambda _: False, True
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert "degraded" in refused.what
        assert not house.proposed
        house.degraded = False
        house.rolled.clear()
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        drawn = {one.salt for one in house.rolled if one.run_key.startswith("e1/")}
        redrawn = {row.pass_key: row.number for row in await house.rows(RedrawRow)}
        assert max(redrawn.values()) == 2
        assert {f"seed{house.config.run.seed}/e1/again2"} <= drawn


def test_a_new_edit_joins_groups() -> None:
    """A group is called after its first edit; only new and regrouped rows are written."""
    known = tuple(_row(f"e1/c/{nth}", nth) for nth in (1, 2, 3))
    step = _step()
    proposal = ProposedEdits(
        new=(append("x"), append("y")),
        groups=((1, 2, 3),),
        reports=(),
        editor_calls=1,
        parse_failures=0,
    )
    written = new_rows(known, proposal, 2, step)
    assert [(row.edit_id, row.position, row.born, row.group_id) for row in written] == [
        ("e1/c/2", 2, 1, "e1/c/2"),
        ("e1/c/3", 3, 1, "e1/c/2"),
        ("e2/c/1", 4, 2, "e1/c/2"),
        ("e2/c/2", 5, 2, None),
    ]


def _row(edit_id: str, position: int) -> FactorialEditRow:
    return FactorialEditRow(
        edit_id=edit_id,
        task_type="C",
        born=1,
        position=position,
        edit="{}",
        group_id=None,
        sentinel=False,
        proposed_by="e1/c/s1",
    )


def _step() -> StepRow:
    return StepRow(
        run_key="e2/c/s1",
        epoch=2,
        step=1,
        task_type="C",
        skill_before="",
        skill_after="",
        planned=0,
        right=0,
        missing=0,
        defects=0,
        lapses=0,
        degraded=0,
        result="proposed",
        edit_budget=4,
        editor_calls=1,
        parse_failures=0,
    )


async def every_row(house: FactorialHouse) -> tuple[object, ...]:
    """All that a run must come to, however often it was stopped."""
    return (
        await house.rows(FactorialEditRow),
        await house.rows(PairRow),
        await house.rows(FactorialRunRow),
        await house.rows(StepRow),
        await house.rows(EvaluationRow),
        await house.rows(EpochRow),
    )
