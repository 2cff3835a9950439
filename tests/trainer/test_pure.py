"""Counting, choosing the best, the learning rate: no runtime, no I/O."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.config import load_config
from actors.trainer.epoch import epoch_row
from actors.trainer.schedule import edit_budget
from actors.trainer.score import mcnemar, score, wilson
from actors.trainer.state import TrainerState, after_epoch, best_of
from protocol.documents import Package
from protocol.rollout import Answered, Missed
from protocol.rows import DecisionRow, EvaluationRow
from tests.protocol.samples import sample

EVOLVER = load_config(None).evolver


def _answered(right: bool, confidence: float = 0.5) -> Answered:
    return Answered(
        question_id="q",
        right=right,
        letter="A",
        submitted="A",
        confidence=confidence,
        stop="submitted",
        n_steps=1,
    )


def _missed() -> Missed:
    return Missed(question_id="q", kind="timeout", detail="")


def _row(
    epoch: int, right: int, mixed: float, kind: str = "final", pool: str = "val"
) -> EvaluationRow:
    return EvaluationRow(
        run_key=f"e{epoch}/{pool}/{kind}",
        epoch=epoch,
        pool=pool,
        kind=kind,
        skills_version=f"v{epoch + 1}",
        prompts_version="v1",
        planned=100,
        right=right,
        missing=0,
        soft=0.5,
        mixed=mixed,
        outcomes_key="",
    )


def _package(epoch: int) -> Package:
    return Package(skills=f"v{epoch + 1}", prompts="v1")


def _state() -> TrainerState:
    seed = _package(0)
    return TrainerState(
        epoch=0,
        seed_package=seed,
        current=seed,
        best_hard=seed,
        best_mixed=seed,
        epochs_since_best_improved=0,
        observed_epoch=0,
    )


def test_missing_is_never_wrong_and_stays_in_the_denominator() -> None:
    """P1-4: accuracy is right / planned with missing beside it."""
    counted = score([_answered(True, 1.0), _answered(False, 0.0), _missed(), _missed()])
    assert (counted.planned, counted.right, counted.missing) == (4, 1, 2)
    assert counted.hard == 0.25
    assert counted.soft == 1.0  # both answers said what they knew
    assert counted.coverage == 0.5


@given(st.lists(st.sampled_from(["right", "wrong", "missing"]), max_size=30))
def test_a_pass_adds_up(kinds: list[str]) -> None:
    """Counts never exceed what was planned."""
    made: dict[str, Answered | Missed] = {
        "right": _answered(True),
        "wrong": _answered(False),
        "missing": _missed(),
    }
    counted = score([made[kind] for kind in kinds])
    assert counted.planned == len(kinds)
    assert counted.right + counted.missing <= counted.planned
    assert 0.0 <= counted.mixed <= 1.0


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_interval_holds_the_share(right: int, wrong: int) -> None:
    """Wilson's interval lies in [0, 1] and contains the estimate."""
    low, high = wilson(right, right + wrong)
    assert 0.0 <= low <= high <= 1.0
    if right + wrong:
        assert low - 1e-12 <= right / (right + wrong) <= high + 1e-12


def test_mcnemar_counts_discordant_pairs_only() -> None:
    """5 wins, no loss: 1/32; pairs with a missing side do not count."""
    before = {f"q{i}": False for i in range(5)} | {"same": True, "gone": True}
    after = {f"q{i}": True for i in range(5)} | {"same": True, "new": False}
    result = mcnemar(before, after)
    assert (result.pairs, result.wins, result.losses, result.p) == (6, 5, 0, 1 / 32)
    assert mcnemar({}, {}).p == 1.0


def test_best_is_the_argmax_over_final_rows_and_ties_go_to_the_earlier() -> None:
    """ALGORITHM.md 6.3; P2-5: only ``final`` (and the seed's own pass) count."""
    rows = [
        _row(0, 50, 0.5, kind="seed"),
        _row(1, 60, 0.55),
        _row(2, 60, 0.60),
        _row(3, 90, 0.99, kind="slow_candidate"),
        _row(3, 90, 0.99, pool="test"),
    ]
    assert best_of(rows, "hard") == _package(1)
    assert best_of(rows, "mixed") == _package(2)
    assert best_of([], "hard") is None


def test_P0_5_patience_counts_epochs() -> None:
    """P0-5: an epoch without a better package counts one, whatever its steps were."""
    rows = [_row(0, 50, 0.5, kind="seed"), _row(1, 40, 0.4)]
    first = after_epoch(_state(), _package(1), rows)
    assert first.epochs_since_best_improved == 1
    second = after_epoch(first, _package(2), [*rows, _row(2, 45, 0.45)])
    assert second.epochs_since_best_improved == 2
    third = after_epoch(second, _package(3), [*rows, _row(3, 70, 0.7)])
    assert (third.epochs_since_best_improved, third.best_hard) == (0, _package(3))


def test_the_same_package_drawn_again_is_no_improvement() -> None:
    """A lucky second draw of the package that is best already must not reset patience."""
    rows = [
        _row(0, 50, 0.5, kind="seed"),
        msgspec.structs.replace(_row(1, 60, 0.6), skills_version="v1"),
    ]
    assert after_epoch(_state(), _package(0), rows).epochs_since_best_improved == 1


@pytest.mark.parametrize(
    ("schedule", "budgets"),
    [
        ("constant", [4, 4, 4, 4, 4, 4]),
        ("linear", [4, 4, 3, 3, 2, 2]),
        ("cosine", [4, 4, 3, 3, 2, 2]),
    ],
)
def test_the_learning_rate_decays_over_the_run(schedule: str, budgets: list[int]) -> None:
    """Edits per step: cosine 4 -> 2 over the run."""
    settings = msgspec.structs.replace(EVOLVER, schedule=schedule)
    assert [edit_budget(settings, position, 6) for position in range(6)] == budgets


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_budget_never_leaves_its_ends(position: int, total: int) -> None:
    """Whatever the position, also beyond the end."""
    assert (
        EVOLVER.edit_budget_end
        <= edit_budget(EVOLVER, position, total)
        <= EVOLVER.edit_budget_start
    )


def test_the_bound_counts_what_was_at_stake_and_names_what_it_does_not_cover() -> None:
    """Row of an epoch: untestable candidates count, tests against the seed's answers do not."""

    def made(verdict: str, alpha: float, rollouts: int, *, seed_draw: bool = False) -> DecisionRow:
        row = sample(DecisionRow)
        assert isinstance(row, DecisionRow)
        return msgspec.structs.replace(
            row, verdict=verdict, alpha=alpha, rollouts=rollouts, seed_draw=seed_draw
        )

    rows = [
        made("accept", 0.2, 12),
        made("reject", 0.1, 8),
        made("untestable", 0.2, 0),  # whether it is one hangs on the snapshot
        made("reject", 0.2, 0),  # identical to the current text: never a test
        made("accept", 0.2, 12, seed_draw=True),
    ]
    row = epoch_row(3, Package(skills="v2", prompts="v1"), rows, 1)
    assert (row.tests, row.accepted, row.sum_alpha, row.seed_draws) == (3, 2, 0.5, 1)
