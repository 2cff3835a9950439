"""Edits of the system prompt and the tool prompts in a training under the factorial gate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from anyio.abc import TaskGroup

from protocol.base import Message, Refused, Request
from protocol.diagnoser import GetCasePacks
from protocol.documents import text_hash
from protocol.factorial import (
    RunPhase,
)
from protocol.factorial_prompts import (
    ProposePromptEdits,
)
from protocol.factorial_rows import PROMPTS, FactorialEditRow, PairRow
from protocol.ledger import Record
from protocol.rows import DocumentRow, EditRow, EvaluationRow, StepRow
from protocol.trainer import Train, TrainingEnded
from tests.trainer.factorial_house import NOTHING, FactorialHouse, opened
from tests.trainer.house import CLASSES

pytestmark = pytest.mark.anyio


async def test_an_edit_of_the_prompts_is_tested_in_both_classes(tmp_path: Path) -> None:
    """One that helps all classes is adopted, one that harms is dropped; one new prompts version."""
    async with opened(tmp_path) as (house, tasks):
        house.lines = lambda *_: []
        house.prompt_lines = lambda epoch: ["good", "bad"] if epoch == 1 else []
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.best_hard.skills, ended.best_hard.prompts) == ("v1", "v2")
        assert house.prompts["v2"] == {"system": "you\ngood\n", "look": "see\n"}
        edits = {row.edit_id: row for row in await house.rows(FactorialEditRow)}
        assert edits["e1/_prompts/1"].state == "adopted"
        assert edits["e1/_prompts/2"].state == "dropped"
        assert edits["_prompts/sentinel"].sentinel
        assert {edits[f"e1/_prompts/{n}"].document for n in (1, 2)} == {"system"}
        pairs = await house.rows(PairRow)
        assert {row.task_type for row in pairs} == set(CLASSES)
        assert all('"e1/_prompts/1"' in row.coins for row in pairs)
        evaluations = await house.rows(EvaluationRow)
        found = {(row.kind, row.prompts_version, row.right) for row in evaluations}
        assert {("seed", "v1", 0), ("fast", "v2", 10)} <= found


async def test_adopted_edits_of_the_prompts_have_an_origin(tmp_path: Path) -> None:
    """The proposal is a step of its own, the adoption another; texts and edits by document."""
    async with opened(tmp_path) as (house, tasks):
        house.prompt_lines = lambda epoch: ["good"] if epoch == 1 else []
        await (await house.start(tasks)).train(Train())
        steps = {row.run_key: row for row in await house.rows(StepRow) if PROMPTS in row.run_key}
        assert {key: row.result for key, row in steps.items()} == {
            "e1/_prompts/s1": "proposed",
            "e2/_prompts/s1": "no_edits",
            "e2/_prompts/s2": "accept",
        }
        last = steps["e2/_prompts/s2"]
        assert last.skill_before == steps["e1/_prompts/s1"].skill_before != last.skill_after
        edits = [row for row in await house.rows(EditRow) if row.run_key.startswith(last.run_key)]
        assert [(row.run_key, row.document, row.content) for row in edits] == [
            ("e2/_prompts/s2/adopted/system", "system", "good\n")
        ]
        texts = {row.hash for row in await house.rows(DocumentRow)}
        assert {text_hash("you\n"), text_hash("you\ngood\n")} <= texts


async def test_prompts_are_proposed_once_all_classes_have_theirs(tmp_path: Path) -> None:
    """Before any pair of the epoch, from design units alone, and from no other evidence."""
    async with opened(tmp_path) as (house, tasks):
        house.prompt_lines = lambda epoch: [f"idle {epoch}"]
        rolled: list[tuple[int, int]] = []
        propose = house._prompt_edits

        def watched(request: ProposePromptEdits) -> Message:
            keys = [job.run_key for job in house.rolled]
            epoch = request.run_key[1]
            own = {key for key in keys if key.startswith(f"e{epoch}/") and "/rollout" in key}
            assert len(own) == len(CLASSES)
            rolled.append((int(epoch), sum(f"/p{epoch}/" in key for key in keys)))
            return propose(request)

        house._prompt_edits = watched  # type: ignore[method-assign]  # to look over its shoulder
        await (await house.start(tasks)).train(Train())
        assert rolled == [(1, 0), (2, 0)]
        pairs = {row.unit_id for row in await house.rows(PairRow)}
        asked = [one for one in house.asked if isinstance(one, GetCasePacks)]
        shown = [*(one.questions for one in house.proposed_prompts), *(o.questions for o in asked)]
        assert len(shown) == 4
        assert pairs.isdisjoint(question.question_id for own in shown for question in own)
        assert [len(one.earlier) for one in house.proposed_prompts] == [0, 1]
        again = [
            job
            for job in house.rolled
            if job.run_key.startswith("e2/") and "+" in job.prompts.version
        ]
        assert {"idle 1" in job.prompts.system for job in again} <= {True}


async def test_an_absent_editor_of_the_prompts(tmp_path: Path) -> None:
    """The step begins anew on resume; the classes' steps stand, and no pair was drawn."""
    async with opened(tmp_path) as (house, tasks):
        house.prompt_lines = lambda epoch: ["good"] if epoch == 1 else []
        propose = house._prompt_edits
        away = msgspec.structs.replace(NOTHING, reason="editor_unreachable")
        house._prompt_edits = lambda request: away  # type: ignore[method-assign]
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert refused.passing
        assert "e1/_prompts/s1" in refused.what
        assert await house.rows(PairRow) == ()
        house._prompt_edits = propose  # type: ignore[method-assign]
        n_proposed = len(house.proposed)
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert ended.best_hard.prompts == "v2"
        epochs = [int(one.run_key[1]) for one in house.proposed[n_proposed:]]
        assert epochs == [2, 2]


