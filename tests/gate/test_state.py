"""What the gate carries between epochs: snapshots in force, and what was known before them."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gate.ema import START, UnitEma, lookup
from actors.gate.ladder import blind_order
from actors.gate.state import GateState, KnownSnapshot, advance, in_force, known_difficulty
from protocol.documents import Prompts, Skill
from protocol.gate import LadderRefreshed, RefreshLadder
from protocol.rollout import Rollout
from protocol.rows import DecisionRow, OutcomeRow
from tests.gate.world import CLASS, PROMPTS, SEED_SKILL, SETTINGS, World, units_of

pytestmark = pytest.mark.anyio

SKILL = SEED_SKILL.hash


def decision(verdict: str, **fields: object) -> DecisionRow:
    """A row that read a snapshot of the seed's skill in epoch 1."""
    row = DecisionRow(
        run_key="e1/counting-problem/s1",
        epoch=1,
        step=1,
        task_type=CLASS,
        current_hash=SKILL,
        candidate_hash="c",
        verdict=verdict,
        reason="endgame",
        alpha=0.2,
        n_units=12,
        evaluated=12,
        wins=0,
        losses=0,
        ties=12,
        missing=0,
        e_value=1.0,
        p_gate=1.0,
        lower_bound=None,
        looks="[]",
        in_sample=False,
        rollouts=12,
        snapshot_hash=SKILL,
        prompts_version="v1",
    )
    return msgspec.structs.replace(row, **fields)


def steps(*verdicts: str, **fields: object) -> list[DecisionRow]:
    """One after the other."""
    return [
        decision(verdict, step=step, run_key=f"e1/counting-problem/s{step}", **fields)
        for step, verdict in enumerate(verdicts, start=1)
    ]


def known(state: GateState, **fields: object) -> KnownSnapshot:
    snapshot = KnownSnapshot(task_type=CLASS, skill_hash=SKILL, prompts_version="v1", drawn=True)
    return msgspec.structs.replace(snapshot, **fields)


def test_four_rejections_on_one_snapshot_give_a_fresh_one() -> None:
    """The lucky-snapshot trap: three are borne, the fourth ends it; epochs add up."""
    state = GateState()
    snapshots, gone = advance(state, steps("reject", "untestable", "undecided", "reject"), 4)
    assert snapshots == (known(state, rejections=3),)
    assert not gone
    state = GateState(observed_epoch=1, snapshots=snapshots)
    snapshots, gone = advance(state, steps("reject"), 4)
    assert gone == (known(state, rejections=4),)
    assert snapshots == (
        KnownSnapshot(task_type=CLASS, skill_hash=SKILL, prompts_version="v1", generation=1),
    )


def test_what_read_no_snapshot_is_no_rejection_of_it() -> None:
    """A candidate that is the current text was not turned down by luck."""
    rows = steps(*["reject"] * 5, snapshot_hash="", reason="identical")
    assert advance(GateState(), rows, 4) == ((), ())


def test_an_accept_puts_the_snapshot_out_of_force() -> None:
    """Even after many rejections there is no successor: the skill is gone."""
    state = GateState()
    snapshots, gone = advance(state, steps(*["reject"] * 4, "accept"), 4)
    assert gone == (known(state, rejections=4),)
    assert snapshots == (known(state, rejections=4, retired=True),)


def test_other_prompts_put_it_out_of_force_and_it_is_folded_once() -> None:
    """A snapshot that comes back keeps its generation, its count and its old difficulty."""
    state = GateState()
    old = known(state, rejections=1)
    snapshots, gone = advance(state, steps("reject"), 4)
    state = GateState(observed_epoch=1, snapshots=snapshots)
    snapshots, gone = advance(state, steps("reject", prompts_version="v2"), 4)
    assert gone == (old,)
    state = GateState(observed_epoch=2, snapshots=snapshots)
    assert in_force(state, CLASS, SKILL, "v1") == msgspec.structs.replace(old, retired=True)
    snapshots, gone = advance(state, steps("reject"), 4)  # back to v1
    assert [snapshot.prompts_version for snapshot in gone] == ["v2"]
    state = GateState(observed_epoch=3, snapshots=snapshots)
    snapshots, gone = advance(state, steps("reject", prompts_version="v2"), 4)
    assert not gone


