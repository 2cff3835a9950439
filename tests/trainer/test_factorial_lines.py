"""Notes and momentum rules in a training under the factorial gate, with a real evolver."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.evolver.actor import EvolverActor
from actors.evolver.momentum import momentum_of
from actors.evolver.regions import notes_of
from actors.ledger.sqlite import Database
from actors.trainer.factorial_rows import compared_draws
from protocol.base import Message, Request
from protocol.diagnoser import Diagnosis
from protocol.evolver import Edit
from protocol.factorial import ProposeEdits, RenderEdits, RunPhase
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow
from protocol.keys import slug
from protocol.ledger import Record
from protocol.llm import Chat, ChatAnswer
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import EditRow, OutcomeRow
from protocol.trainer import Train, TrainingEnded
from tests.commands.house import row
from tests.evolver.make import answer, reply, trace
from tests.evolver.slow_make import momentum_reply
from tests.support.fakes import FakeAddress
from tests.trainer.factorial_house import FactorialHouse, running
from tests.trainer.house import CLASSES, QUESTIONS
from tests.trainer.test_factorial import every_row

pytestmark = pytest.mark.anyio


class LinesHouse(FactorialHouse):
    """The house with a real evolver, whose editor has no edit: a note for the lapses, then a rule.

    said: the note and the rule, by the first letters of a class's questions.
    """

    def __init__(self, database: Database, *assignments: str) -> None:
        super().__init__(database, *assignments)
        self.said = {"Co": ("Be good at it.", "Idle about."), "Te": ("Rest a bit.", "Stay good.")}
        self.chats: list[Chat] = []
        self.editor = EvolverActor(
            self.config.evolver,
            FakeAddress("llm", self._llm),
            FakeAddress("ledger", self._ledger),
        )

    async def _rollout(self, request: Request[object]) -> Message:
        assert isinstance(request, Rollout)
        row = trace(request.question.question_id, run_key=request.run_key)
        await self.database.apply([Record(rows=(row,))])
        return await super()._rollout(request)

    async def _diagnoser(self, request: Request[object]) -> Message:
        found = await super()._diagnoser(request)
        if not isinstance(found, Diagnosis):
            return found
        return msgspec.structs.replace(found, cause="lapse")

    async def _evolver(self, request: Request[object]) -> Message:
        if isinstance(request, RenderEdits):
            return await self.editor.on_render_edits(request)
        if not isinstance(request, ProposeEdits):  # of the prompts nothing is proposed
            return await super()._evolver(request)
        self.proposed.append(request)
        return await self.editor.on_propose_edits(request)

    async def _llm(self, request: Request[object]) -> ChatAnswer:
        assert isinstance(request, Chat)
        self.chats.append(request)
        shown = str(request.messages[0].content)
        note, rule = self.said["Co" if "Case Co-" in shown else "Te"]
        return answer(momentum_reply(rule) if "Compared:" in shown else reply((), [note]))


async def test_notes_and_rules_are_tested_on_their_own(tmp_path: Path) -> None:
    """A note that helps is adopted beside a rule that does not, and the other way round."""
    async with running(tmp_path, LinesHouse) as (house, tasks):
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        edits = {row.edit_id: row for row in await house.rows(FactorialEditRow) if row.edit}
        decided = {
            name: (msgspec.json.decode(row.edit, type=Edit).op, row.state == "adopted")
            for name, row in edits.items()
        }
        assert decided == {
            "e1/counting-problem/1": ("note", True),
            "e2/counting-problem/1": ("momentum", False),
            "e1/temporal-reasoning/1": ("note", False),
            "e2/temporal-reasoning/1": ("momentum", True),
        }
        assert {row.group_id for row in edits.values()} == {None}
        (run,) = await house.rows(FactorialRunRow)
        assert (run.n_edits, run.adopted) == (4, 2)
        texts = house.texts[ended.best_hard.skills]
        assert notes_of(texts[CLASSES[0]]) == ("Be good at it.",)
        assert momentum_of(texts[CLASSES[0]]) == ""
        assert notes_of(texts[CLASSES[1]]) == ()
        assert momentum_of(texts[CLASSES[1]]) == "## Priorities\n\n- Stay good."
        assert all(text.startswith("start\n") for text in texts.values())
        adopted = [row for row in await house.rows(EditRow) if row.run_key.endswith("/adopted")]
        assert {(row.op, row.content) for row in adopted} == {
            ("note", "Be good at it."),
            ("momentum", "Stay good."),
        }


async def test_T7_rules_come_from_the_design_fold(tmp_path: Path) -> None:
    """The writer of rules is shown editor draws of two epochs, no question of a pair."""
    async with running(tmp_path, LinesHouse) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        pairs = {row.unit_id for row in await house.rows(PairRow)}
        told = [one for one in house.proposed if one.compared]
        assert {one.run_key[:2] for one in told} == {"e2"}
        for one in told:
            name = slug(one.base.task_type)
            for found in one.compared:
                keys = (found.before_key, found.after_key)
                assert keys == (f"e1/{name}/s1/rollout", f"e2/{name}/s1/rollout")
                assert found.question.question_id not in pairs
        shown = " ".join(str(chat.messages) for chat in house.chats)
        assert not [unit for unit in pairs if unit in shown]
        assert "Be good at it." not in shown  # nor what was proposed before


@pytest.mark.parametrize("phase", [1, 2, 3])
async def test_a_killed_run_has_the_same_lines(tmp_path: Path, phase: int) -> None:
    """Died once a phase was asked for: in the end edits, pairs and decision are the same."""
    (tmp_path / "whole").mkdir()
    async with running(tmp_path / "whole", LinesHouse) as (house, tasks):
        await (await house.start(tasks)).train(Train())
        expected = await every_row(house)
    async with running(tmp_path, LinesHouse) as (house, tasks):

        def die(request: Request[object]) -> None:
            if isinstance(request, RunPhase) and request.phase == phase:
                raise RuntimeError("killed")

        house.on_gate = die
        with pytest.raises(ExceptionGroup):
            await (await house.start(tasks)).train(Train())
        house.on_gate = lambda _: None
        restored = house.checkpoints[-1] if house.checkpoints else None
        await (await house.start(tasks, restored=restored)).train(Train())
        assert await every_row(house) == expected


def test_only_questions_answered_twice_are_compared() -> None:
    """Missing in either epoch is neither right nor wrong."""
    asked = QUESTIONS[CLASSES[0]]
    rows = [
        row(OutcomeRow, question_id=question.question_id, outcome=before)
        for question, before in zip(asked, ("right", "wrong", "missing", "wrong"), strict=True)
    ]
    results: list[Answered | Missed] = [
        Answered(
            question_id=one.question_id,
            right=False,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            n_steps=1,
        )
        for one in asked
    ]
    results[3] = Missed(question_id=asked[3].question_id, kind="timeout", detail="")
    found = compared_draws(3, rows, asked, results)
    assert [(one.question.question_id, one.change) for one in found] == [
        ("Co-0", "regressed"),
        ("Co-1", "persistent"),
    ]
    assert (found[0].before_key, found[0].after_key) == (
        "e2/counting-problem/s1/rollout",
        "e3/counting-problem/s1/rollout",
    )
