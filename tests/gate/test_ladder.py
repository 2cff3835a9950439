"""The blind order, coverage, and the EMA behind it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gate.ema import START, UnitEma, fold, is_candidate_arm, lookup
from actors.gate.ladder import UncoveredUnit, blind_order, build_ladder, tier
from protocol.baseline import Draws
from protocol.rows import OutcomeRow
from tests.gate.test_honesty import make_units

CLASS = "Counting Problem"


@dataclass(frozen=True)
class Seen:
    """One candidate answer in the ledger."""

    video: str
    outcome: str
    run_key: str = "e1/counting-problem/s1/gate/b0"
    question: str = "q"

    def row(self) -> OutcomeRow:
        """As stored."""
        return OutcomeRow(
            run_key=self.run_key,
            question_id=f"{self.video}-{self.question}",
            video_id=self.video,
            task_type=CLASS,
            outcome=self.outcome,
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            missing_kind=None,
            detail="",
            n_steps=1,
            prompt_tokens=1,
            completion_tokens=1,
            seconds=0.1,
            skill_hash="s",
            prompts_version="v1",
            salt="x",
        )


def test_the_order_cannot_be_given_a_snapshot() -> None:
    """P1-1a: no argument of the order carries outcomes of the current snapshot."""
    assert set(inspect.signature(blind_order).parameters) == {"units", "seed", "epoch", "ema"}


def test_the_order_depends_on_its_key_only() -> None:
    """The same key gives the same order, whatever order the units come in."""
    units = make_units(20, 1)
    order = blind_order(units, 1, 1, {})
    assert blind_order(tuple(reversed(units)), 1, 1, {}) == order
    assert blind_order(units, 1, 2, {}) != order
    assert blind_order(units, 2, 1, {}) != order


@given(st.lists(st.floats(0, 1), min_size=1, max_size=70), st.integers(0, 9), st.integers(1, 3))
def test_every_prefix_is_tier_proportional(values: list[float], seed: int, epoch: int) -> None:
    """No stretch is much richer in hard units than the class."""
    units = make_units(len(values), 1)
    ema = {(CLASS, f"v{i}"): value for i, value in enumerate(values)}
    order = blind_order(units, seed, epoch, ema)
    assert sorted(unit.unit_id for unit in order) == sorted(unit.unit_id for unit in units)
    tiers = [tier(ema[CLASS, unit.video_id]) for unit in order]
    for size in range(len(order) + 1):
        for level in range(3):
            share = tiers.count(level) * size / len(order)
            assert abs(tiers[:size].count(level) - share) <= 2


def test_a_question_without_an_entry_is_an_error() -> None:
    """fail-loud: building the ladder asserts that the snapshot covers every unit."""
    units = make_units(3, 2)
    snapshot = [
        Draws(unit_id=unit.unit_id, question_id=q.question_id, right=(True,))
        for unit in units
        for q in unit.questions
    ]
    assert len(build_ladder(units, snapshot, {})) == 3
    with pytest.raises(UncoveredUnit) as caught:
        build_ladder(units, [*snapshot[:1], *snapshot[2:-1]], {})
    assert caught.value.missing == ("v0-1", "v2-1")
    with pytest.raises(ValueError, match="u0"):
        build_ladder(make_units(1, 0), snapshot, {})


@pytest.mark.parametrize(
    ("run_key", "expected"),
    [
        ("e1/ocr/s2/gate/b3", True),
        ("e1/ocr/s2", False),
        ("e1/gate/s2", False),
        ("e1/val/fast", False),
        ("baseline/ocr/0123456789abcdef/v1/d0", False),
    ],
)
def test_only_the_candidate_arm_feeds_the_ema(run_key: str, expected: bool) -> None:
    """Training rollouts, evaluations and the baseline arm stay out."""
    assert is_candidate_arm(run_key) is expected


def test_ema_folds_a_pass_by_its_share() -> None:
    """value = decay * before + (1 - decay) * share right; missing says nothing."""
    rows = [
        Seen("a", "right", question="1").row(),
        Seen("a", "wrong", question="2").row(),
        Seen("a", "missing", question="3").row(),
        Seen("b", "missing").row(),
        Seen("c", "right", run_key="e1/counting-problem/s1").row(),
    ]
    units, moved = fold((), rows, 0.7)
    assert moved == 1
    assert lookup(units) == {(CLASS, "a"): pytest.approx(0.7 * START + 0.3 * 0.5)}


def test_ema_does_not_depend_on_the_order_of_rows() -> None:
    """Two passes over one unit fold in the order of their names."""
    rows = [
        Seen("a", "right", run_key="e1/counting-problem/s1/gate/b0").row(),
        Seen("a", "wrong", run_key="e1/counting-problem/s2/gate/b0").row(),
        Seen("b", "right").row(),
    ]
    known = (UnitEma(task_type=CLASS, video_id="a", value=0.9),)
    assert fold(known, rows, 0.7) == fold(known, rows[::-1], 0.7)


def test_five_right_answers_make_a_solid_record() -> None:
    """From .5 at decay .7; four do not."""
    value: tuple[UnitEma, ...] = ()
    reached = []
    for _ in range(5):
        value, _ = fold(value, [Seen("a", "right").row()], 0.7)
        reached.append(value[0].value >= 0.9)
    assert reached == [False, False, False, False, True]
