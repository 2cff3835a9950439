"""The split under random material: any input order, whole videos, constraints (row split)."""

from __future__ import annotations

import random
import re
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actors.dataset.errors import InfeasibleSplitError
from actors.dataset.pools import encode_pools
from actors.dataset.split import (
    BaselineOutcome,
    VideoGroup,
    assign_tiered,
    choose_videos,
    split_pools,
)
from protocol.dataset import Question
from protocol.diagnoser import Cause
from protocol.seed import SplitParameters
from tests.dataset.material import question

CLASSES = ("Counting", "Reasoning", "Perception")
CAUSES: tuple[Cause | None, ...] = ("defect", "lapse", "uncertain", None)


@st.composite
def material(draw: st.DrawFn) -> tuple[list[Question], list[BaselineOutcome]]:
    """Up to thirty videos of one to three questions, answered and judged at random."""
    homes = draw(st.lists(st.sampled_from(("s1", "s2", None)), min_size=2, max_size=30))
    asked = [
        question(video, number, draw(st.sampled_from(CLASSES)), sub_category=home)
        for video, home in enumerate(homes)
        for number in range(1, draw(st.integers(1, 3)) + 1)
    ]
    outcomes = []
    for item in asked:
        right = draw(st.booleans())
        outcomes.append(
            BaselineOutcome(
                question_id=item.question_id,
                right=right,
                cause=None if right else draw(st.sampled_from(CAUSES)),
                degraded=not right and draw(st.booleans()),
            )
        )
    return asked, outcomes


@settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    made=material(),
    ratio=st.sampled_from([0.2, 0.4, 0.5]),
    wanted=st.integers(0, 12),
    seed=st.integers(0, 3),
    share=st.floats(0.2, 1),
    shuffle=st.randoms(),
)
def test_split_properties(
    made: tuple[list[Question], list[BaselineOutcome]],
    ratio: float,
    wanted: int,
    seed: int,
    share: float,
    shuffle: random.Random,
) -> None:
    """Row split: a result or InfeasibleSplitError, never anything else; and what a result keeps.

    A failure is not shrunk: that would take longer than a test may.
    """
    asked, outcomes = made
    videos = {item.video_id for item in asked}
    n_trainval = max(1, int(len(videos) * share))
    parameters = SplitParameters(
        seed=seed,
        n_trainval=n_trainval,
        n_test=len(videos) - n_trainval,
        val_ratio=ratio,
        val_wrong_min=wanted,
    )

    def split(
        some: list[Question], known: list[BaselineOutcome], parameters: SplitParameters
    ) -> bytes | str:
        try:
            pools, _ = split_pools(
                some, known, parameters, eval_min_per_class=2, trainable_min_units=8
            )
        except InfeasibleSplitError as error:
            return str(error)
        return encode_pools(pools)

    result = split(asked, outcomes, parameters)
    # insensitive to the order of both inputs, and the same again
    shuffle.shuffle(asked)
    shuffle.shuffle(outcomes)
    assert split(asked, outcomes, parameters) == result
    if isinstance(result, str):
        # what the message offers is really feasible
        offered = re.search(r"lower val_wrong_min to at most (\d+)", result)
        assert offered is not None
        lower = int(offered[1])
        assert lower < wanted
        feasible = SplitParameters(
            seed=seed,
            n_trainval=n_trainval,
            n_test=len(videos) - n_trainval,
            val_ratio=ratio,
            val_wrong_min=lower,
        )
        assert isinstance(split(asked, outcomes, feasible), bytes)
        more = re.search(r"raise n_trainval to about (\d+) videos", result)
        assert more is None or n_trainval < int(more[1]) <= len(videos)
        return
    _check(asked, outcomes, parameters)


def _check(
    asked: list[Question], outcomes: list[BaselineOutcome], parameters: SplitParameters
) -> None:
    pools, report = split_pools(
        asked, outcomes, parameters, eval_min_per_class=2, trainable_min_units=8
    )
    home = {item.question_id: item.video_id for item in asked}
    # every question once, every video in one pool
    assert Counter([*pools.diag, *pools.val, *pools.test]) == Counter(list(home))
    diag, val, test = ({home[name] for name in ids} for ids in (pools.diag, pools.val, pools.test))
    assert not diag & val
    assert not (diag | val) & test
    assert (len(diag | val), len(test)) == (parameters.n_trainval, parameters.n_test)
    # trainval and test do not look at the outcomes
    categories = {item.video_id: item.sub_category for item in sorted(asked, key=_by_id)}
    trainval, _ = choose_videos(
        categories, n_trainval=parameters.n_trainval, n_test=parameters.n_test, seed=parameters.seed
    )
    assert trainval == diag | val
    # val has its wrong answers
    known = {outcome.question_id: outcome for outcome in outcomes}
    assert sum(not known[name].right for name in pools.val) >= parameters.val_wrong_min
    # and the report counts what is there
    tiers = {name: outcome.tier for name, outcome in known.items() if not outcome.right}
    assert report.t2_in_diag == sum(tiers.get(name) == 2 for name in pools.diag)
    assert report.t2_total == sum(tiers.get(name) == 2 for name in (*pools.diag, *pools.val))


