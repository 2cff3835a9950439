"""``bin/train --aa N``: null comparisons through the real gate, and what is made of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import msgspec
import pytest
from rich.text import Text

from actors.commands.aa import NullRun, planned
from actors.commands.aa_report import null_tables
from actors.commands.aa_tally import (
    Flips,
    NullTest,
    clopper_pearson,
    count_flips,
    report_of,
    tail_of,
)
from actors.launch import Launch, fresh
from actors.ledger import schema
from actors.main import main
from actors.runtime.errors import AskTimeout
from actors.runtime.supervisor import Supervisor
from protocol.base import Request
from protocol.baseline import SeedOutcomes, SeedOutcomesReady
from protocol.dataset import ClassWork, EpochPlan, PlanEpoch
from protocol.documents import Package
from protocol.gate import Decision, RefreshLadder
from protocol.ledger import AskSpent, Spent
from protocol.rollout import Rollout
from protocol.rows import BaselineRow
from tests.gate.world import CLASS, SETTINGS, World, units_of
from tests.ledger.rows import outcome
from tests.protocol.samples import sample
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

WORK = ClassWork(task_type=CLASS, batches=(), ladder=units_of(12), in_sample=False)
PACKAGE = Package(skills="v1", prompts="v1")


class House:
    """What ``NullRun`` asks: the real gate and baseline store, and who tells of the data."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.draining = False
        self.asked = 0
        self.broken = False
        self._peers = {
            "gate": FakeAddress("gate", self._gate),
            "baseline": FakeAddress("baseline", self._baseline),
            "dataset": FakeAddress("dataset", self._dataset),
            "ledger": FakeAddress("ledger", self._ledger),
        }

    def address(self, name: str) -> FakeAddress:
        """A peer."""
        return self._peers[name]

    async def _gate(self, request: Request[object]) -> object:
        self.asked += 1
        if self.broken:
            raise AskTimeout("gate", "no reply")
        return await self.world.gate.test(request)  # type: ignore[arg-type]

    async def _baseline(self, request: Request[object]) -> object:
        assert isinstance(request, SeedOutcomes)
        return SeedOutcomesReady(run_id="r", outcomes=())

    async def _dataset(self, request: Request[object]) -> object:
        assert isinstance(request, PlanEpoch)
        return EpochPlan(epoch=request.epoch, classes=(WORK,))

    async def _ledger(self, request: Request[object]) -> object:
        assert isinstance(request, AskSpent)
        calls = len(self.world.rolled)
        return Spent(calls=calls, prompt_tokens=3 * calls, completion_tokens=calls, usd=0.0)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """A fresh workspace of the demo."""
    made = fresh(None, (), tmp_path / "run")
    yield made
    made.lock.release()


async def run_nulls(launch: Launch, house: House, n: int) -> NullRun:
    """So many comparisons; the ledger is stored for the report."""
    nulls = NullRun(launch, n, lambda line: None)
    await nulls.run(cast("Supervisor", house))
    path = launch.paths.workspace / "run.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for row in house.world.rows.values():
            connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    return nulls


def undecided_agent(request: Rollout) -> float:
    """Right in seven of ten draws, whatever the skill says."""
    return 0.7


def told(nulls: NullRun) -> str:
    """The lines below the table."""
    parts = null_tables(nulls.report(), PACKAGE, nulls.spent)
    return "\n".join(part.plain for part in parts if isinstance(part, Text))


async def test_an_honest_endpoint_keeps_the_level(launch: Launch) -> None:
    """P1_1: every comparison has draws of its own in both arms; flips are those of two draws."""
    house = House(World(undecided_agent))
    nulls = await run_nulls(launch, house, 60)
    report = nulls.report()
    assert report.tests == 60
    assert report.verdict == "consistent"
    assert report.flip_low < 2 * 0.7 * 0.3 < report.flip_high
    assert max(house.world.drawn.values()) == 1
    assert len({salt for *_, salt in house.world.drawn}) > 60
    assert nulls.spent is not None
    assert nulls.spent.calls == len(house.world.rolled)
    assert "consistent with the level" in told(nulls)
    assert f"{nulls.spent.calls} calls" in told(nulls)


async def test_the_comparisons_leave_training_as_it_was(launch: Launch) -> None:
    """P1_1a: no decision, no difficulty, no snapshot put out of force; rows lie under aa/."""
    world = World(undecided_agent)
    await run_nulls(launch, House(world), 8)
    assert world.decisions() == []
    passes = {request.run_key.partition("/")[0] for request in world.rolled}
    assert passes == {"aa", "baseline"}
    assert not any(row.generation == 0 for row in world.of(BaselineRow))
    before = world.state
    assert (await world.gate.refresh(RefreshLadder(epoch=1))).units == 0
    assert world.state.units == before.units == ()
    assert world.state.snapshots == before.snapshots == ()


async def test_again_is_the_same_and_costs_nothing(launch: Launch) -> None:
    """Salts follow from the seed: what was answered is answered from the cache."""
    house = House(World(undecided_agent))
    first = (await run_nulls(launch, house, 12)).report()
    drawn = house.world.drawn.total()
    assert (await run_nulls(launch, house, 12)).report() == first
    assert house.world.drawn.total() == drawn


