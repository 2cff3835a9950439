"""The profile ``audit``: an accept is confirmed on fresh draws of both arms (study, T5)."""

from __future__ import annotations

import msgspec
import pytest

from actors.gate.levels import bound_of, stages_of
from protocol.base import Refused, Scope
from protocol.gate import Decision, Look, Stage, Trial
from protocol.keys import null_key
from protocol.rollout import Rollout
from protocol.rows import BaselineRow, OutcomeRow
from tests.gate.world import CLASS, PROMPTS, SEED_SKILL, SETTINGS, Dying, World, units_of

pytestmark = pytest.mark.anyio

AUDIT = msgspec.structs.replace(SETTINGS, profile="audit")
KEY = "e1/counting-problem/s1"
WRONG = {"v0-0", "v1-0", "v2-0", "v3-0", "v4-0"}


def good(request: Rollout) -> bool:
    """A candidate ``better`` cures the five wrong ones; surely, in every draw."""
    return "better" in request.skill.text or request.question.question_id not in WRONG


def lucky(request: Rollout) -> bool:
    """``lucky`` is right in its first stage only."""
    if "lucky" in request.skill.text and "confirm" not in request.salt:
        return True
    return good(request)


async def test_both_stages_have_to_accept() -> None:
    """Level .3 each, .09 over both; the row tells what each stage saw and what it cost."""
    world = World(good, AUDIT)
    decision = await world.decided("better")
    assert (decision.verdict, decision.alpha) == ("accept", 0.09)
    first, second = decision.stages
    assert [(s.verdict, s.alpha, s.wins, s.losses) for s in (first, second)] == [
        ("accept", 0.3, 5, 0),
        ("accept", 0.3, 5, 0),
    ]
    assert (first.drawn, first.rollouts, second.drawn, second.rollouts) == (12, 12, 12, 12)
    assert (decision.rollouts, decision.baseline_rollouts) == (24, 24)
    assert decision.p_gate == pytest.approx(0.3 * second.p_gate)
    assert decision.e_value == pytest.approx(first.e_value * second.e_value)
    assert decision.looks == second.looks
    (row,) = world.decisions()
    assert msgspec.json.decode(row.stages, type=tuple[Stage, ...]) == decision.stages
    assert msgspec.json.decode(row.looks, type=tuple[Look, ...]) == decision.looks
    assert (row.alpha, row.baseline_rollouts, row.seed_draw) == (0.09, 24, False)


async def test_T5_nothing_of_the_second_stage_was_drawn_before() -> None:
    """Both arms: other salts, a snapshot of its own that no other test will read."""
    world = World(good, AUDIT)
    await world.decided("better")
    await world.decided("better still", step=2)
    salts: dict[str, set[str]] = {}
    for request in world.rolled:
        salts.setdefault(request.run_key, set()).add(request.salt)
    arms = [salts[key] for key in sorted(salts)]
    assert sum(map(len, arms)) == len(set.union(*arms))
    assert len(world.snapshot()) == len(world.snapshot(confirms=KEY)) == 12
    assert len(world.snapshot(confirms="e1/counting-problem/s2")) == 12
    assert len(world.of(BaselineRow)) == 36


async def test_what_the_second_stage_does_not_see_is_rejected() -> None:
    """A stage that draws afresh finds out luck; the numbers are those of that stage."""
    world = World(lucky, AUDIT)
    decision = await world.decided("lucky")
    assert decision.verdict == "reject"
    assert [stage.verdict for stage in decision.stages] == ["accept", "reject"]
    assert (decision.wins, decision.lower_bound) == (0, None)
    assert decision.p_gate > decision.alpha


async def test_a_reject_spends_no_second_stage() -> None:
    world = World(good, AUDIT)
    decision = await world.decided("useless")
    assert (decision.verdict, len(decision.stages)) == ("reject", 1)
    assert not [request for request in world.rolled if "confirm" in request.salt]


async def test_a_second_stage_without_a_wrong_answer_does_not_confirm() -> None:
    """Untestable there is a reject: the candidate was tested, and it did cost something."""

    def all_right_later(request: Rollout) -> bool:
        return "confirm" in request.salt or good(request)

    decision = await World(all_right_later, AUDIT).decided("better")
    assert [stage.verdict for stage in decision.stages] == ["accept", "untestable"]
    assert (decision.verdict, decision.reason) == ("reject", "futile_exact")