async def test_a_run_of_before_has_no_edits_of_prompts(tmp_path: Path) -> None:
    """Its pairs may be drawn: nothing is added to what takes part in them."""
    async with opened(tmp_path) as (house, tasks):
        house.prompt_lines = lambda _: ["good"]

        house.draining = True
        await (await house.start(tasks)).train(Train())
        await house.database._writer.execute(
            f"DELETE FROM factorial_edits WHERE task_type = '{PROMPTS}'"
        )
        house.draining = False
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert house.proposed_prompts == []
        assert ended.best_hard.prompts == "v1"


@pytest.mark.parametrize("phase", [1, 2, 3])
async def test_prompts_are_not_proposed_again(tmp_path: Path, phase: int) -> None:
    """Died once the first pairs were asked for: the edits stand, and the end is the same."""
    async with opened(tmp_path) as (house, tasks):
        house.prompt_lines = lambda epoch: ["good", f"idle {epoch}"]

        def die(request: Request[object]) -> None:
            if isinstance(request, RunPhase) and request.phase == phase:
                raise RuntimeError("killed")

        house.on_gate = die
        with pytest.raises(ExceptionGroup):
            await (await house.start(tasks)).train(Train())
        known = {row.edit_id for row in await house.rows(FactorialEditRow)}
        n_asked = len(house.proposed_prompts)
        assert n_asked == min(phase, 2)
        house.on_gate = lambda _: None
        restored = house.checkpoints[-1] if house.checkpoints else None
        ended = await (await house.start(tasks, restored=restored)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert ended.best_hard.prompts == "v2"
        assert known <= {row.edit_id for row in await house.rows(FactorialEditRow)}
        assert [one.run_key[:2] for one in house.proposed_prompts] == ["e1", "e2"]


@pytest.mark.parametrize("applied", [True, False])
async def test_a_death_at_the_commit_of_the_proposal(tmp_path: Path, *, applied: bool) -> None:
    """Row and edits are there together or not at all; the end is that of an undisturbed run."""
    ends = []
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        async with opened(tmp_path / name) as (house, tasks):
            house.prompt_lines = lambda epoch: ["good", f"idle {epoch}"]
            if name == "killed":
                await _die_at_the_commit(house, tasks, applied=applied)
                assert len(house.proposed_prompts) == 1
            ended = await (await house.start(tasks)).train(Train())
            assert isinstance(ended, TrainingEnded)
            keys = [one.run_key[:2] for one in house.proposed_prompts]
            assert keys == ["e1", *["e1"] * (name == "killed" and not applied), "e2"]
            tables = (FactorialEditRow, PairRow, StepRow, EvaluationRow)
            ends.append([await house.rows(table) for table in tables])
    assert ends[0] == ends[1]


async def _die_at_the_commit(house: FactorialHouse, tasks: TaskGroup, *, applied: bool) -> None:
    real = house._ledger

    async def dying(request: Request[object]) -> Message:
        rows = request.rows if isinstance(request, Record) else ()
        if not any(isinstance(row, StepRow) and PROMPTS in row.run_key for row in rows):
            return await real(request)
        if applied:
            await real(request)
        raise RuntimeError("killed")

    house._ledger = dying  # type: ignore[method-assign]  # it dies once
    with pytest.raises(RuntimeError, match="killed"):
        await (await house.start(tasks)).train(Train())
    house._ledger = real  # type: ignore[method-assign]
