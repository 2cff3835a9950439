"""Classes that would train, had val not taken their videos from diag."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.dataset.emptied import Emptied, emptied_classes
from actors.dataset.split import BaselineOutcome, split_pools
from protocol.dataset import ClassCount, Question
from protocol.seed import SplitParameters
from tests.dataset.material import question

LEAST = {"eval_min_per_class": 1, "trainable_min_units": 3}
CLASSES = ("A", "B")


def parameters(videos: int, val_wrong_min: int, val_ratio: float = 0.4) -> SplitParameters:
    return SplitParameters(
        seed=1, n_trainval=videos, n_test=0, val_ratio=val_ratio, val_wrong_min=val_wrong_min
    )


def asked(wrong: str) -> tuple[list[Question], dict[str, BaselineOutcome]]:
    """A question of each class per video; ``wrong``: per question ``x`` or ``.``."""
    questions = [question(index // 2, index % 2, CLASSES[index % 2]) for index in range(len(wrong))]
    outcomes = [
        BaselineOutcome(question_id=one.question_id, right=answer == ".")
        for one, answer in zip(questions, wrong, strict=True)
    ]
    return questions, {outcome.question_id: outcome for outcome in outcomes}


def split(
    questions: list[Question], outcomes: dict[str, BaselineOutcome], given_: SplitParameters
) -> tuple[list[Question], list[Question], tuple[ClassCount, ...]]:
    pools, report = split_pools(questions, outcomes.values(), given_, **LEAST)
    by_id = {one.question_id: one for one in questions}
    return [by_id[one] for one in pools.diag], [by_id[one] for one in pools.val], report.classes


def emptied(
    questions: list[Question], outcomes: dict[str, BaselineOutcome], given_: SplitParameters
) -> tuple[Emptied, ...]:
    diag, val, _ = split(questions, outcomes, given_)
    return emptied_classes(diag, val, outcomes, given_, **LEAST)


def test_by_hand() -> None:
    """Five videos, all answered wrong once: diag keeps three, and val takes them one by one."""
    questions, outcomes = asked("x." * 5)
    assert emptied(questions, outcomes, parameters(5, 4)) == (
        Emptied(task_type="A", val_wrong_min=2),
        Emptied(task_type="B", val_wrong_min=2),
    )
    assert emptied(questions, outcomes, parameters(5, 2)) == ()  # nothing was moved, all train


def test_too_few_videos_are_not_laid_to_the_moves() -> None:
    """Without a single move diag would hold two: only more videos mend that."""
    questions, outcomes = asked("x." * 3)
    assert emptied(questions, outcomes, parameters(3, 2)) == ()


def test_of_another_split_nothing_is_said() -> None:
    """Pools that these parameters do not give, impossible ones, and outcomes that are lacking."""
    questions, outcomes = asked("x." * 5)
    given_ = parameters(5, 4)
    diag, val, _ = split(questions, outcomes, given_)
    other = [one for one in questions if one.video_id == "004"]
    rest = [one for one in questions if one.video_id != "004"]
    assert emptied_classes(other, rest, outcomes, given_, **LEAST) == ()
    impossible = msgspec.structs.replace(given_, val_wrong_min=6)
    assert emptied_classes(diag, val, outcomes, impossible, **LEAST) == ()
    lacking = dict(list(outcomes.items())[1:])
    assert emptied_classes(diag, val, lacking, given_, **LEAST) == ()


@given(
    wrong=st.text("x.", min_size=8, max_size=40),
    val_wrong_min=st.integers(0, 20),
    val_ratio=st.sampled_from([0.2, 0.4, 0.7]),
)
def test_what_is_said_comes_true(wrong: str, val_wrong_min: int, val_ratio: float) -> None:
    """Under the number named the class trains; under any between it and the present it does not."""
    questions, outcomes = asked(wrong)
    videos = len({one.video_id for one in questions})
    now = parameters(videos, min(val_wrong_min, wrong.count("x")), val_ratio)

    def trained(least: int) -> set[str]:
        other = msgspec.structs.replace(now, val_wrong_min=least)
        return {one.task_type for one in split(questions, outcomes, other)[2] if one.trainable}

    named = {one.task_type: one.val_wrong_min for one in emptied(questions, outcomes, now)}
    for task_type in {one.task_type for one in questions} - trained(now.val_wrong_min):
        feasible = [k for k in range(now.val_wrong_min) if task_type in trained(k)]
        if task_type in named:
            assert named[task_type] in feasible
        assert (task_type in named) == bool(feasible)
        if feasible:
            assert max(feasible) == named[task_type]
