"""The gate actor with peers that answer in process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import anyio.abc
import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from actors.gate.actor import GateActor
from actors.gate.state import GateState
from actors.runtime.errors import ActorDead, AskTimeout
from actors.runtime.incarnation import ask_failure
from protocol.base import Refused, Request, Scope
from protocol.baseline import Draws, GetSnapshot, SnapshotReady
from protocol.dataset import Unit
from protocol.documents import Prompts, Skill
from protocol.gate import Decision, GetPower, LadderSize, Look, RefreshLadder, Trial
from protocol.keys import candidate_salt
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import DecisionRow, OutcomeRow
from protocol.settings import GateSettings
from tests.gate.test_honesty import make_units
from tests.gate.test_ladder import Seen
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

SETTINGS = GateSettings(
    seed_draw=True,
    profile="balanced",
    alpha_small=0.2,
    alpha_large=0.1,
    small_units=24,
    draws_small=1,
    draws_large=1,
    ema_decay=0.7,
    max_missing_share=0.05,
    futility_power=0.1,
    harm_e=10.0,
    missing_retries=2,
    fresh_after=4,
)
CLASS = "Counting Problem"
CURRENT = Skill(task_type=CLASS, text="count")
CANDIDATE = Skill(task_type=CLASS, text="count twice")
PROMPTS = Prompts(version="v1", system="s", tools=())
KEY = "e2/counting-problem/s3"


@dataclass
class Context:
    """What the runtime would give."""

    tasks: anyio.abc.TaskGroup
    restored: bytes | None = None
    name: str = "gate"
    incarnation: int = 1
    draining: bool = False
    log: structlog.stdlib.BoundLogger = field(default_factory=structlog.get_logger)

    async def checkpoint(self, label: str) -> None:
        """Nothing to write."""


class House:
    """Baseline, rollout and ledger; answer(question_id, nth) is the candidate, None missing."""

    def __init__(
        self,
        answer: Callable[[str, int], bool | None],
        wrong: int = 5,
        settings: GateSettings = SETTINGS,
        rows: tuple[Seen, ...] = (),
        uncovered: str = "",
        missed: str = "timeout",
        observed: int = 1,
    ) -> None:
        self.missed = missed
        self._answer = answer
        self.garbled: Callable[[Rollout], bool] = lambda request: False
        self._wrong = wrong
        self._rows = rows
        self._uncovered = uncovered
        self.asked: dict[str, int] = {}
        self.baseline = FakeAddress("baseline", self._snapshot)
        self.rollout = FakeAddress("rollout", self._roll)
        self.ledger = FakeAddress("ledger", self._ledger)
        self.gate = GateActor(
            settings, 7, self.baseline, self.rollout, self.ledger, max_unreadable_share=0.5
        )
        self.gate._state = GateState(observed_epoch=observed)

    async def _snapshot(self, request: Request[object]) -> object:
        assert isinstance(request, GetSnapshot)
        return SnapshotReady(
            draws=tuple(
                Draws(
                    unit_id=unit.unit_id,
                    question_id=q.question_id,
                    right=(int(unit.unit_id[1:]) >= self._wrong,) * request.n_draws,
                )
                for unit in request.units
                for q in unit.questions
                if q.question_id != self._uncovered
            ),
            drawn=0,
            missing=(),
        )

    async def _roll(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        question_id = request.question.question_id
        self.asked[question_id] = nth = self.asked.get(question_id, 0) + 1
        right = self._answer(question_id, nth)
        if right is None:
            return Missed(question_id=question_id, kind=self.missed, detail="")
        return Answered(
            question_id=question_id,
            right=right,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="parse_error" if self.garbled(request) else "submitted",
            n_steps=1,
        )

    async def _ledger(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            outcomes = request.table == OutcomeRow.TABLE
            return Selected(rows=tuple(seen.row() for seen in self._rows) if outcomes else ())
        assert isinstance(request, Record)
        return Recorded(rows=len(request.rows))

    async def test(
        self, n_units: int = 12, candidate: Skill = CANDIDATE, units: tuple[Unit, ...] | None = None
    ) -> Decision | Refused:
        """One trial in epoch 2, step 3."""
        return await self.gate.test(
            Trial(
                scope=Scope(epoch=2, step=3, task_type=CLASS),
                run_key=KEY,
                current=CURRENT,
                candidate=candidate,
                prompts=PROMPTS,
                units=make_units(n_units, 1) if units is None else units,
                in_sample=False,
            )
        )

    async def decided(self, n_units: int = 12, candidate: Skill = CANDIDATE) -> Decision:
        """One trial that is not refused."""
        decision = await self.test(n_units, candidate)
        assert isinstance(decision, Decision)
        return decision

    def rollouts(self) -> list[Rollout]:
        """What was asked of the rollout actor."""
        return [request for request in self.rollout.requests if isinstance(request, Rollout)]


async def test_an_accept_with_its_row() -> None:
    """Five wins in twelve units; the decision lies in the ledger."""
    house = House(lambda question_id, nth: True)
    decision = await house.decided()
    assert (decision.verdict, decision.reason, decision.alpha) == ("accept", "endgame", 0.2)
    assert (decision.wins, decision.losses, decision.ties, decision.rollouts) == (5, 0, 7, 12)
    [record] = [request for request in house.ledger.requests if isinstance(request, Record)]
    [row] = record.rows
    assert isinstance(row, DecisionRow)
    assert (row.run_key, row.epoch, row.step, row.verdict) == (KEY, 2, 3, "accept")
    assert (row.current_hash, row.candidate_hash) == (CURRENT.hash, CANDIDATE.hash)
    looks = msgspec.json.decode(row.looks, type=tuple[Look, ...])
    assert looks == decision.looks
    assert [look.units for look in looks] == [4, 8, 12]


async def test_P1_1_the_candidate_arm_is_salted_per_epoch_block_and_candidate() -> None:
    """P1-1, P1-1a: block-level run id and salt; the baseline is asked without any of it."""
    house = House(lambda question_id, nth: True)
    await house.decided()
    seen = {(request.run_key, request.salt) for request in house.rollouts()}
    assert seen == {
        (f"{KEY}/gate/b{b}", candidate_salt(7, 2, CLASS, b, CANDIDATE.hash)) for b in range(3)
    }
    assert all(request.skill == CANDIDATE for request in house.rollouts())
    [snapshot] = house.baseline.requests
    assert isinstance(snapshot, GetSnapshot)
    assert (snapshot.skill, snapshot.n_draws) == (CURRENT, 1)


async def test_an_identical_candidate_is_not_tested() -> None:
    """GATE.md: nothing is spent on the current text."""
    house = House(lambda question_id, nth: True)
    decision = await house.decided(candidate=CURRENT)
    assert (decision.verdict, decision.reason, decision.rollouts) == ("reject", "identical", 0)
    assert not house.rollout.requests
    assert not house.baseline.requests


async def test_untestable_costs_nothing() -> None:
    """Two wrong units at .2 and one draw: no outcome could accept."""
    house = House(lambda question_id, nth: True, wrong=2)
    decision = await house.decided()
    assert (decision.verdict, decision.rollouts, decision.evaluated) == ("untestable", 0, 0)


async def test_an_uncovered_question_is_refused() -> None:
    """fail-loud: never counted as wrong, and no row is written."""
    house = House(lambda question_id, nth: True, uncovered="v3-0")
    refused = await house.test()
    assert isinstance(refused, Refused)
    assert refused.details == ("v3-0",)
    assert not house.ledger.requests


async def test_P1_4_only_missing_answers_are_asked_again_with_the_same_salt() -> None:
    """P1-4: a retry of what infrastructure lost; an answer is never resampled."""
    house = House(lambda question_id, nth: None if question_id == "v2-0" and nth < 3 else True)
    decision = await house.decided()
    assert decision.verdict == "accept"
    assert decision.rollouts == 14
    assert {q: n for q, n in house.asked.items() if n > 1} == {"v2-0": 3}
    assert len({r.salt for r in house.rollouts() if r.question.question_id == "v2-0"}) == 1


async def test_P1_4_an_outage_leaves_no_decision() -> None:
    """P1-4: three tries, then a refusal that may pass: no row, neither win nor loss."""
    house = House(lambda question_id, nth: None)
    refused = await house.test()
    assert isinstance(refused, Refused)
    assert refused.passing
    assert "timeout" in refused.details[0]
    assert max(house.asked.values()) == 3
    assert not [request for request in house.ledger.requests if isinstance(request, Record)]


async def test_P1_4_what_no_waiting_mends_is_undecided() -> None:
    """P1-4: broken trees make the verdict undecided; the run goes on."""
    house = House(lambda question_id, nth: None, missed="tree")
    decision = await house.decided()
    assert (decision.verdict, decision.reason) == ("undecided", "missing")
    assert (decision.wins, decision.losses) == (0, 0)


async def test_level_and_draws_follow_the_size() -> None:
    """Small classes .2 and three draws, large ones .1 and one; growth .3 everywhere."""
    settings = msgspec.structs.replace(SETTINGS, draws_small=3)
    for n_units, alpha, draws in ((24, 0.2, 3), (25, 0.1, 1)):
        house = House(lambda question_id, nth: False, wrong=12, settings=settings)
        assert (await house.decided(n_units)).alpha == alpha
        [snapshot] = house.baseline.requests
        assert isinstance(snapshot, GetSnapshot)
        assert snapshot.n_draws == draws
    growth = msgspec.structs.replace(SETTINGS, profile="growth")
    assert (await House(lambda question_id, nth: False, settings=growth).decided(25)).alpha == 0.3


async def test_P1_4_rollouts_that_crash_are_missing() -> None:
    """P1-4: a crash counts neither as win nor loss; the verdict waits for better days."""

    async def late(request: Request[object]) -> object:
        raise AskTimeout("rollout", "late")

    house = House(lambda question_id, nth: True)
    house.gate._rollout = FakeAddress("rollout", late)
    decision = await house.test()
    assert isinstance(decision, Decision)
    assert (decision.verdict, decision.wins, decision.losses) == ("undecided", 0, 0)
    assert decision.missing > 0


async def test_a_dead_house_is_passed_on() -> None:
    """The runtime takes a group of failed asks for the failed ask that it is."""

    async def dead(request: Request[object]) -> object:
        raise ActorDead("rollout", "stopped")

    house = House(lambda question_id, nth: True)
    house.gate._rollout = FakeAddress("rollout", dead)
    with pytest.raises(ExceptionGroup) as caught:
        await house.test()
    assert isinstance(ask_failure(caught.value), ActorDead)


async def test_a_trial_needs_its_place() -> None:
    """Without an epoch there is no salt; without units there is no test."""
    house = House(lambda question_id, nth: True)
    trial = Trial(
        run_key=KEY,
        current=CURRENT,
        candidate=CANDIDATE,
        prompts=PROMPTS,
        units=make_units(8, 1),
        in_sample=False,
    )
    with pytest.raises(ValueError, match="epoch and step"):
        await house.gate.test(trial)
    assert isinstance(await house.test(units=()), Refused)


async def test_W_5_an_epoch_is_observed_once() -> None:
    """W-5: a second refresh, also after a restart from the checkpoint, moves nothing."""
    rows = (Seen("v1", "right"), Seen("v2", "wrong"))
    house = House(lambda question_id, nth: True, rows=rows, observed=0)
    first = await house.gate.refresh(RefreshLadder(epoch=1))
    again = await house.gate.refresh(RefreshLadder(epoch=1))
    assert (first.units, again.units) == (2, 0)
    state = house.gate.snapshot()

    other = House(lambda question_id, nth: True, rows=rows)
    async with anyio.create_task_group() as tasks:
        await other.gate.on_start(Context(tasks=tasks, restored=state))
    assert (await other.gate.refresh(RefreshLadder(epoch=1))).units == 0
    assert other.gate.snapshot() == state
    assert msgspec.json.decode(state, type=GateState).observed_epoch == 1
    selects = [request for request in house.ledger.requests if isinstance(request, Select)]
    assert [(select.table, select.where[0].value) for select in selects] == [
        ("outcomes", "e1/*"),
        ("decisions", 1),
    ]


async def test_power_is_one_row_per_class_in_order() -> None:
    """With the level and draws of each class's size."""
    house = House(lambda question_id, nth: True)
    table = await house.gate.power(
        GetPower(
            ladders=(
                LadderSize(task_type="b", n_units=30, n_wrong=10),
                LadderSize(task_type="a", n_units=8, n_wrong=1),
            )
        )
    )
    assert [(row.task_type, row.alpha, row.testable) for row in table.classes] == [
        ("b", 0.1, True),
        ("a", 0.2, False),
    ]