async def test_copies_and_drift_are_found(launch: Launch) -> None:
    """No flip at all is told; a model that became better between the arms breaks the level."""

    def frozen(request: Rollout) -> float:
        return float(int(request.question.video_id[1:]) % 3 > 0)

    nulls = await run_nulls(launch, House(World(frozen)), 12)
    assert nulls.report().frozen_answers
    assert "No answer ever changed" in told(nulls)

    def drifting(request: Rollout) -> float:
        return 0.5 if request.run_key.startswith("baseline/") else 0.9

    nulls = await run_nulls(launch, House(World(drifting)), 24)
    assert nulls.report().verdict == "above"
    assert "ABOVE THE LEVEL" in told(nulls)
    assert "drift" in told(nulls)


async def test_trouble_stops_what_is_to_come(launch: Launch) -> None:
    """The first refusal or failed ask ends it, with a remedy; nothing more is asked."""
    house = House(World(lambda request: None))  # infrastructure loses everything
    nulls = await run_nulls(launch, house, 20)
    assert nulls.tests == []
    assert nulls.trouble[0].passing
    assert "mend what the reason names" in nulls.trouble[0].remedy
    assert "nothing is known" in told(nulls)
    house = House(World(undecided_agent))
    house.broken = True
    nulls = await run_nulls(launch, house, 40)
    assert "aa/counting-problem/n0" in nulls.trouble[0].what
    assert house.asked < 40


async def test_a_stop_begins_nothing_new(launch: Launch) -> None:
    """As in a training."""
    house = House(World(undecided_agent))
    house.draining = True
    nulls = await run_nulls(launch, house, 5)
    assert nulls.report().tests == 0
    assert nulls.spent is None


def test_the_classes_take_turns() -> None:
    """Each counts from 0, so that a key is never used twice."""
    other = msgspec.structs.replace(WORK, task_type="OCR")
    pairs = [(work.task_type, index) for work, index in planned(5, (WORK, other))]
    assert pairs == [(CLASS, 0), ("OCR", 0), (CLASS, 1), ("OCR", 1), (CLASS, 2)]


def test_missing_in_either_arm_is_no_pair() -> None:
    """P1_4: and only the first draw is compared."""
    baseline = [_draw("q1", True), _draw("q2", False), _draw("q3", True), _draw("q3", False, 1)]
    outcomes = [
        outcome("k", "q1", "wrong"),
        outcome("k", "q2", "right"),
        outcome("k", "q3", "right"),
        outcome("k", "q4", "right"),
        outcome("k", "q2", "missing"),
    ]
    assert count_flips(baseline, outcomes) == Flips(pairs=3, to_right=1, to_wrong=1)


def test_exact_tails_and_intervals() -> None:
    """Against values worked out by hand and in tables."""
    assert tail_of([0.5] * 4, 3) == pytest.approx(5 / 16)
    assert tail_of([0.1, 0.3], 1) == pytest.approx(1 - 0.9 * 0.7)
    assert tail_of([], 0) == 1.0
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert clopper_pearson(5, 10) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert clopper_pearson(10, 10) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert clopper_pearson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("accepted", "verdict", "p"),
    [(0, "consistent", 1.0), (6, "consistent", 0.0113), (7, "above", 0.0024)],
)
def test_the_verdict_is_the_exact_tests(accepted: int, verdict: str, p: float) -> None:
    """Twenty tests at .1: seven accepts are the fewest whose chance is at most .01."""
    tests = [_test(i, "accept" if i < accepted else "untestable") for i in range(20)]
    report = report_of(20, tests, {})
    assert report.p == pytest.approx(p, abs=1e-4)
    assert (report.verdict, report.critical) == (verdict, 7)


def test_two_tests_can_say_nothing() -> None:
    """At .2 both accepted have a chance of .04."""
    report = report_of(2, [_test(0, "accept", 0.2), _test(1, "accept", 0.2)], {})
    assert report.critical is None
    parts = null_tables(report, PACKAGE, None)
    text = "\n".join(part.plain for part in parts if isinstance(part, Text))
    assert "nothing could: 2 tests are too few" in text


@pytest.mark.parametrize("n", ["0", "-3", "many"])
def test_a_number_of_comparisons_is_positive(n: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Usage, before anything is written."""
    with pytest.raises(SystemExit) as ended:
        main(["train", "--aa", n])
    assert ended.value.code == 2
    assert "--aa" in capsys.readouterr().err


def _draw(question_id: str, right: bool, draw: int = 0) -> BaselineRow:
    row = cast("BaselineRow", sample(BaselineRow))
    return msgspec.structs.replace(row, question_id=question_id, right=right, draw=draw)


def _test(index: int, verdict: str, alpha: float = 0.1) -> NullTest:
    decision = cast("Decision", sample(Decision))
    changed = msgspec.structs.replace(decision, verdict=verdict, alpha=alpha)
    return NullTest(task_type=CLASS, index=index, decision=changed)


assert SETTINGS.draws_small == 1, "the flips of these tests are those of one draw"