def _by_id(item: Question) -> str:
    return item.question_id


@st.composite
def video_groups(draw: st.DrawFn) -> list[VideoGroup]:
    groups = []
    for index in range(draw(st.integers(1, 25))):
        total = draw(st.integers(1, 3))
        wrong = draw(st.integers(0, total))
        groups.append(
            VideoGroup(
                video_id=f"v{index:02d}",
                t2_count=draw(st.integers(0, wrong)),
                t1_count=0,
                wrong_count=wrong,
                question_count=total,
            )
        )
    return groups


@settings(deadline=None, max_examples=300)
@given(
    made=video_groups(),
    ratio=st.sampled_from([0.2, 0.4, 0.5, 0.7]),
    wanted=st.integers(0, 20),
    shuffle=st.randoms(),
)
def test_greedy_properties(
    made: list[VideoGroup], ratio: float, wanted: int, shuffle: random.Random
) -> None:
    """Row split: T2 goes to diag first, step 2 takes as little as it must, and it ends."""
    there = sum(group.wrong_count for group in made)
    shuffled = list(made)
    shuffle.shuffle(shuffled)
    if there < wanted:
        with pytest.raises(InfeasibleSplitError):
            assign_tiered(shuffled, val_ratio=ratio, val_wrong_min=wanted)
        return
    assigned = assign_tiered(shuffled, val_ratio=ratio, val_wrong_min=wanted)
    assert assigned == assign_tiered(made, val_ratio=ratio, val_wrong_min=wanted)
    groups = {group.video_id: group for group in made}
    first = {*assigned.diag, *assigned.moved}  # what step 1 put into diag
    rest = groups.keys() - first
    assert {*assigned.diag, *assigned.val} == groups.keys()
    assert set(assigned.moved) <= set(assigned.val)
    # diag is filled to its share, and by no video more
    sizes = [groups[video].question_count for video in first]
    target = (1 - Fraction(str(ratio))) * sum(group.question_count for group in made)
    key = {v: (-g.t2_count, -g.wrong_count, g.video_id) for v, g in groups.items()}
    last = max(first, key=lambda video: key[video], default=None)
    assert sum(sizes) >= target
    if last is not None:
        assert sum(sizes) - groups[last].question_count < target
    # nothing that stayed in val would have gone before something in diag
    if first and rest:
        assert max(key[video] for video in first) < min(key[video] for video in rest)
    # only videos with a wrong answer were moved: the fewest T2 first, then the fewest wrong
    order = [(groups[v].t2_count, groups[v].wrong_count, v) for v in assigned.moved]
    assert order == sorted(order)
    assert all(wrong for _, wrong, _ in order)
    left = [
        (groups[v].t2_count, groups[v].wrong_count, v)
        for v in assigned.diag
        if groups[v].wrong_count
    ]
    assert not order or not left or order[-1] < min(left)
    # and none too many
    wrong = sum(groups[video].wrong_count for video in assigned.val)
    assert wrong >= wanted
    if assigned.moved:
        assert wrong - groups[assigned.moved[-1]].wrong_count < wanted


def test_no_more_videos_are_asked_for_than_there_are() -> None:
    """A remedy that cannot be followed is none."""
    groups = [
        VideoGroup(video_id=f"v{i}", t2_count=0, t1_count=0, wrong_count=i % 2, question_count=1)
        for i in range(10)
    ]

    def message(n_videos: int) -> str:
        try:
            assign_tiered(groups, val_ratio=0.4, val_wrong_min=20, n_videos=n_videos)
        except InfeasibleSplitError as error:
            return str(error)
        raise AssertionError("it has only five wrong answers")

    assert "raise n_trainval to about 40 videos" in message(40)
    assert "about 40 trainval videos would be needed, there are 39" in message(39)
