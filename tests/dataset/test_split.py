"""The split: exact greedy, its invariants, and what an impossible one says (row split)."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.dataset.errors import InfeasibleSplitError, SplitError
from actors.dataset.split import (
    BaselineOutcome,
    VideoGroup,
    assign_tiered,
    choose_videos,
    split_pools,
)
from protocol.diagnoser import Cause
from protocol.seed import SplitParameters
from tests.dataset.material import question


def group(video_id: str, t2: int, wrong: int, questions: int = 3) -> VideoGroup:
    return VideoGroup(
        video_id=video_id, t2_count=t2, t1_count=0, wrong_count=wrong, question_count=questions
    )


@st.composite
def groups(draw: st.DrawFn) -> list[VideoGroup]:
    made = []
    for index in range(draw(st.integers(1, 25))):
        total = draw(st.integers(1, 3))
        wrong = draw(st.integers(0, total))
        made.append(group(f"v{index:02d}", draw(st.integers(0, wrong)), wrong, total))
    return made


RATIOS = st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9])


def test_greedy_by_hand() -> None:
    """Step 1 keeps T2 in diag; step 2 takes the fewest T2, then the fewest wrong, then the id."""
    made = [
        group("a", 2, 2),
        group("b", 1, 1),
        group("c", 1, 1),
        group("d", 0, 3),
        group("e", 0, 0),
    ]
    plain = assign_tiered(made, val_ratio=0.2, val_wrong_min=0)
    assert (plain.diag, plain.val, plain.moved) == (("a", "b", "c", "d"), ("e",), ())
    one = assign_tiered(made, val_ratio=0.2, val_wrong_min=2)
    assert (one.diag, one.val, one.moved) == (("a", "b", "c"), ("d", "e"), ("d",))
    two = assign_tiered(made, val_ratio=0.2, val_wrong_min=4)
    assert (two.diag, two.moved) == (("a", "c"), ("d", "b"))


def test_target_is_exact() -> None:
    """1 - 0.7 of ten is three questions, although 1 - 0.7 is a float above 0.3."""
    made = [group(f"v{index}", 0, 0, 1) for index in range(10)]
    assert len(assign_tiered(made, val_ratio=0.7, val_wrong_min=0).diag) == 3


@given(made=groups(), ratio=RATIOS, wanted=st.integers(0, 30), shuffle=st.randoms())
def test_invariants_of_the_greedy(
    made: list[VideoGroup], ratio: float, wanted: int, shuffle: random.Random
) -> None:
    """Ends; val has its wrong answers or it is said that it cannot; input order is nothing."""
    total_wrong = sum(g.wrong_count for g in made)
    if total_wrong < wanted:
        with pytest.raises(InfeasibleSplitError, match=f"at most {total_wrong}"):
            assign_tiered(made, val_ratio=ratio, val_wrong_min=wanted)
        return
    assigned = assign_tiered(made, val_ratio=ratio, val_wrong_min=wanted)
    assert sorted([*assigned.diag, *assigned.val]) == [g.video_id for g in made]
    by_id = {g.video_id: g for g in made}
    assert sum(by_id[v].wrong_count for v in assigned.val) >= wanted
    assert len(set(assigned.moved)) == len(assigned.moved)
    assert set(assigned.moved) <= set(assigned.val)
    again = list(made)
    shuffle.shuffle(again)
    assert assign_tiered(again, val_ratio=ratio, val_wrong_min=wanted) == assigned


def test_infeasible_says_what_would_do() -> None:
    """The message names a val_wrong_min and a number of videos that are feasible."""
    made = [group(f"v{index:02d}", 0, index % 2, 3) for index in range(10)]
    with pytest.raises(InfeasibleSplitError) as caught:
        assign_tiered(made, val_ratio=0.4, val_wrong_min=20)
    assert "at most 5" in str(caught.value)
    assert "about 40 videos" in str(caught.value)


@given(
    strata=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    share=st.floats(0, 1),
    seed=st.integers(0, 5),
)
@example(strata=[1, 1, 1, 1, 6], share=0.375, seed=0)
def test_videos_are_stratified(strata: list[int], share: float, seed: int) -> None:
    """Every sub-category is within one video of its share of trainval."""
    categories: dict[str, str | None] = {
        f"{stratum}-{index}": f"s{stratum}"
        for stratum, size in enumerate(strata)
        for index in range(size)
    }
    total = len(categories)
    n_trainval = int(total * share)
    trainval, test = choose_videos(
        categories, n_trainval=n_trainval, n_test=total - n_trainval, seed=seed
    )
    assert len(trainval) == n_trainval
    assert trainval | test == set(categories)
    assert not trainval & test
    got = Counter(categories[video_id] for video_id in trainval)
    for stratum, size in enumerate(strata):
        assert abs(got[f"s{stratum}"] - n_trainval * size / total) <= 1


def test_hundred_of_three_hundred() -> None:
    """30 sub-categories of ten videos: three or four of each train, another seed draws others."""
    categories: dict[str, str | None] = {f"{i:03d}": f"s{i // 10}" for i in range(300)}
    trainval, test = choose_videos(categories, n_trainval=100, n_test=200, seed=1)
    assert set(Counter(categories[v] for v in trainval).values()) == {3, 4}
    assert (len(trainval), len(test)) == (100, 200)
    assert choose_videos(categories, n_trainval=100, n_test=200, seed=2)[0] != trainval


CAUSES: tuple[Cause, ...] = ("defect", "lapse", "uncertain")


@given(seed=st.integers(0, 3), shuffle=st.randoms())
def test_split_pools(seed: int, shuffle: random.Random) -> None:
    """Deterministic, blind to input order, videos whole, test blind to outcomes."""
    questions = [
        question(video, number, f"class {number}", sub_category=f"s{video % 4}")
        for video in range(40)
        for number in (1, 2, 3)
    ]
    baseline = [
        BaselineOutcome(
            question_id=q.question_id,
            right=index % 3 != 0,
            cause=CAUSES[index % 9 // 3] if index % 3 == 0 else None,
        )
        for index, q in enumerate(questions)
    ]
    parameters = SplitParameters(
        seed=seed, n_trainval=20, n_test=20, val_ratio=0.4, val_wrong_min=6
    )
    pools, report = split_pools(
        questions, baseline, parameters, eval_min_per_class=2, trainable_min_units=8
    )
    videos = {
        "diag": {question_id[:3] for question_id in pools.diag},
        "val": {question_id[:3] for question_id in pools.val},
        "test": {question_id[:3] for question_id in pools.test},
    }
    assert sum(len(members) for members in videos.values()) == 40
    assert len(set.union(*videos.values())) == 40
    assert [count.questions for count in report.pools] == [
        len(pools.diag),
        len(pools.val),
        len(pools.test),
    ]
    wrong_in_val = report.pools[1].wrong
    assert wrong_in_val is not None
    assert wrong_in_val >= 6
    assert report.pools[2].wrong is None
    assert report.t2_in_diag <= report.t2_total
    assert [count.task_type for count in report.classes] == ["class 1", "class 2", "class 3"]
    shuffle.shuffle(questions)
    shuffle.shuffle(baseline)
    again, _ = split_pools(
        questions, baseline, parameters, eval_min_per_class=2, trainable_min_units=8
    )
    assert again == pools
    others = [
        BaselineOutcome(question_id=o.question_id, right=not o.right, cause="defect")
        for o in baseline
    ]
    flipped, _ = split_pools(
        questions, others, parameters, eval_min_per_class=2, trainable_min_units=8
    )
    assert flipped.test == pools.test


@pytest.mark.parametrize(
    ("cause", "degraded", "tier"),
    [
        ("defect", False, 2),
        ("lapse", False, 1),
        ("uncertain", False, 0),
        ("defect", True, 0),
        (None, False, 0),
    ],
)
def test_tiers(cause: Cause | None, degraded: bool, tier: int) -> None:
    """Only an undoubted skill defect is trainable signal."""
    outcome = BaselineOutcome(question_id="q", right=False, cause=cause, degraded=degraded)
    assert outcome.tier == tier


def test_missing_outcomes_and_videos_are_named() -> None:
    """A trainval question without a baseline outcome is an error, not a right answer."""
    questions = [question(video) for video in range(4)]
    parameters = SplitParameters(seed=1, n_trainval=4, n_test=0, val_ratio=0.4, val_wrong_min=0)
    baseline = [BaselineOutcome(question_id="000-1", right=True)]
    with pytest.raises(SplitError, match="001-1, 002-1, 003-1"):
        split_pools(questions, baseline, parameters, eval_min_per_class=2, trainable_min_units=8)
    with pytest.raises(SplitError, match="lower n_trainval or n_test"):
        choose_videos({"1": None}, n_trainval=1, n_test=1, seed=1)