async def test_both_arms_get_the_same_other_skills() -> None:
    """Where the agent chooses its skill, the arms may differ in the candidate alone."""
    house = House(lambda question_id, nth: True)
    beside = Skill(task_type="Temporal Reasoning", text="of another class")
    await house.gate.test(
        Trial(
            scope=Scope(epoch=2, step=3, task_type=CLASS),
            run_key=KEY,
            current=CURRENT,
            candidate=CANDIDATE,
            prompts=PROMPTS,
            units=make_units(12, 1),
            in_sample=False,
            others=(beside,),
        )
    )
    (asked,) = house.baseline.requests
    assert isinstance(asked, GetSnapshot)
    assert asked.others == (beside,)
    rolled = [request for request in house.rollout.requests if isinstance(request, Rollout)]
    assert {(request.skill, request.others) for request in rolled} == {(CANDIDATE, (beside,))}


async def test_an_endpoint_that_garbles_replies_is_no_evidence_against_an_edit() -> None:
    """The current skill, asked the same, is no better: undecided, and no other block is asked."""
    house = House(lambda question_id, nth: False)
    house.garbled = lambda request: True
    decision = await house.decided()
    assert (decision.verdict, decision.reason) == ("undecided", "unreadable")
    assert (decision.evaluated, decision.losses) == (
        4,
        0 if decision.ties == 4 else 4 - decision.ties,
    )
    control = [request for request in house.rollouts() if request.run_key.endswith("/control")]
    assert [request.skill for request in control] == [CURRENT] * 4
    assert len(house.rollouts()) == 8


