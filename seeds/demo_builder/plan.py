"""Which video is asked which class, and which lessons a question hangs on.

Every share is met exactly (quotas over a hashed order), so that a class of 33
questions has its three lessons as surely as one of 90.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from seeds.demo_builder.choice import bell_curve, pick, shuffled
from seeds.demo_builder.prompts import PROMPT_NEEDS
from seeds.demo_builder.videos import N_VIDEOS

__all__ = [
    "CLASS_SIZES",
    "KINDS",
    "Slot",
    "base_of",
    "make_plan",
    "needs_of",
    "prompt_needs",
    "video_kinds",
]

#: Questions per class; the last two are micro classes, too small to train.
CLASS_SIZES = {
    "Action Recognition": 90,
    "Counting Problem": 72,
    "Temporal Reasoning": 60,
    "Object Recognition": 48,
    "Attribute Perception": 42,
    "OCR Problems": 33,
    "Information Synopsis": 9,
    "Spatial Perception": 6,
}

#: Lesson names by falling weight, then the pair that some questions need together.
KINDS = {
    "Action Recognition": ("velk", "orm", "tessle", "velk+orm"),
    "Counting Problem": ("sum", "spoken", "return", "sum+spoken"),
    "Temporal Reasoning": ("bell", "forenight", "list", "bell+forenight"),
    "Object Recognition": ("background", "nickname", "absent", "nickname+background"),
    "Attribute Perception": ("last", "owner", "detail", "owner+detail"),
    "OCR Problems": ("speech", "split", "numbers", "split+speech"),
    "Information Synopsis": (),
    "Spatial Perception": (),
}
#: Shares of a class's questions, in the order of KINDS; the rest is plain.
_SHARES = (0.26, 0.16, 0.10, 0.05)
#: Classes with a second, plain question in one of their videos: units of two questions.
_DOUBLES = ("Action Recognition", "Action Recognition", "Attribute Perception",
            "Object Recognition", "Object Recognition")  # fmt: skip


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One question to be: the video's index, its class, its kind."""

    video: int
    task_type: str
    kind: str


def make_plan() -> tuple[Slot, ...]:
    """360 slots, three a video, ordered by video."""
    cells = _doubled(_classes_of_videos())
    slots: list[Slot] = []
    for task_type in CLASS_SIZES:
        mine = shuffled([video for video, name in cells if name == task_type], "kinds", task_type)
        second: list[int] = []
        first: list[int] = []
        for video in mine:
            (second if video in first else first).append(video)
        first.sort(key=lambda video: video not in second)  # a double's first is never plain
        kinds = _quota(task_type, len(mine))
        kinds += ["plain"] * (len(mine) - len(kinds))
        slots += [
            Slot(video=video, task_type=task_type, kind=kind)
            for video, kind in zip(first + second, kinds, strict=True)
        ]
    return tuple(sorted(slots, key=lambda slot: slot.video))


def video_kinds(plan: tuple[Slot, ...]) -> tuple[Mapping[str, str], ...]:
    """Each video's kind per class: as planned, or drawn where the class is not asked."""
    found = [
        {
            task_type: pick((*kinds, "plain", "plain"), "unasked", video, task_type)
            for task_type, kinds in KINDS.items()
        }
        for video in range(N_VIDEOS)
    ]
    for slot in sorted(plan, key=lambda slot: slot.kind != "plain"):
        found[slot.video][slot.task_type] = slot.kind
    return tuple(found)


def needs_of(slot: Slot) -> tuple[str, ...]:
    """The lesson ids of its class without which the question is mostly lost."""
    stem = slot.task_type.lower().replace(" ", "-")
    return () if slot.kind == "plain" else tuple(f"{stem}/{n}" for n in slot.kind.split("+"))


def prompt_needs(names: Sequence[str], plan: Sequence[Slot]) -> Mapping[str, tuple[str, ...]]:
    """The lesson of a prompt that a question hangs on beside that of its class, by question id.

    Without any lesson such a question is as hard as others of its kind, so that the baseline
    does not tell which it is.
    """
    single = [name for name, slot in zip(names, plan, strict=True) if len(needs_of(slot)) == 1]
    order = iter(shuffled(single, "prompt needs"))
    return {
        next(order): (lesson_id,) for lesson_id, count in PROMPT_NEEDS.items() for _ in range(count)
    }


def base_of(slot: Slot, question_id: str) -> float:
    """Logit of being right without any lesson: a mixture, three decimals."""
    if not KINDS[slot.task_type]:
        mean, spread = 0.8, 0.5
    else:
        mean, spread = {0: (2.0, 0.6), 1: (-1.2, 0.3), 2: (-2.0, 0.3)}[len(needs_of(slot))]
    return round(mean + spread * bell_curve("base", question_id), 3)


def _classes_of_videos() -> list[tuple[int, str]]:
    """The classes dealt round the table: a run of at most 120 never meets a video twice."""
    order = shuffled(range(N_VIDEOS), "deal")
    dealt = [name for name, size in CLASS_SIZES.items() for _ in range(size)]
    return [(order[at % N_VIDEOS], name) for at, name in enumerate(dealt)]


def _doubled(cells: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Swap a few classes between videos, so that these have a unit of two questions."""
    cells = list(cells)
    touched: set[int] = set()
    for turn, task_type in enumerate(_DOUBLES):
        for give, take in shuffled(
            [(i, j) for i in range(len(cells)) for j in range(len(cells))
             if cells[i][1] == task_type != cells[j][1]],
            "double", turn,
        ):  # fmt: skip
            (giver, _), (taker, other) = cells[give], cells[take]
            at_taker = {name for video, name in cells if video == taker}
            at_giver = {name for video, name in cells if video == giver}
            if giver == taker or touched & {giver, taker}:
                continue
            if task_type in at_taker and other not in at_giver:
                cells[give], cells[take] = (giver, other), (taker, task_type)
                touched |= {giver, taker}
                break
    return cells


def _quota(task_type: str, size: int) -> list[str]:
    kinds: list[str] = []
    for kind, share in zip(KINDS[task_type], _SHARES, strict=False):
        kinds += [kind] * max(1, round(share * size))
    return kinds
