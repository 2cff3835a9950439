"""Which videos train, which decide, which are never seen (ALGORITHM.md section 3). Pure.

Videos are atoms. Test is chosen blind to outcomes; diag and val are chosen with the
baseline's outcomes in view, which is why that draw must not serve as val's baseline
again. The result follows from the questions, the outcomes and the parameters alone,
in whatever order they come. Row split.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from actors.dataset.errors import InfeasibleSplitError, SplitError
from actors.dataset.preflight import preflight
from protocol.dataset import ClassCount, Question
from protocol.diagnoser import Cause
from protocol.seed import Pools, SplitParameters

__all__ = [
    "Assignment",
    "BaselineOutcome",
    "PoolCount",
    "SplitReport",
    "VideoGroup",
    "assign_tiered",
    "choose_videos",
    "group_videos",
    "split_pools",
]


class BaselineOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A question's baseline answer and, if it was wrong, what the judge found.

    cause: None if the question was never judged or the judge failed.
    """

    question_id: str
    right: bool
    cause: Cause | None = None
    degraded: bool = False

    @property
    def tier(self) -> int:
        """Of a wrong answer: 2 a skill defect, 1 a lapse, 0 uncertain, degraded or missing."""
        if self.degraded or self.cause is None:
            return 0
        return {"defect": 2, "lapse": 1, "uncertain": 0}[self.cause]


class VideoGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of one trainval video, counted."""

    video_id: str
    t2_count: int
    t1_count: int
    wrong_count: int
    question_count: int


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """Trainval videos by pool, each sorted. moved: taken from diag to give val wrong answers."""

    diag: tuple[str, ...]
    val: tuple[str, ...]
    moved: tuple[str, ...]


class PoolCount(msgspec.Struct, frozen=True, kw_only=True):
    """A pool in numbers. wrong: in the baseline; None for test, which is chosen blind."""

    pool: str
    videos: int
    questions: int
    wrong: int | None


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a split gives. t2: wrong answers that show a skill defect.

    moved: videos that step 2 took from diag. classes: with pre-flight's verdict.
    """

    pools: tuple[PoolCount, ...]
    t2_total: int
    t2_in_diag: int
    t1_total: int
    t1_in_diag: int
    moved: tuple[str, ...]
    classes: tuple[ClassCount, ...]


def split_pools(
    questions: Iterable[Question],
    baseline: Iterable[BaselineOutcome],
    parameters: SplitParameters,
    *,
    eval_min_per_class: int,
    trainable_min_units: int,
) -> tuple[Pools, SplitReport]:
    """The three pools, and what they hold.

    Raises SplitError if there are too few videos or a trainval question has no baseline
    outcome (all are named), InfeasibleSplitError if val cannot have enough wrong answers.
    """
    questions = sorted(questions, key=lambda question: question.question_id)
    outcomes = {outcome.question_id: outcome for outcome in baseline}
    categories = {question.video_id: question.sub_category for question in questions}
    trainval, test = choose_videos(
        categories,
        n_trainval=parameters.n_trainval,
        n_test=parameters.n_test,
        seed=parameters.seed,
    )
    groups = group_videos([q for q in questions if q.video_id in trainval], outcomes)
    assigned = assign_tiered(
        groups,
        val_ratio=parameters.val_ratio,
        val_wrong_min=parameters.val_wrong_min,
        n_videos=len(categories),
    )
    by_pool = {
        "diag": [q for q in questions if q.video_id in set(assigned.diag)],
        "val": [q for q in questions if q.video_id in set(assigned.val)],
        "test": [q for q in questions if q.video_id in test],
    }
    pools = Pools(
        **{pool: tuple(q.question_id for q in members) for pool, members in by_pool.items()}
    )
    classes = preflight(
        by_pool["diag"],
        by_pool["val"],
        by_pool["test"],
        eval_min_per_class=eval_min_per_class,
        trainable_min_units=trainable_min_units,
    )
    return pools, _report(groups, assigned, by_pool["test"], classes)


def choose_videos(
    categories: Mapping[str, str | None], *, n_trainval: int, n_test: int, seed: int
) -> tuple[frozenset[str], frozenset[str]]:
    """Trainval and test videos by keyed hash, stratified by sub-category.

    categories: sub-category by video. Every stratum gives trainval its share of the videos,
    rounded down or up (largest remainders first), and then test its share of what is left; in
    a stratum the videos are taken in the order of their hashes.

    Raises SplitError if there are fewer videos than asked for.
    """
    if n_trainval + n_test > len(categories):
        raise SplitError(
            f"{n_trainval} trainval + {n_test} test videos asked for, the questions are of "
            f"{len(categories)}: lower n_trainval or n_test"
        )
    strata: defaultdict[str, list[str]] = defaultdict(list)
    for video_id, category in categories.items():
        strata[category or ""].append(video_id)
    for members in strata.values():
        members.sort(key=lambda video_id: (_hash(video_id, seed), video_id))
    trainval = _draw(strata, n_trainval, seed)
    rest = {name: [v for v in members if v not in trainval] for name, members in strata.items()}
    return trainval, _draw(rest, n_test, seed)


