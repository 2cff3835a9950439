"""The baseline actor with peers that answer in process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import msgspec
import pytest
import structlog

from actors.baseline.actor import BaselineActor
from actors.runtime.errors import ActorDead
from actors.runtime.incarnation import ask_failure
from actors.workspace.baseline_db import make_baseline_db
from protocol.base import Request, Scope
from protocol.baseline import GetSnapshot, SeedOutcomes, SnapshotReady
from protocol.dataset import KnownOutcome, Question, Unit
from protocol.documents import Package, PackageTexts, Prompts, Skill
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.redraws import RedrawRow
from protocol.rollout import Answered, Missed, Rollout
from protocol.rows import BaselineRow
from protocol.seed import BaselinePrediction
from protocol.settings import GateSettings
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

CLASS = "Counting Problem"
SEED_SKILL = Skill(task_type=CLASS, text="seed skill")
LATER = Skill(task_type=CLASS, text="later skill")
BESIDE = Skill(task_type="Temporal Reasoning", text="of another class")
PROMPTS = Prompts(version="v1", system="s", tools=())
NEWER = Prompts(version="v2", system="s", tools=())
N_UNITS = 6
RETRIES = 2
SETTINGS = GateSettings(
    seed_draw=True,
    profile="balanced",
    alpha_small=0.2,
    alpha_large=0.1,
    small_units=24,
    draws_small=3,
    draws_large=1,
    ema_decay=0.7,
    max_missing_share=0.05,
    futility_power=0.1,
    harm_e=10.0,
    missing_retries=RETRIES,
    fresh_after=4,
)


def make_units(n_units: int, n_questions: int = 1) -> tuple[Unit, ...]:
    """Units of one class."""
    return tuple(
        Unit(
            unit_id=f"u{u}",
            video_id=f"v{u}",
            task_type=CLASS,
            questions=tuple(
                Question(
                    question_id=f"v{u}-{q}",
                    video_id=f"v{u}",
                    task_type=CLASS,
                    question="How many?",
                    options=("1", "2", "3", "4"),
                    answer="A",
                )
                for q in range(n_questions)
            ),
        )
        for u in range(n_units)
    )


@dataclass
class Context:
    """What the runtime would give."""

    tasks: anyio.abc.TaskGroup
    restored: bytes | None = None
    name: str = "baseline"
    incarnation: int = 1
    draining: bool = False
    log: structlog.stdlib.BoundLogger = field(default_factory=structlog.get_logger)

    async def checkpoint(self, label: str) -> None:
        """Nothing to write."""


class House:
    """A seed of six units, the first two wrong; rollout and ledger.

    answer: None is missing; ``garbled`` says of which rollouts the replies are no actions.
    """

    def __init__(
        self,
        tmp_path: Path,
        answer: Callable[[Rollout], bool | None] = lambda request: True,
        *,
        manual: bool = False,
    ) -> None:
        path = tmp_path / "baseline.db"
        make_baseline_db(
            path,
            "base-1",
            [
                BaselinePrediction(
                    question_id=f"v{i}-0",
                    video_id=f"v{i}",
                    task_type=CLASS,
                    letter="A",
                    right=i >= 2,
                    confidence=0.5,
                )
                for i in range(N_UNITS)
            ],
        )
        self._answer = answer
        self.garbled: Callable[[Rollout], bool] = lambda request: False
        self.redraws: list[RedrawRow] = []
        self.asked: Counter[tuple[str, str]] = Counter()
        self.rows: dict[tuple[object, ...], BaselineRow] = {}
        self.door = anyio.Event()
        self.door.set()
        self.rollout = FakeAddress("rollout", self._roll)
        self.ledger = FakeAddress("ledger", self._ledger)
        package = PackageTexts(
            package=Package(skills="v1", prompts="v1"),
            skills=(SEED_SKILL, BESIDE),
            prompts=PROMPTS,
        )
        self.actor = BaselineActor(
            SETTINGS,
            7,
            package,
            path,
            self.rollout,
            self.ledger,
            seed_serves=True,
            manual=manual,
            max_unreadable_share=0.5,
        )

    async def start(self) -> None:
        """As the runtime would."""
        async with anyio.create_task_group() as tasks:
            await self.actor.on_start(Context(tasks=tasks))

    async def _roll(self, request: Request[object]) -> object:
        assert isinstance(request, Rollout)
        await self.door.wait()
        question_id = request.question.question_id
        self.asked[question_id, request.salt] += 1
        right = self._answer(request)
        if right is None:
            return Missed(question_id=question_id, kind="server_error", detail="")
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
        if isinstance(request, Record):
            for row in request.rows:
                if isinstance(row, RedrawRow):
                    self.redraws.append(row)
                    continue
                assert isinstance(row, BaselineRow)
                key = tuple(getattr(row, column) for column in BaselineRow.KEY)
                self.rows[key] = row
            return Recorded(rows=len(request.rows))
        assert isinstance(request, Select)
        wanted = {where.column: where.value for where in request.where}
        drawn = [row for _, row in sorted(self.rows.items())]
        return Selected(
            rows=tuple(
                row
                for row in (self.redraws if request.table == RedrawRow.TABLE else drawn)
                if all(getattr(row, column) == value for column, value in wanted.items())
            )
        )

    async def get(
        self,
        skill: Skill = LATER,
        n_draws: int = 1,
        epoch: int = 1,
        units: tuple[Unit, ...] | None = None,
        prompts: Prompts = PROMPTS,
        others: tuple[Skill, ...] = (),
        generation: int = 0,
        confirms: str = "",
    ) -> SnapshotReady:
        """One snapshot, as the gate asks for it."""
        return await self.actor.get_snapshot(
            GetSnapshot(
                scope=Scope(epoch=epoch, step=1),
                skill=skill,
                prompts=prompts,
                units=make_units(N_UNITS) if units is None else units,
                n_draws=n_draws,
                others=others,
                generation=generation,
                confirms=confirms,
            )
        )

    def rollouts(self) -> list[Rollout]:
        """What was asked of the rollout actor."""
        return [request for request in self.rollout.requests if isinstance(request, Rollout)]


async def test_P1_4_replies_that_are_no_actions_are_no_baseline(tmp_path: Path) -> None:
    """P1-4: an endpoint that garbles most replies would make any candidate look better.

    None of the draws is kept, and the next try does not get the same ones from the cache.
    """
    house = House(tmp_path, lambda request: False)
    await house.start()
    house.garbled = lambda request: request.question.question_id != "v0-0"
    refused = await house.get()
    assert (refused.unreadable, len(refused.missing), house.rows) == (True, N_UNITS, {})
    assert refused.outage.startswith("5 of 6 answers could not be read")
    assert (await house.get()).unreadable
    assert [(row.pass_key, row.number) for row in house.redraws] == [
        (f"baseline/counting-problem/{LATER.hash[:16]}/v1/", 1),
        (f"baseline/counting-problem/{LATER.hash[:16]}/v1/", 2),
    ]
    house.garbled = lambda request: False
    whole = await house.get()
    assert (whole.unreadable, whole.outage, whole.missing) == (False, "", ())
    salts = list(dict.fromkeys(request.salt for request in house.rollouts()))
    assert salts == [f"seed7/baseline/d0{again}" for again in ("", "/again1", "/again2")]


async def test_a_few_garbled_replies_are_wrong_answers(tmp_path: Path) -> None:
    """That is what an agent is like; three of them are never too many."""
    house = House(tmp_path, lambda request: False)
    await house.start()
    house.garbled = lambda request: request.question.question_id in ("v0-0", "v1-0", "v2-0")
    assert not (await house.get()).missing
    few = make_units(3)
    house.garbled = lambda request: True
    assert not (await house.get(skill=Skill(task_type=CLASS, text="x"), units=few)).missing
    assert not house.redraws


async def test_seed_outcomes(tmp_path: Path) -> None:
    """The predictions, by question id, without a call."""
    house = House(tmp_path)
    await house.start()
    ready = await house.actor.seed_outcomes(SeedOutcomes())
    assert ready.run_id == "base-1"
    assert ready.outcomes[:3] == (
        KnownOutcome(question_id="v0-0", right=False),
        KnownOutcome(question_id="v1-0", right=False),
        KnownOutcome(question_id="v2-0", right=True),
    )
    assert not house.rollout.requests


async def test_P1_1a_drawn_once_and_kept_across_epochs(tmp_path: Path) -> None:
    """P1-1a: a miss is inferred without the epoch; later epochs find it, other skills do not."""
    house = House(tmp_path)
    await house.start()
    first = await house.get(epoch=1)
    assert (first.drawn, first.missing) == (N_UNITS, ())
    assert {(r.run_key, r.salt) for r in house.rollouts()} == {
        (f"baseline/counting-problem/{LATER.hash[:16]}/v1/d0", "seed7/baseline/d0")
    }
    again = await house.get(epoch=3)
    assert (again.draws, again.drawn) == (first.draws, 0)
    other = await house.get(skill=Skill(task_type=CLASS, text="another"))
    assert other.drawn == N_UNITS
    assert (await house.get(prompts=NEWER)).drawn == N_UNITS


async def test_P1_1a_the_key_of_a_draw(tmp_path: Path) -> None:
    """P1-1a: (task_type, skill_hash, prompts_version, unit_id), and which snapshot of the skill."""
    house = House(tmp_path)
    await house.start()
    await house.get(units=make_units(1, 2))
    assert sorted(house.rows) == [
        (CLASS, LATER.hash, "v1", 0, "", "u0", "v0-0", 0),
        (CLASS, LATER.hash, "v1", 0, "", "u0", "v0-1", 0),
    ]


async def test_where_the_agent_chooses_a_snapshot_belongs_to_all_skills(tmp_path: Path) -> None:
    """With ``skill_routing: manual`` another class's skill may be what was read."""
    house = House(tmp_path, manual=True)
    await house.start()
    assert (await house.get(others=(BESIDE,))).drawn == N_UNITS
    assert (await house.get(others=(BESIDE,))).drawn == 0
    newer = msgspec.structs.replace(BESIDE, text="newer")
    assert (await house.get(others=(newer,))).drawn == N_UNITS
    assert {request.others for request in house.rollouts()} == {(BESIDE,), (newer,)}
    assert (await house.get(skill=SEED_SKILL, others=(BESIDE,))).drawn == 0
    assert (await house.get(skill=SEED_SKILL, others=(newer,))).drawn == N_UNITS