def test_a_class_without_a_test_keeps_its_snapshot() -> None:
    state = GateState(snapshots=(known(GateState(), rejections=3),))
    assert advance(state, steps("accept", task_type="Another"), 4)[0][1:] == state.snapshots


def test_the_order_knows_what_was_known_before_the_snapshot() -> None:
    """GATE.md: frozen when a snapshot is drawn; of its own class only."""
    before = (
        UnitEma(task_type="Another", video_id="v1", value=0.2),
        UnitEma(task_type=CLASS, video_id="v1", value=0.9),
    )
    state = GateState(observed_epoch=1, units=before)
    assert known_difficulty(state, in_force(state, CLASS, SKILL, "v1")) == lookup(before)
    snapshots, _ = advance(state, steps("reject"), 4)
    later = GateState(
        observed_epoch=2,
        units=(UnitEma(task_type=CLASS, video_id="v1", value=0.1),),
        snapshots=snapshots,
    )
    assert known_difficulty(later, in_force(later, CLASS, SKILL, "v1")) == {(CLASS, "v1"): 0.9}
    assert known_difficulty(later, in_force(later, CLASS, "new", "v1")) == {(CLASS, "v1"): 0.1}


@given(st.permutations(steps("reject", "untestable", "reject", "accept")))
def test_the_order_of_rows_does_not_matter(rows: list[DecisionRow]) -> None:
    assert advance(GateState(), rows, 2) == advance(GateState(), sorted(rows, key=str), 2)


# The same through the real actors.

WRONG = {"v0-0", "v1-0", "v2-0"}


def never_better(request: Rollout) -> bool:
    """Three of twelve are wrong whatever the skill says."""
    return request.question.question_id not in WRONG


async def test_a_fresh_snapshot_is_drawn_once_and_never_from_the_seed() -> None:
    """Epoch 2 is tested on generation 1: other salts, no prediction of the seed."""
    seeded = {f"v{i}-0": i >= 3 for i in range(12)}
    world = World(never_better, seeded=seeded)
    for step in range(1, 5):
        first = await world.decided(f"try {step}", step=step)
        assert (first.verdict, first.generation, first.seed_draw) == ("reject", 0, True)
        assert first.baseline_rollouts == 0
    await world.end_epoch(1)
    costs = []
    for step in range(1, 3):
        later = await world.decided(f"again {step}", epoch=2, step=step)
        assert (later.generation, later.seed_draw) == (1, False)
        costs.append(later.baseline_rollouts)
    assert costs == [12, 0]
    assert {row.source for row in world.snapshot(0)} == {"seed"}
    assert {row.source for row in world.snapshot(1)} == {"rollout"}
    salts = {r.salt for r in world.rolled if r.run_key.startswith("baseline/")}
    assert salts == {"seed7/baseline/g1/d0"}
    assert [row.generation for row in world.decisions()] == [0, 0, 0, 0, 1, 1]


async def test_within_the_epoch_nothing_changes() -> None:
    """The fifth candidate of the epoch still meets the worn snapshot."""
    world = World(never_better)
    for step in range(1, 7):
        assert (await world.decided(f"try {step}", step=step)).generation == 0
    assert len(world.snapshot()) == 12


async def test_a_snapshot_in_force_does_not_reach_its_own_order() -> None:
    """T1: what is folded while a snapshot stands orders only what is drawn later.

    Then the candidates' answers and the snapshot itself count, since it is out of force.
    """
    world = World(never_better)
    units = units_of(12)
    for step in range(1, 5):
        await world.decided(f"try {step}", step=step)
    orders = {}
    for epoch in (2, 3):
        await world.end_epoch(epoch - 1)
        await world.decided("again", epoch=epoch, n_units=12)
        asked = [r.question.question_id for r in world.rolled if f"e{epoch}/" in r.run_key]
        orders[epoch] = list(dict.fromkeys(asked))
    (snapshot,) = world.state.snapshots
    assert (snapshot.generation, snapshot.drawn) == (1, True)
    frozen = lookup(snapshot.ema)
    seen = Counter(row.video_id for row in world.of(OutcomeRow) if row.run_key.startswith("e1/"))
    for unit in units:
        value = START
        for _ in range(1 + seen[unit.video_id]):  # the retired snapshot, and the candidates
            value = 0.7 * value + 0.3 * (unit.questions[0].question_id not in WRONG)
        assert frozen[CLASS, unit.video_id] == pytest.approx(value)
    assert frozen != lookup(world.state.units)  # epoch 2's candidate is in the latter alone
    for epoch, asked in orders.items():
        expected = [u.questions[0].question_id for u in blind_order(units, 7, epoch, frozen)]
        assert asked == expected[: len(asked)]