def _draw(strata: Mapping[str, Sequence[str]], wanted: int, seed: int) -> frozenset[str]:
    """The first of every stratum, as many as is its share: ``wanted`` in all."""
    total = sum(map(len, strata.values()))
    shares = {name: Fraction(wanted * len(m), max(total, 1)) for name, m in strata.items()}
    taken = {name: int(share) for name, share in shares.items()}
    spare = wanted - sum(taken.values())
    by_remainder = sorted(
        strata, key=lambda name: (taken[name] - shares[name], _hash(f"stratum/{name}", seed))
    )
    for name in by_remainder[:spare]:
        taken[name] += 1
    return frozenset(v for name, members in strata.items() for v in members[: taken[name]])


def assign_tiered(
    groups: Collection[VideoGroup],
    *,
    val_ratio: float,
    val_wrong_min: int,
    n_videos: int | None = None,
) -> Assignment:
    """Tier-aware deterministic greedy: keep skill defects in diag, give val its power.

    1. In the order (t2 desc, wrong desc, video) fill diag until its questions reach
       (1 - val_ratio) of all; the rest is val.
    2. While val has fewer wrong than ``val_wrong_min``, move the diag group with a wrong
       answer that has the fewest t2, then the fewest wrong, then the first video id. Every
       round moves one group for good, so it ends.

    n_videos: all that there are, so that no more are asked for than that.

    Raises InfeasibleSplitError when no group is left to move; its message says what would do.
    """
    # Fraction(str): 1 - 0.7 of 10 is 3, not the float a hair above it
    target = (1 - Fraction(str(val_ratio))) * sum(group.question_count for group in groups)
    diag: list[VideoGroup] = []
    val: list[VideoGroup] = []
    filled = 0
    for group in sorted(groups, key=lambda g: (-g.t2_count, -g.wrong_count, g.video_id)):
        if filled < target:
            diag.append(group)
            filled += group.question_count
        else:
            val.append(group)
    moved: list[VideoGroup] = []
    wrong_in_val = sum(group.wrong_count for group in val)
    candidates = sorted(
        (group for group in diag if group.wrong_count > 0),
        key=lambda g: (g.t2_count, g.wrong_count, g.video_id),
    )
    for group in candidates:
        if wrong_in_val >= val_wrong_min:
            break
        moved.append(group)
        wrong_in_val += group.wrong_count
    if wrong_in_val < val_wrong_min:
        raise InfeasibleSplitError(_remedy(groups, wrong_in_val, val_wrong_min, n_videos))
    gone = {group.video_id for group in moved}
    return Assignment(
        diag=tuple(sorted(group.video_id for group in diag if group.video_id not in gone)),
        val=tuple(sorted([*(group.video_id for group in val), *gone])),
        moved=tuple(group.video_id for group in moved),
    )


def _remedy(groups: Collection[VideoGroup], wrong: int, wanted: int, n_videos: int | None) -> str:
    """``wrong`` is all that trainval has: by now every wrong answer was moved to val."""
    message = (
        f"val needs {wanted} questions that the baseline answered wrong, all of trainval "
        f"({len(groups)} videos) has {wrong}: lower val_wrong_min to at most {wrong}"
    )
    if not wrong:
        return message
    enough = -(-wanted * len(groups) // wrong)
    if n_videos is None or enough <= n_videos:
        return f"{message}, or raise n_trainval to about {enough} videos"
    return f"{message}; about {enough} trainval videos would be needed, there are {n_videos}"


def group_videos(
    questions: Iterable[Question], outcomes: Mapping[str, BaselineOutcome]
) -> tuple[VideoGroup, ...]:
    """The questions' videos, counted, by video id.

    Raises SplitError naming every question without an outcome.
    """
    videos: defaultdict[str, list[Question]] = defaultdict(list)
    for question in questions:
        videos[question.video_id].append(question)
    lacking = sorted(
        q.question_id
        for members in videos.values()
        for q in members
        if q.question_id not in outcomes
    )
    if lacking:
        raise SplitError(
            f"{len(lacking)} trainval questions have no baseline outcome: {', '.join(lacking)}; "
            "run the baseline on them first, or exclude them"
        )
    groups = []
    for video_id, members in sorted(videos.items()):
        known = [outcomes[question.question_id] for question in members]
        tiers = [outcome.tier for outcome in known if not outcome.right]
        groups.append(
            VideoGroup(
                video_id=video_id,
                t2_count=tiers.count(2),
                t1_count=tiers.count(1),
                wrong_count=len(tiers),
                question_count=len(members),
            )
        )
    return tuple(groups)


def _report(
    groups: Iterable[VideoGroup],
    assigned: Assignment,
    test: Collection[Question],
    classes: tuple[ClassCount, ...],
) -> SplitReport:
    by_video = {group.video_id: group for group in groups}
    diag = [by_video[video_id] for video_id in assigned.diag]
    val = [by_video[video_id] for video_id in assigned.val]
    counts = [
        PoolCount(
            pool=name,
            videos=len(members),
            questions=sum(group.question_count for group in members),
            wrong=sum(group.wrong_count for group in members),
        )
        for name, members in (("diag", diag), ("val", val))
    ]
    blind = PoolCount(
        pool="test",
        videos=len({question.video_id for question in test}),
        questions=len(test),
        wrong=None,
    )
    return SplitReport(
        pools=(*counts, blind),
        t2_total=sum(group.t2_count for group in by_video.values()),
        t2_in_diag=sum(group.t2_count for group in diag),
        t1_total=sum(group.t1_count for group in by_video.values()),
        t1_in_diag=sum(group.t1_count for group in diag),
        moved=assigned.moved,
        classes=classes,
    )


def _hash(video_id: str, seed: int) -> str:
    return hashlib.sha256(f"split/seed{seed}/{video_id}".encode()).hexdigest()
