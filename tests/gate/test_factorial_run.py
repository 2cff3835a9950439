"""The factorial gate between ledger and rollouts: coins before draws, nothing drawn twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from actors.gate.factorial.coins import draw_coins
from actors.gate.factorial.schedule import phase_pairs
from actors.gate.phase import edits_as_born, schedule_from
from protocol.base import Refused
from protocol.factorial import Certify, EditorCoins, PhaseDone, PhaseStopped, PlanFactorial
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.rollout import Rollout
from protocol.rows import OutcomeRow
from tests.gate.factorial_house import (
    BASE,
    CLASS,
    PROMPTS,
    SEED,
    SETTINGS,
    House,
    edit_row,
    opened,
    units_of,
)

pytestmark = pytest.mark.anyio

GOOD, IDLE, BAD = (edit_row(name, place) for place, name in enumerate(("good", "idle", "bad"), 1))
SENTINEL = "counting-problem/sentinel"
COMMON = "_prompts/sentinel"
N_FIRST = 21  # pairs of the first epoch


def truth(request: Rollout) -> float:
    """``good`` adds .35, ``bad`` takes .48, everything else changes nothing."""
    said = request.skill.text.split()
    return 0.5 + 0.35 * ("good" in said) - 0.48 * ("bad" in said)


async def test_a_useful_edit_is_adopted_a_harmful_one_dropped(tmp_path: Path) -> None:
    """Coins are committed before every draw (the house looks), and the decision is in the rows."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        plan = await house.plan(gate, GOOD, IDLE, BAD)
        await house.whole(gate)
        decided = await gate.certify(Certify(bases=(BASE,), prompts=PROMPTS))
        assert (decided.n_edits, decided.adopted, decided.sentinels_ok) == (3, 1, True)
        assert [skill.text for skill in decided.skills] == ["count\ngood\n"]
        states = {row.edit_id: row.state for row in await house.rows(FactorialEditRow)}
        assert states.pop("idle") in ("rejected", "dropped")
        assert states == {SENTINEL: "live", COMMON: "live", "good": "adopted", "bad": "dropped"}
        pairs = await house.rows(PairRow)
        assert len(pairs) == plan.n_pairs
        assert {row.state for row in pairs} == {"drawn"}
        (run,) = await house.rows(FactorialRunRow)
        assert (run.q, run.cap, run.passed, run.ok) == ("3/20", "1/10", 1, True)
        design = {unit for fold in plan.folds for unit in fold.design}
        assert design.isdisjoint(row.unit_id for row in pairs)
        assert len(house.rolled) == 2 * plan.n_pairs
        assert len({(job.salt, job.question.question_id) for job in house.rolled}) == len(
            house.rolled
        )


async def test_nothing_is_drawn_for_a_class_without_edits(tmp_path: Path) -> None:
    """A sentinel alone is not worth a draw, and nothing can be adopted."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate)
        for phase in (1, 2, 3):
            assert await gate.run_phase(house.phase(phase)) == PhaseDone(
                pairs=0, void=0, drawn_now=0
            )
        assert await house.certify(gate) == ()
        assert not house.rolled


async def test_a_second_asking_draws_nothing(tmp_path: Path) -> None:
    """Every request is idempotent: same rows, no rollout, no second decision."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD, BAD)
        await house.whole(gate)
        adopted = await house.certify(gate)
        before = await _rows(house)
        n_rolled = len(house.rolled)
        again = await house.start()
        with capture_logs() as logged:
            await house.plan(again)
            await house.whole(again)
            assert await house.certify(again) == adopted
        assert "factorial.decided" not in {line["event"] for line in logged}
        assert await _rows(house) == before
        assert len(house.rolled) == n_rolled


@pytest.mark.parametrize("dies_at", [1, 2, 7, 30, 75, 140])
async def test_a_resumed_pair_redraws_neither_coin_nor_answer(tmp_path: Path, dies_at: int) -> None:
    """Killed in mid-pair: the same rows in the end, and no answered question is asked again."""
    (tmp_path / "whole").mkdir()
    async with opened(tmp_path / "whole", truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD, IDLE, BAD)
        await house.whole(gate)
        await house.certify(gate)
        undisturbed = await _rows(house)
    async with opened(tmp_path, truth) as house:
        house.dies_at = dies_at
        gate = await house.start()
        await house.plan(gate, GOOD, IDLE, BAD)
        with pytest.raises(ExceptionGroup):
            await house.whole(gate)
        open_before = {row.pair: row.coins for row in await house.rows(PairRow)}
        house.dies_at = None
        stored = {(row.run_key, row.question_id) for row in await house.rows(OutcomeRow)}
        gate = await house.start()
        await house.plan(gate)
        await house.whole(gate)
        await house.certify(gate)
        assert await _rows(house) == undisturbed
        coins = {row.pair: row.coins for row in await house.rows(PairRow)}
        assert open_before.items() <= coins.items()
        assert {house.asked[key] for key in stored} <= {1}