async def test_where_the_seed_begins_the_first_snapshot_only_the_second_stage_bounds() -> None:
    """The seed's answers chose the pools: T2 fails for them, T5 does not care."""
    seeded = {
        question.question_id: question.question_id not in WRONG
        for unit in units_of(12)
        for question in unit.questions
    }
    world = World(good, AUDIT, seeded=seeded)
    decision = await world.decided("better")
    assert [stage.seed_draw for stage in decision.stages] == [True, False]
    assert (decision.verdict, decision.alpha, decision.seed_draw) == ("accept", 0.3, True)
    assert decision.p_gate == decision.stages[1].p_gate
    assert {row.source for row in world.snapshot()} == {"seed"}
    assert {row.source for row in world.snapshot(confirms=KEY)} == {"rollout"}


async def test_a_killed_test_goes_on_without_drawing_a_unit_again() -> None:
    """P1-1a: wherever the process dies, the whole costs the draws of an unbroken run.

    Killed before every rollout and every word with the ledger, one run each.
    """
    whole = World(good, AUDIT)
    events: list[str] = []
    whole.before = events.append
    expected = await whole.decided("better")
    assert len(events) > 100
    for event in range(len(events)):
        world = World(good, AUDIT)
        with Dying(world, event):
            await world.trial("better")
        world.start()
        resumed = await world.decided("better")
        # how many baseline draws were left to make now is the one thing that differs
        costs = {"stages", "baseline_rollouts"}
        for name in set(Decision.__struct_fields__) - costs:
            assert getattr(resumed, name) == getattr(expected, name)
        assert world.drawn == whole.drawn
        assert max(world.drawn.values()) == 1
        assert world.of(BaselineRow) == whole.of(BaselineRow)
        assert world.of(OutcomeRow) == whole.of(OutcomeRow)


async def test_an_outage_in_the_second_stage_leaves_no_decision() -> None:
    """P1-4: the trial is refused, and later goes on with what was answered."""
    away = True

    def lost(request: Rollout) -> bool | None:
        return None if away and "confirm" in request.salt else good(request)

    world = World(lost, AUDIT)
    refused = await world.trial("better")
    assert isinstance(refused, Refused)
    assert refused.passing
    assert not world.decisions()
    assert not world.snapshot(confirms=KEY)
    before = sum(world.drawn.values())
    away = False
    assert (await world.decided("better")).verdict == "accept"
    assert sum(world.drawn.values()) == before + 24


def test_the_bound_of_a_whole_test() -> None:
    """Blind: alpha per stage, multiplied; else the last stage's. Exact, as it was written."""
    assert stages_of(AUDIT) == 2
    assert stages_of(SETTINGS) == 1
    assert [bound_of(0.3, n, blind=blind) for n in (1, 2) for blind in (True, False)] == [
        0.3,
        0.3,
        0.09,
        0.3,
    ]


async def null(world: World, index: int, generation: int | None = None) -> Decision:
    decision = await world.gate.test(
        Trial(
            scope=Scope(task_type=CLASS),
            run_key=null_key(CLASS, index),
            current=SEED_SKILL,
            candidate=SEED_SKILL,
            prompts=PROMPTS,
            units=units_of(12),
            in_sample=False,
            null_index=index,
            null_generation=generation,
        )
    )
    assert isinstance(decision, Decision)
    return decision


@pytest.mark.parametrize("settings", [SETTINGS, AUDIT], ids=["balanced", "audit"])
async def test_null_comparisons_leave_no_decision(settings: object) -> None:
    """The text against itself: draws by index, against one snapshot or one each."""
    assert isinstance(settings, type(SETTINGS))
    world = World(lambda request: 0.5, settings)
    state = world.state
    same = [await null(world, index) for index in range(3)]
    apart = [await null(world, index, index) for index in range(3)]
    assert all(decision.verdict != "untestable" for decision in (*same, *apart))
    assert same[0].wins + same[0].losses > 0
    assert [decision.generation for decision in apart] == [0, 1, 2]
    arms = {r.salt for r in world.rolled if r.run_key.startswith("aa/") and "gate" in r.run_key}
    assert {salt.split("/")[1] for salt in arms} == {"aa0", "aa1", "aa2"}
    assert len(world.snapshot()) == len(world.snapshot(2)) == 12
    assert max(world.drawn.values()) == 1
    assert not world.decisions()
    assert world.state == state


async def test_a_null_comparison_is_of_one_text() -> None:
    world = World(good)
    with pytest.raises(ValueError, match="two different texts"):
        await world.gate.test(
            Trial(
                run_key=null_key(CLASS, 0),
                current=SEED_SKILL,
                candidate=msgspec.structs.replace(SEED_SKILL, text="another"),
                prompts=PROMPTS,
                units=units_of(12),
                in_sample=False,
                null_index=0,
            )
        )