async def test_an_accepted_edit_leaves_its_parents_snapshot_to_the_ema() -> None:
    """GATE.md: fed by snapshots of earlier versions; those of the standing skill stay out."""

    def truth(request: Rollout) -> bool:
        return "better" in request.skill.text or never_better(request)

    world = World(truth)
    assert (await world.decided("better", step=1)).verdict == "accept"
    better = Skill(task_type=CLASS, text="better")
    await world.decided("better, longer", current=better, step=2)
    assert await world.end_epoch(1) == 12
    ema = lookup(world.state.units)
    # v0: wrong in the parent's snapshot, then right under the candidate
    assert ema[CLASS, "v0"] == pytest.approx(0.7 * (0.7 * START) + 0.3)
    names = {snapshot.skill_hash: snapshot for snapshot in world.state.snapshots}
    assert names[SKILL].retired
    assert not names[better.hash].retired


async def test_where_the_agent_chooses_a_snapshot_is_of_all_skills() -> None:
    """With ``skill_routing: manual`` rejections count per library, as the store keeps draws."""
    world = World(never_better, manual=True)
    beside = Skill(task_type="Temporal Reasoning", text="one")
    for step in range(1, 5):
        await world.decided(f"try {step}", step=step, others=(beside,))
    await world.end_epoch(1)
    assert (await world.decided("again", epoch=2, others=(beside,))).generation == 1
    other = msgspec.structs.replace(beside, text="two")
    assert (await world.decided("and again", epoch=2, step=2, others=(other,))).generation == 0


async def test_other_prompts_have_their_own_count() -> None:
    world = World(never_better)
    for step in range(1, 5):
        await world.decided(f"try {step}", step=step)
    await world.end_epoch(1)
    newer = Prompts(version="v2", system="s", tools=())
    assert (await world.decided("x", epoch=2, prompts=newer)).generation == 0
    assert (await world.decided("y", epoch=2, step=2, prompts=PROMPTS)).generation == 1


async def test_W_5_the_state_follows_from_the_ledger_alone() -> None:
    """W-5: a gate that lost what it had observed comes to the same state, each epoch once."""
    world = World(never_better)
    for epoch in (1, 2, 3):
        for step in (1, 2):
            await world.decided(f"try {epoch} {step}", epoch=epoch, step=step)
        await world.end_epoch(epoch)
    expected = world.state
    assert [snapshot.generation for snapshot in expected.snapshots] == [1]
    world.checkpoint = GateState()
    world.start()
    await world.end_epoch(3)
    assert world.state == expected
    assert await world.gate.refresh(RefreshLadder(epoch=3)) == LadderRefreshed(units=0)
    assert world.state == expected


async def test_W_5_a_trial_after_a_lost_observation_sees_it() -> None:
    """The gate crashed after it had observed and before the checkpoint."""
    world = World(never_better)
    for step in range(1, 5):
        await world.decided(f"try {step}", step=step)
    await world.gate.refresh(RefreshLadder(epoch=1))
    world.start()
    assert world.state == GateState()
    assert (await world.decided("again", epoch=2)).generation == 1


def test_a_state_of_an_older_checkpoint_can_be_read() -> None:
    """Before snapshots were remembered there was no such field."""
    old = b'{"observed_epoch":2,"units":[{"task_type":"a","video_id":"v","value":0.5}]}'
    state = msgspec.json.decode(old, type=GateState)
    assert state.snapshots == ()
    assert SETTINGS.fresh_after == 4