async def test_where_the_class_decides_other_skills_change_nothing(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.start()
    assert (await house.get(others=(BESIDE,))).drawn == N_UNITS
    assert (await house.get(others=())).drawn == 0


async def test_the_seeds_first_draw_is_its_own_predictions(tmp_path: Path) -> None:
    """No call for draw 0; the others are drawn, each with a salt of its own."""
    house = House(tmp_path)
    await house.start()
    free = await house.get(skill=SEED_SKILL)
    assert free.drawn == 0
    assert [entry.right for entry in free.draws] == [(i >= 2,) for i in range(N_UNITS)]
    assert {row.source for row in house.rows.values()} == {"seed"}
    more = await house.get(skill=SEED_SKILL, n_draws=3)
    assert more.drawn == 2 * N_UNITS
    assert [entry.right for entry in more.draws] == [(i >= 2, True, True) for i in range(N_UNITS)]
    assert {r.salt for r in house.rollouts()} == {"seed7/baseline/d1", "seed7/baseline/d2"}


async def test_the_predictions_belong_to_their_prompts(tmp_path: Path) -> None:
    """The seed's skill under another prompts version is drawn like any other."""
    house = House(tmp_path)
    await house.start()
    assert (await house.get(skill=SEED_SKILL, prompts=NEWER)).drawn == N_UNITS
    assert {row.source for row in house.rows.values()} == {"rollout"}


async def test_P1_4_what_infrastructure_lost_is_never_written(tmp_path: Path) -> None:
    """P1-4: no row, an empty entry, named as missing; drawn when it can be had."""
    broken = {"v3-0"}
    house = House(
        tmp_path, lambda request: None if request.question.question_id in broken else True
    )
    await house.start()
    first = await house.get()
    assert first.missing == ("v3-0",)
    assert first.draws[3].right == ()
    assert first.drawn == N_UNITS + RETRIES
    assert "v3-0" not in {row.question_id for row in house.rows.values()}
    broken.clear()
    second = await house.get()
    assert (second.drawn, second.missing) == (1, ())
    assert second.draws[3].right == (True,)
    assert max(house.asked.values()) == 2 + RETRIES


async def test_P1_4_an_outage_writes_nothing(tmp_path: Path) -> None:
    """P1-4: the guardrail stands before any write."""
    house = House(
        tmp_path, lambda request: True if request.question.question_id == "v3-0" else None
    )
    await house.start()
    ready = await house.get()
    assert len(ready.missing) == N_UNITS
    assert not [request for request in house.ledger.requests if isinstance(request, Record)]


async def test_two_asks_draw_a_question_once(tmp_path: Path) -> None:
    """Concurrent misses of one snapshot: the second waits and finds it."""
    house = House(tmp_path)
    await house.start()
    house.door = anyio.Event()
    replies: list[SnapshotReady] = []

    async def ask() -> None:
        replies.append(await house.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        house.door.set()
    assert len(house.rollouts()) == N_UNITS
    assert sorted(reply.drawn for reply in replies) == [0, N_UNITS]
    assert replies[0].draws == replies[1].draws
    assert not house.actor._drawing


async def test_a_cancelled_ask_leaves_nothing_behind(tmp_path: Path) -> None:
    """The next ask for the snapshot is served."""
    house = House(tmp_path)
    await house.start()
    house.door = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(house.get)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    house.door.set()
    assert not house.rows
    assert (await house.get()).drawn == N_UNITS


async def test_fail_loud(tmp_path: Path) -> None:
    """Units that are not of one class are a bug; a failed ask is passed on as itself."""

    async def dead(request: Request[object]) -> object:
        raise ActorDead("rollout", "stopped")

    house = House(tmp_path)
    await house.start()
    with pytest.raises(ValueError, match="one class"):
        await house.get(units=())
    house.actor._rollout = FakeAddress("rollout", dead)
    with pytest.raises(ExceptionGroup) as caught:  # the runtime passes it on as ActorDead
        await house.get()
    assert ask_failure(caught.value) is not None


async def test_a_missing_file_stops_the_start(tmp_path: Path) -> None:
    """There is no run without its baseline."""
    house = House(tmp_path)
    (tmp_path / "baseline.db").unlink()
    with pytest.raises(ExceptionGroup) as caught:
        await house.start()
    assert caught.group_contains(FileNotFoundError)
