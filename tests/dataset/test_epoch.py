"""Pre-flight, units, folds and batches: the pure work behind an epoch's plan."""

from __future__ import annotations

import inspect
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.dataset.batches import make_batches
from actors.dataset.errors import MissingOutcomeError
from actors.dataset.folds import fold_units
from actors.dataset.preflight import preflight, trainable_only
from actors.dataset.units import make_units
from tests.dataset.material import question


def test_p0_3_micro_classes_leave() -> None:
    """P0-3: too few val questions or units: out, with every threshold missed as the reason."""
    diag = [question(v, 1, "Big") for v in range(8)]
    diag += [question(v, n, "Crowded") for v in range(7) for n in (2, 3)]
    diag += [question(v, 4, "Unjudged") for v in range(8)]
    val = [question(v, 1, "Big") for v in (20, 21)]
    val += [question(20, n, "Crowded") for n in (2, 3)]
    val += [question(20, 4, "Unjudged")]
    test = [question(v, 1, "Only test") for v in (30, 31)]
    counts = {
        count.task_type: count
        for count in preflight(diag, val, test, eval_min_per_class=2, trainable_min_units=8)
    }
    assert list(counts) == ["Big", "Crowded", "Only test", "Unjudged"]
    assert {name for name, count in counts.items() if count.trainable} == {"Big"}
    assert counts["Big"].reason == ""
    assert counts["Crowded"].n_diag == 14
    assert counts["Crowded"].reason == "n_units 7 < trainable_min_units 8"
    assert counts["Unjudged"].reason == "n_val 1 < eval_min_per_class 2"
    assert counts["Only test"].reason == (
        "n_val 0 < eval_min_per_class 2; n_units 0 < trainable_min_units 8"
    )
    assert counts["Only test"].n_test == 2
    kept = trainable_only([*diag, *val], counts.values())
    assert {q.task_type for q in kept} == {"Big"}


def test_units() -> None:
    """One unit per class and video, its questions by id, whatever the input order."""
    questions = [question(2, 1, "B"), question(1, 3, "A"), question(1, 1, "A"), question(1, 2, "B")]
    units = make_units(questions)
    assert [unit.unit_id for unit in units] == ["A/001", "B/001", "B/002"]
    assert [q.question_id for q in units[0].questions] == ["001-1", "001-3"]
    assert make_units(reversed(questions)) == units


@given(n=st.integers(1, 40), share=st.floats(0.05, 1), seed=st.integers(0, 9))
def test_folds_partition(n: int, share: float, seed: int) -> None:
    """Design and gate share no unit, or the class is in_sample and both are everything."""
    units = make_units(question(v) for v in range(n))
    folds = fold_units(units, seed=seed, epoch=1, design_share=share, trainable_min_units=8)
    again = fold_units(
        reversed(units), seed=seed, epoch=1, design_share=share, trainable_min_units=8
    )
    assert again == folds
    n_design = max(1, int(n * Fraction(str(share))))
    assert folds.in_sample == (n - n_design < 8)
    if folds.in_sample:
        assert folds.design == folds.ladder == units
    else:
        assert len(folds.design) == n_design
        both = sorted([*folds.design, *folds.ladder], key=lambda unit: unit.unit_id)
        assert both == list(units)


def test_folds_change_with_epoch_seed_and_class() -> None:
    """Another epoch shows other failures; classes and seeds are independent draws."""
    units = make_units(question(v) for v in range(20))
    other = make_units(question(v, 1, "Other") for v in range(20))
    draws = {
        tuple(
            unit.video_id
            for unit in fold_units(
                which, seed=seed, epoch=epoch, design_share=0.5, trainable_min_units=8
            ).design
        )
        for which, seed, epoch in ((units, 1, 1), (units, 1, 2), (units, 2, 1), (other, 1, 1))
    }
    assert len(draws) == 4
    with pytest.raises(ValueError, match="per class"):
        fold_units([*units, *other], seed=1, epoch=1, design_share=0.5, trainable_min_units=8)


def test_folds_are_blind_to_outcomes() -> None:
    """There is no way to tell the folds how a question went."""
    assert set(inspect.signature(fold_units).parameters) == {
        "units",
        "seed",
        "epoch",
        "design_share",
        "trainable_min_units",
    }


@given(
    right=st.lists(st.booleans(), max_size=60),
    batch_size=st.integers(1, 12),
    epoch=st.integers(1, 4),
)
def test_batches_partition_and_spread(right: list[bool], batch_size: int, epoch: int) -> None:
    """Every question once; full batches differ by at most one wrong question."""
    questions = [question(v) for v in range(len(right))]
    known = {q.question_id: r for q, r in zip(questions, right, strict=True)}
    batches = make_batches(questions, known, seed=3, epoch=epoch, batch_size=batch_size)
    assert sorted(q.question_id for batch in batches for q in batch) == sorted(known)
    assert all(len(batch) == batch_size for batch in batches[:-1])
    assert all(0 < len(batch) <= batch_size for batch in batches)
    wrong = [
        sum(not known[q.question_id] for q in batch)
        for batch in batches
        if len(batch) == batch_size
    ]
    assert not wrong or max(wrong) - min(wrong) <= 1
    again = make_batches(reversed(questions), known, seed=3, epoch=epoch, batch_size=batch_size)
    assert again == batches


def test_batches_change_with_the_epoch() -> None:
    """Shuffled anew in every epoch."""
    questions = [question(v) for v in range(12)]
    known = {q.question_id: True for q in questions}
    first, second = (
        make_batches(questions, known, seed=3, epoch=epoch, batch_size=4) for epoch in (1, 2)
    )
    assert first != second


def test_fail_loud_unknown_outcome() -> None:
    """Row fail-loud: a question without an outcome is an error that names it, never dropped."""
    questions = [question(v) for v in (1, 2, 3)]
    with pytest.raises(MissingOutcomeError, match="001-1, 003-1") as caught:
        make_batches(questions, {"002-1": True}, seed=1, epoch=1, batch_size=2)
    assert caught.value.question_ids == ("001-1", "003-1")
