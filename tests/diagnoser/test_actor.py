"""Judging a wrong answer from its stored steps."""

from __future__ import annotations

import msgspec
import pytest

from actors.diagnoser.actor import TEMPLATES, DiagnoserActor
from actors.runtime.errors import ActorCrashed
from protocol.base import Refused, Request
from protocol.diagnoser import CallGrade, Diagnosis
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rows import DiagnosisRow, TraceRow
from tests.diagnoser.make import REQUEST, RULE, SETTINGS, answer, call, failed, submit, verdict
from tests.support.fakes import FakeAddress

ROWS = (
    call(
        1,
        "view_node",
        '{"node_id": "v1_L1_000"}',
        '["v1_L1_000"]',
        observation="TRAJECTORY>>> A boat, then rain.",
    ),
    submit(2),
)


class Room:
    """The actor between a scripted judge and a ledger with these steps."""

    def __init__(self, *script: ChatAnswer | ChatFailed, rows: tuple[TraceRow, ...] = ROWS) -> None:
        waiting = list(script)
        self.rows = rows
        self.recorded: list[DiagnosisRow] = []

        async def judge(_: Request[object]) -> object:
            return waiting.pop(0)

        self.llm = FakeAddress("llm", judge)
        self.ledger = FakeAddress("ledger", self._ledger)
        self.actor = DiagnoserActor(SETTINGS, self.llm, self.ledger, max_calls=8)

    async def _ledger(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            assert request.table == "traces"
            wanted = {where.column: where.value for where in request.where}
            assert wanted == {"run_key": "e1/order/s1", "question_id": "q-7-1"}
            return Selected(rows=self.rows)
        assert isinstance(request, Record)
        self.recorded += [row for row in request.rows if isinstance(row, DiagnosisRow)]
        return Recorded(rows=len(request.rows))

    async def diagnose(self, again: int = 0) -> Diagnosis:
        """The diagnosis of the one question."""
        reply = await self.actor.on_diagnose(msgspec.structs.replace(REQUEST, again=again))
        assert isinstance(reply, Diagnosis)
        return reply

    @property
    def chats(self) -> list[Chat]:
        """What the judge was asked."""
        return [request for request in self.llm.requests if isinstance(request, Chat)]


@pytest.mark.anyio
async def test_p0_2_the_judge_reads_the_stored_steps() -> None:
    """P0-2: the trajectory in the prompt is the one that was stored."""
    room = Room(answer(verdict()))
    diagnosis = await room.diagnose()
    assert (diagnosis.error_type, diagnosis.subtype) == ("reasoning_failure", "logic_error")
    assert (diagnosis.cause, diagnosis.degraded) == ("defect", False)
    (chat,) = room.chats
    assert (chat.role, chat.cache_salt) == ("judge", None)
    prompt = str(chat.messages[0].content)
    assert (
        "\nVideo: v1\nTask type: Order\n\nQuestion:\nWhat happens first?\nIn the harbour.\n\n"
        "Options:\nA. The lamp is lit.\nB. A boat arrives.\nC. Rain.\n\n"
        "Correct answer: B\nAgent's answer: C\n\nSkill:\n<<<SKILL\n---\nname: order\n"
    ) in prompt
    block = prompt.split("\nTrajectory:\n<<<TRAJECTORY\n")[1]
    assert block.startswith('Step 1\nCall: view_node {"node_id": "v1_L1_000"}\nObservation: ')
    assert "A boat, then rain." in block.split("\nTRAJECTORY>>>\n")[0]
    assert block.count("TRAJECTORY>>>") == 1
    assert "steps: 2, 12% of the allowed calls" in block
    assert block.endswith("\nCalls to grade: 1\n")
    (row,) = room.recorded
    assert (row.run_key, row.error_type, row.degraded) == (
        "e1/order/s1",
        "reasoning_failure",
        False,
    )
    assert row.finding == diagnosis.finding


@pytest.mark.anyio
async def test_everything_that_was_judged_is_recorded() -> None:
    """Rule, missed nodes and grades are kept for the case packs."""
    rows = (
        call(1, "view_node", '{"node_id": "v1_L1_000"}', '["v1_L1_000", "v1_L2_003"]'),
        submit(2),
    )
    said = verdict(
        calls=[{"step": 1, "kept": "half", "invented": "little"}],
        missed_nodes=["v1_L2_003"],
        rule="- look twice",
        followed="no",
        cause="lapse",
    )
    room = Room(answer(said), rows=rows)
    diagnosis = await room.diagnose()
    assert (diagnosis.error_type, diagnosis.rule) == ("search_failure", RULE)
    (row,) = room.recorded
    assert (row.cause, row.rule, row.missed_nodes) == ("lapse", RULE, '["v1_L2_003"]')
    assert msgspec.json.decode(row.grades, type=tuple[CallGrade, ...]) == diagnosis.grades
    assert diagnosis.grades == (CallGrade(step=1, completeness=0.5, hallucination=0.25),)


@pytest.mark.anyio
async def test_p0_2_an_answer_without_steps_is_refused() -> None:
    """P0-2: an empty trajectory is an error and no call is made."""
    room = Room(rows=())
    reply = await room.actor.on_diagnose(REQUEST)
    assert isinstance(reply, Refused)
    assert "q-7-1" in reply.what
    assert room.chats == []
    assert room.recorded == []


@pytest.mark.anyio
async def test_p1_5_a_judge_that_cannot_be_reached_gives_no_cause() -> None:
    """P1-5: infrastructure is not a defect."""
    room = Room(failed())
    diagnosis = await room.diagnose()
    assert (diagnosis.cause, diagnosis.degraded, diagnosis.error_type) == (None, False, "mixed")
    assert "breaker_open" in diagnosis.finding
    assert room.recorded[0].cause is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(answer("It was the skill's fault."), id="prose"),
        pytest.param(answer(verdict(cause="the skill")), id="unknown cause"),
        pytest.param(
            answer(verdict(calls=[{"step": 1, "kept": "90", "invented": "nothing"}])),
            id="unknown amount",
        ),
        pytest.param(answer(verdict(cause="lapse")), id="a lapse without a rule"),
        pytest.param(answer(verdict(calls=[])), id="a call is not graded"),
        pytest.param(answer(verdict(), finish="length"), id="cut off"),
        pytest.param(answer(""), id="empty"),
    ],
)
async def test_p1_5_an_unreadable_judge_is_asked_again_and_then_degraded(bad: ChatAnswer) -> None:
    """P1-5: a degraded diagnosis is marked as one and never a defect."""
    room = Room(bad, answer(verdict()))
    assert not (await room.diagnose()).degraded
    first, second = room.chats
    assert len(second.messages) == 3
    assert second.messages[0] == first.messages[0]
    assert str(second.messages[2].content).startswith("Your reply could not be read:")

    room = Room(bad, bad)
    diagnosis = await room.diagnose()
    assert (diagnosis.cause, diagnosis.degraded) == ("uncertain", True)
    assert len(room.chats) == 2