async def test_a_stop_ends_what_is_in_flight_and_keeps_it(tmp_path: Path) -> None:
    """Draining: no new pair, a reply that says so, and the rest on resume."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD)
        house.drains_at = 3
        ended = await gate.run_phase(house.phase(1))
        assert isinstance(ended, PhaseStopped)
        assert 0 < ended.drawn_now < N_FIRST
        gate = await house.start()
        house.drains_at = None
        whole = await gate.run_phase(house.phase(1))
        assert isinstance(whole, PhaseDone)
        assert (whole.pairs, whole.drawn_now) == (N_FIRST, N_FIRST - ended.drawn_now)


async def test_what_infrastructure_loses_is_void_if_it_is_little(tmp_path: Path) -> None:
    """One unit's tree is broken: tried three times, its pairs are void, nothing is added."""
    broken = "v03-0"
    async with opened(tmp_path, _without(broken)) as house:
        house.missed_as = "tree"
        gate = await house.start()
        await house.plan(gate, GOOD, IDLE)
        ended = [await gate.run_phase(house.phase(phase)) for phase in (1, 2, 3)]
        pairs = await house.rows(PairRow)
        void = [row for row in pairs if row.state == "void"]
        assert void
        assert {row.unit_id for row in void} == {"u03"}
        assert all(row.outcome is None for row in void)
        assert sum(done.void for done in ended if isinstance(done, PhaseDone)) == len(void)
        assert {house.asked[k] for k in house.asked if k[1] == broken} == {3}
        assert await house.certify(gate) == ("good",)


@pytest.mark.parametrize("kind", ["timeout", "budget"])
async def test_an_outage_is_refused_and_mended_later(tmp_path: Path, kind: str) -> None:
    """Too much is lost: the pairs stay open with their coins, and are drawn on resume."""
    lost = True

    def sometimes(request: Rollout) -> float | None:
        return None if lost and request.question.video_id > "v04" else truth(request)

    async with opened(tmp_path, sometimes) as house:
        house.missed_as = kind
        gate = await house.start()
        await house.plan(gate, GOOD)
        refused = await gate.run_phase(house.phase(1))
        assert isinstance(refused, Refused)
        assert refused.passing
        coins = {row.pair: row.coins for row in await house.rows(PairRow)}
        lost = False
        whole = await gate.run_phase(house.phase(1))
        assert isinstance(whole, PhaseDone)
        assert whole.void == 0
        assert {row.pair: row.coins for row in await house.rows(PairRow)} == coins
        assert "missing" not in {row.outcome for row in await house.rows(OutcomeRow)}


async def test_the_budget_of_the_operator_voids_nothing(tmp_path: Path) -> None:
    """A limit of the configuration cuts one answer off: refused, though it is only one."""
    async with opened(tmp_path, _without("v03-0")) as house:
        house.missed_as = "budget"
        gate = await house.start()
        await house.plan(gate, GOOD)
        assert isinstance(await gate.run_phase(house.phase(1)), Refused)
        assert "void" not in {row.state for row in await house.rows(PairRow)}


async def test_another_schedule_is_refused(tmp_path: Path) -> None:
    """Other units or epochs than the run was begun with: named by class and field."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate)
        before = await house.rows(FactorialScheduleRow)
        for request in (
            PlanFactorial(units=house.units, n_epochs=3),
            PlanFactorial(units=units_of(13), n_epochs=2),
        ):
            refused = await gate.plan_factorial(request)
            assert isinstance(refused, Refused)
            assert any(CLASS in line for line in refused.details)
        assert await house.rows(FactorialScheduleRow) == before
        too_few = await gate.plan_factorial(PlanFactorial(units=units_of(1), n_epochs=2))
        assert isinstance(too_few, Refused)
        assert "gate.fold" in too_few.what


async def test_changed_edits_are_no_resume(tmp_path: Path) -> None:
    """Pairs that wait must have the coins of these very edits: told, never drawn anew."""
    async with opened(tmp_path, truth) as house:
        house.dies_at = 2
        gate = await house.start()
        await house.plan(gate, GOOD)
        with pytest.raises(ExceptionGroup):
            await gate.run_phase(house.phase(1))
        await house.plan(await house.start(), IDLE)
        with pytest.raises(ValueError, match=r"pair 1: run\.db has"):
            await (await house.start()).run_phase(house.phase(1))


async def test_a_half_drawn_pair(tmp_path: Path) -> None:
    """Arm b was lost: only that is asked again, and only under the document that it had."""
    lost = True

    def one_arm(request: Rollout) -> float | None:
        return None if lost and request.run_key.endswith("/b") else truth(request)

    async with opened(tmp_path, one_arm) as house:
        gate = await house.start()
        await house.plan(gate, GOOD)
        assert isinstance(await gate.run_phase(house.phase(1)), Refused)
        other = msgspec.structs.replace(BASE, text="count\n\n")
        with pytest.raises(ExceptionGroup) as raised:
            await gate.run_phase(msgspec.structs.replace(house.phase(1), base=other))
        assert raised.group_contains(ValueError, match="under another document")
        lost = False
        assert isinstance(await gate.run_phase(house.phase(1)), PhaseDone)
        assert {n for (key, _), n in house.asked.items() if key.endswith("/a")} == {1}


async def test_the_editor_draws_under_live_edits_by_coins(tmp_path: Path) -> None:
    """Epoch 1: the base. Epoch 2: live edits by own coins, a dropped one never, sentinels never."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD, IDLE, BAD)
        names = tuple(f"u{n:02d}" for n in range(12))
        first = await gate.editor_coins(
            EditorCoins(epoch=1, base=BASE, prompts=PROMPTS, unit_ids=names)
        )
        assert {arm.skill.text for arm in first.arms} == {BASE.text}
        await house.whole(gate, (1,))
        second = await gate.editor_coins(
            EditorCoins(epoch=2, base=BASE, prompts=PROMPTS, unit_ids=names)
        )
        assert [arm.unit_id for arm in second.arms] == list(names)
        said = [set(arm.skill.text.split()) for arm in second.arms]
        assert {"good"} < set.union(*said)
        assert not any("bad" in words for words in said)
        assert len({frozenset(words) for words in said}) > 1
        assert second == await gate.editor_coins(
            EditorCoins(epoch=2, base=BASE, prompts=PROMPTS, unit_ids=names)
        )