async def test_an_edit_that_spoils_the_replies_is_rejected_as_any_other() -> None:
    """The current skill is read there and then: it is the edit, and its wrong answers count."""
    house = House(lambda question_id, nth: False)
    house.garbled = lambda request: request.skill == CANDIDATE
    with capture_logs() as told:
        decision = await house.decided()
    assert decision.verdict == "reject"
    (seen, *_) = [line for line in told if line["event"] == "gate.unreadable"]
    assert (seen["candidate"], seen["current"], seen["of"]) == (4, 0, 4)


async def test_a_garbled_accept_is_none() -> None:
    """Whatever is counted: where both arms' replies are no actions, no verdict comes of them."""
    house = House(lambda question_id, nth: True, wrong=12)
    house.garbled = lambda request: True
    assert (await house.decided()).verdict == "undecided"


async def test_a_baseline_that_cannot_be_read_refuses_the_test() -> None:
    """It does not pass by itself: nobody should start again and again."""
    house = House(lambda question_id, nth: True)
    ready = SnapshotReady(
        draws=(), drawn=12, missing=("v0-0",), outage="12 of 12 answers", unreadable=True
    )

    async def unread(request: Request[object]) -> object:
        return ready

    house.baseline._answer = unread
    refused = await house.test()
    assert isinstance(refused, Refused)
    assert (refused.passing, refused.details) == (False, ("12 of 12 answers",))