@pytest.mark.anyio
async def test_P1_1_P1_5_the_judge_is_replayed_until_its_replies_were_refused() -> None:
    """P1-1: no salt. P1-5: after a refusal another one, or the cache would decide."""
    for again, salt in ((0, None), (2, "judge/again2")):
        room = Room(answer("?"), answer(verdict()))
        await room.diagnose(again)
        assert [chat.cache_salt for chat in room.chats] == [salt, salt]


@pytest.mark.anyio
async def test_p1_5_a_failure_on_the_second_try_is_a_failure() -> None:
    """P1-5."""
    diagnosis = await Room(answer("?"), failed()).diagnose()
    assert (diagnosis.cause, diagnosis.degraded) == (None, False)


@pytest.mark.anyio
async def test_P1_5_a_judge_that_crashed_leaves_the_cause_open() -> None:
    """P1-5: infrastructure is no defect; the diagnosis goes the lapse way and counts as silent."""

    async def crash(_: Request[object]) -> object:
        raise ActorCrashed("llm", "boom")

    room = Room()
    actor = DiagnoserActor(SETTINGS, FakeAddress("llm", crash), room.ledger)
    reply = await actor.on_diagnose(REQUEST)
    assert isinstance(reply, Diagnosis)
    assert reply.cause is None
    assert len(room.recorded) == 1


def test_templates_are_named_for_the_start_check() -> None:
    assert TEMPLATES == ("diagnose_answer",)