async def test_of_a_group_one_takes_part(tmp_path: Path) -> None:
    """Exclusive edits are never on together, in no arm of a pair (the house compares texts)."""
    one, other = edit_row("good", 1, group="good"), edit_row("idle", 2, group="good")
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, one, other)
        await house.whole(gate)
        assert not any({"good", "idle"} <= set(job.skill.text.split()) for job in house.rolled)
        texts = {job.skill.text for job in house.rolled}
        assert texts == {"count\n", "count\ngood\n", "count\nidle\n"}
        assert await house.certify(gate) == ("good",)


async def test_a_regrouped_edit_keeps_its_written_coins(tmp_path: Path) -> None:
    """A later edit joins an earlier one's group: what was drawn before stands."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD)
        await house.whole(gate, (1,))
        first = await house.rows(PairRow)
        late = edit_row("late", 2, born=2, group="good")
        await house.plan(gate, msgspec.structs.replace(GOOD, group_id="good"), late)
        await house.whole(gate, (1, 2, 3))
        pairs = await house.rows(PairRow)
        assert pairs[: len(first)] == first
        assert await house.certify(gate) == ("good",)


async def test_a_failing_sentinel_voids_the_claims(tmp_path: Path) -> None:
    """Arms are mixed up: an edit and the sentinel win every pair; nothing is adopted."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD)
        schedule = schedule_from(await house.rows(FactorialScheduleRow))
        edits = edits_as_born(await house.rows(FactorialEditRow))
        signs = {
            pair.index: {coin.sign for coin in draw_coins(SEED, pair, edits).coins}
            for phase in (1, 2, 3)
            for pair in phase_pairs(schedule, CLASS, phase)
        }
        house.mix_up(lambda pair, arm: signs[pair] == {1 if arm == "a" else -1})
        await house.whole(gate)
        decided = await gate.certify(Certify(bases=(BASE,), prompts=PROMPTS))
        assert (decided.adopted, decided.sentinels_ok, decided.skills) == (0, False, ())
        (run,) = await house.rows(FactorialRunRow)
        assert (run.ok, run.adopted, run.passed) == (False, 0, 1)
        assert {row.state for row in await house.rows(FactorialEditRow)} == {"live", "rejected"}


async def test_nothing_is_decided_before_its_pairs_are_drawn(tmp_path: Path) -> None:
    """A decision in mid-run would be another test: it is a bug, and is told."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD)
        await house.whole(gate, (1, 2))
        with pytest.raises(ValueError, match="the pairs of phase 3 are not drawn"):
            await gate.certify(Certify(bases=(BASE,), prompts=PROMPTS))
        assert await house.rows(FactorialRunRow) == ()


async def test_the_replies_say_nothing_of_an_edit(tmp_path: Path) -> None:
    """T7: whoever proposes learns three counts of pairs, whatever became of the edits."""
    async with opened(tmp_path, truth) as house:
        gate = await house.start()
        await house.plan(gate, GOOD, BAD)
        done = await gate.run_phase(house.phase(1))
        assert msgspec.to_builtins(done) == {
            "type": "PhaseDone",
            "pairs": N_FIRST,
            "void": 0,
            "drawn_now": N_FIRST,
        }


async def test_growth_has_a_wider_bound(tmp_path: Path) -> None:
    """The profile's q, exact."""
    async with opened(
        tmp_path, truth, msgspec.structs.replace(SETTINGS, profile="growth")
    ) as house:
        gate = await house.start()
        await house.plan(gate)
        await gate.certify(Certify(bases=(BASE,), prompts=PROMPTS))
        (run,) = await house.rows(FactorialRunRow)
        assert run.q == "1/5"


def _without(question_id: str) -> Callable[[Rollout], float | None]:
    def lossy(request: Rollout) -> float | None:
        return None if request.question.question_id == question_id else truth(request)

    return lossy


async def _rows(house: House) -> tuple[object, ...]:
    return (
        await house.rows(FactorialScheduleRow),
        await house.rows(FactorialEditRow),
        await house.rows(PairRow),
        await house.rows(FactorialRunRow),
    )
