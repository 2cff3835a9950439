"""Replies that are no actions, findings that cannot be read: nothing is learnt from them (P1-4).

And nothing is lost: what was refused for its answers is drawn anew, not replayed from the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from actors.trainer.usable import unread
from protocol.base import Message, Refused, Request
from protocol.dataset import EpochPlan, PlanEpoch
from protocol.ledger import Select, rows_of
from protocol.ledger import Selected as Rows
from protocol.redraws import RedrawRow, redrawn
from protocol.rollout import Answered, Missed, Rollout, mostly_unreadable
from protocol.rows import EvaluationRow, SlowRow, StepRow
from protocol.slow import SYSTEM
from protocol.trainer import Train, TrainingEnded
from tests.trainer.house import House, opened

pytestmark = pytest.mark.anyio


async def rows(
    house: House, kind: type[StepRow | EvaluationRow | SlowRow | RedrawRow]
) -> list[str]:
    """Every row's name."""
    found = Rows(rows=await house.database.select(Select(table=kind.TABLE)))
    return [str(getattr(row, kind.KEY[0])) for row in rows_of(kind, found)]


def whole_batches(house: House) -> House:
    """A class's four questions in one step: fewer than four are never too many."""
    plan = house._dataset

    async def dataset(request: Request[object]) -> Message:
        told = await plan(request)
        if not isinstance(request, PlanEpoch):
            return told
        assert isinstance(told, EpochPlan)
        works = [
            msgspec.structs.replace(work, batches=(work.batches[0] + work.batches[1],))
            for work in told.classes
        ]
        return msgspec.structs.replace(told, classes=tuple(works))

    house._dataset = dataset  # type: ignore[method-assign]
    return house


def salts(house: House, run_key: str) -> set[str]:
    return {request.salt for request in house.rolled if request.run_key == run_key}


def last(house: House) -> bytes | None:
    """The checkpoint that a resumed run would find."""
    return house.checkpoints[-1] if house.checkpoints else None


def below(*parts: str) -> Callable[[Rollout], bool]:
    """Of passes whose name holds one of the parts."""
    return lambda request: any(part in request.run_key for part in parts)


@pytest.mark.parametrize("part", ["e0/val/seed", "e1/val/fast", "e1/test/final"])
async def test_P1_4_a_garbled_evaluation_decides_nothing_and_is_drawn_anew(
    tmp_path: Path, part: str
) -> None:
    """P1-4: no row, a refusal that waiting does not mend; mended, the training goes on."""
    async with opened(tmp_path, "trainer.epochs=1", "trainer.slow_update=false") as (house, tasks):
        house.garble = below(part)
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert not refused.passing
        assert f"{part}: 10 of 10 answers could not be read" in refused.what
        assert "trainer.max_unreadable_share" in refused.remedy
        assert part not in await rows(house, EvaluationRow)
        first = salts(house, part)
        house.garble = below()
        house.rolled.clear()
        ended = await (await house.start(tasks, last(house))).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert salts(house, part) == {redrawn(salt, 1) for salt in first}
        assert await rows(house, RedrawRow) == [part]


async def test_P1_4_a_garbled_step_teaches_nothing(tmp_path: Path) -> None:
    """P1-4: the judge is not asked, nothing is proposed, and the step is drawn anew."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        whole_batches(house).garble = below("/rollout")
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert "4 of 4 answers could not be read" in refused.what
        assert (house.again, await rows(house, StepRow)) == ([], [])
        (key, *_) = await rows(house, RedrawRow)
        house.garble = below()
        house.rolled.clear()
        ended = await (await house.start(tasks, last(house))).train(Train())
        assert isinstance(ended, TrainingEnded)
        (salt,) = salts(house, f"{key}/rollout")
        assert salt.endswith("/again1")
        assert 1 in house.again  # the judge, too, is asked anew


async def test_P1_5_a_judge_that_cannot_be_read_is_asked_anew(tmp_path: Path) -> None:
    """P1-5: otherwise the cache would stop every later try at the same replies."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.degraded = True
        assert isinstance(await (await house.start(tasks)).train(Train()), Refused)
        assert set(house.again) == {0}
        refused = await rows(house, RedrawRow)
        assert refused
        house.again.clear()
        house.degraded = False
        ended = await (await house.start(tasks, last(house))).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert 1 in house.again


async def test_a_garbled_comparison_of_the_slow_update_is_drawn_anew(tmp_path: Path) -> None:
    """No regions are learnt from replies that nobody can read."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.garble = below("slow/")
        refused = await (await house.start(tasks)).train(Train())
        assert isinstance(refused, Refused)
        assert "e1/slow/" in refused.what
        assert await rows(house, RedrawRow) == ["e1/slow"]
        house.garble = below()
        house.rolled.clear()
        ended = await (await house.start(tasks, last(house))).train(Train())
        assert isinstance(ended, TrainingEnded)
        (salt,) = salts(house, "e1/slow/before") | salts(house, "e1/slow/after")
        assert salt.endswith("/again1")


@pytest.mark.parametrize("both", [True, False])
async def test_a_slow_candidate_is_dropped_only_for_what_it_spoils_itself(
    tmp_path: Path, both: bool
) -> None:
    """The package in force is asked the same: if it can answer, the candidate is to blame."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.edit = lambda _: None
        house.prompt = lambda asked: "bad\n" if asked.document.name == SYSTEM else None
        own = "e1/val/slow_candidate"
        house.garble = lambda request: (
            request.run_key == own or (both and request.run_key == f"{own}/control")
        )
        ended = await (await house.start(tasks)).train(Train())
        if both:
            assert isinstance(ended, Refused)
            assert await rows(house, RedrawRow) == [own]
        else:
            assert isinstance(ended, TrainingEnded)
            assert own in await rows(house, EvaluationRow)
            assert await rows(house, RedrawRow) == []


def answers(garbled: int, readable: int, missing: int = 0) -> list[Answered | Missed]:
    def one(stop: str) -> Answered:
        told = {"question_id": "q", "right": False, "letter": None, "submitted": "",
                "confidence": 0.5, "stop": stop, "n_steps": 1}  # fmt: skip
        return msgspec.convert(told, Answered)

    lost = Missed(question_id="q", kind="timeout", detail="")
    return [one("parse_error")] * garbled + [one("submitted")] * readable + [lost] * missing


@pytest.mark.parametrize(
    ("garbled", "readable", "missing", "mostly"),
    [(3, 0, 0, False), (4, 0, 0, True), (5, 5, 0, False), (6, 5, 0, True), (4, 3, 90, True)],
)
def test_how_many_are_too_many(garbled: int, readable: int, missing: int, mostly: bool) -> None:
    """More than the share of what was answered, and at least four."""
    assert mostly_unreadable(answers(garbled, readable, missing), 0.5) is mostly


def test_many_are_told_before_they_are_too_many() -> None:
    """A warning from a fifth on."""
    with capture_logs() as told:
        assert unread("e1/val/fast", answers(3, 7), 0.5) is None
        assert unread("e2/val/fast", answers(2, 8), 0.5) is None
    assert [(line["event"], line["run_key"]) for line in told] == [
        ("pass.unreadable", "e1/val/fast")
    ]
