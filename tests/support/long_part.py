"""A data set with the shape of Video-MME's long part, in made-up words.

300 videos, 900 questions. The counts are those of the real annotation: questions and videos
of every class, questions of one, two and three classes in a video, domains, gold letters, and
the kinds of rows that have broken readers. No text of the benchmark is here, and no question
has an answer anywhere: for tests of loading, splitting and counting only.

Deterministic: whatever is drawn is a hash of a readable key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from protocol.dataset import Question
from tests.support import question_files

__all__ = [
    "CLASSES",
    "DOMAINS",
    "GOLD",
    "kinds",
    "questions",
    "write_jsonl",
    "write_official",
    "write_owner_layout",
    "write_parquet",
    "youtube_ids",
]

CLASSES = {
    "Object Reasoning": (240, 180),
    "Action Reasoning": (180, 138),
    "Information Synopsis": (163, 149),
    "Temporal Reasoning": (91, 87),
    "Action Recognition": (63, 55),
    "Object Recognition": (54, 47),
    "Counting Problem": (48, 46),
    "Attribute Perception": (27, 27),
    "OCR Problems": (14, 12),
    "Spatial Reasoning": (11, 10),
    "Temporal Perception": (6, 6),
    "Spatial Perception": (3, 3),
}
"""Questions and videos of each class."""

DOMAINS = {
    "Knowledge": 9,
    "Life Record": 7,
    "Sports Competition": 5,
    "Film & Television": 4,
    "Artistic Performance": 4,
    "Multilingual": 1,
}
"""Sub-categories of each domain; every sub-category has ten videos."""

GOLD = {"A": 223, "B": 247, "C": 232, "D": 198}
"""Questions by their gold letter."""

# Which classes hold the videos with three questions of one class and with two of one.
_THREE_OF = {"Object Reasoning": 6, "Action Reasoning": 4, "Information Synopsis": 2}
_TWO_OF = {
    name: asked - videos - 2 * _THREE_OF.get(name, 0) for name, (asked, videos) in CLASSES.items()
}

_WHO = ("keeper", "baker", "diver", "mason", "weaver", "pilot", "gardener", "tailor", "carver")
_WHERE = (
    *("harbour", "orchard", "quarry", "mill", "lighthouse"),
    *("market", "bridge", "stable", "kiln", "tunnel"),
)
_WHAT = (
    *("lantern", "ladder", "rope", "kettle", "basket", "saddle", "compass", "wedge", "bell"),
    *("candle", "drum", "feather", "glove", "hammer", "jar", "kite", "loom", "mirror", "net"),
)

Options = tuple[str, ...]
# what a row asks, from its plain text, its plain options and the gold one's place
Wording = Callable[[str, Options, int], tuple[str, Options]]


class _Kind(NamedTuple):
    """Irregular rows. gold: the letter that they must have; None: any."""

    name: str
    rows: int
    worded: Wording
    gold: str | None = None


@cache
def questions() -> tuple[Question, ...]:
    """All 900, ordered by id: ``601-1`` to ``900-3``."""
    wordings = {kind.name: kind.worded for kind in _KINDS}
    worded = {question_id: wordings[kind] for kind, ids in kinds().items() for question_id in ids}
    gold = _gold()
    built = []
    for video_id, classes in _classes_of_videos().items():
        index = int(video_id) - 601
        for number, task_type in enumerate(classes, start=1):
            question_id = f"{video_id}-{number}"
            text, options = _plain(question_id)
            if question_id in worded:
                at = "ABCD".index(gold[question_id])
                text, options = worded[question_id](text, options, at)
            built.append(
                Question(
                    question_id=question_id,
                    video_id=video_id,
                    task_type=task_type,
                    question=text,
                    options=options,
                    answer=gold[question_id],
                    domain=_domain(index // 10),
                    sub_category=f"{_WHERE[index // 10 % 10].title()} {index // 100 + 1}",
                    duration="long",
                )
            )
    return tuple(built)


@cache
def kinds() -> dict[str, tuple[str, ...]]:
    """Ids of the questions of each irregular kind, each sorted; the kinds do not overlap."""
    gold = _gold()
    left = sorted(gold, key=lambda question_id: _hash(f"kind/{question_id}"))
    chosen: dict[str, tuple[str, ...]] = {}
    for kind in _KINDS:
        fit = (question_id for question_id in left if kind.gold in (None, gold[question_id]))
        taken = set(islice(fit, kind.rows))
        left = [question_id for question_id in left if question_id not in taken]
        chosen[kind.name] = tuple(sorted(taken))
    return chosen


@cache
def youtube_ids() -> dict[str, str]:
    """An eleven-character id by video id; seven begin with ``-`` or ``_``."""
    ids = {}
    for index in range(300):
        digest = _hash(f"youtube/{index}")
        first = "-_"[index % 2] if index % 43 == 0 else "v"
        ids[str(601 + index)] = first + digest[:4] + "_" + digest[4:8] + "-"
    return ids


def write_official(folder: Path) -> Path:
    """The nested JSON with trailing commas."""
    return question_files.write_official(folder, questions(), youtube_ids())


def write_parquet(folder: Path) -> Path:
    """The Parquet file; needs pyarrow."""
    return question_files.write_parquet(folder, questions(), youtube_ids())


def write_owner_layout(folder: Path) -> Path:
    """The folder with a file per video, which holds no domain, sub-category or duration."""
    return question_files.write_owner_layout(folder, questions())


def write_jsonl(folder: Path) -> Path:
    """Our own form."""
    return question_files.write_jsonl(folder, questions())


def _hash(key: str) -> str:
    return hashlib.sha256(f"long-part/{key}".encode()).hexdigest()


@cache
def _classes_of_videos() -> dict[str, tuple[str, ...]]:
    """The classes of each video's three questions, by video id."""
    single = {
        name: videos - _THREE_OF.get(name, 0) - _TWO_OF[name]
        for name, (_, videos) in CLASSES.items()
    }

    def take(n: int, other_than: str = "") -> tuple[str, ...]:
        """The n fullest classes, so that no class is left with more than there are videos."""
        names = sorted((c for c in single if c != other_than), key=lambda c: (-single[c], c))[:n]
        for name in names:
            single[name] -= 1
        return tuple(names)

    videos: list[tuple[str, ...]] = []
    videos += [(name,) * 3 for name, count in _THREE_OF.items() for _ in range(count)]
    videos += [
        (name, name, *take(1, name)) for name, count in _TWO_OF.items() for _ in range(count)
    ]
    videos += [take(3) for _ in range(300 - len(videos))]
    assert not any(single.values())
    places = sorted(range(300), key=lambda place: _hash(f"video/{place}"))
    return {
        str(601 + index): tuple(
            videos[place][slot]
            for slot in sorted(range(3), key=lambda slot: _hash(f"slot/{place}/{slot}"))
        )
        for index, place in enumerate(places)
    }


@cache
def _gold() -> dict[str, str]:
    ids = [f"{601 + index // 3}-{index % 3 + 1}" for index in range(900)]
    letters = [letter for letter, count in GOLD.items() for _ in range(count)]
    shuffled = sorted(ids, key=lambda question_id: _hash(f"gold/{question_id}"))
    return dict(zip(shuffled, letters, strict=True))


def _domain(sub_category: int) -> str:
    names = [name for name, count in DOMAINS.items() for _ in range(count)]
    return names[sub_category]


def _first(key: str, pool: Sequence[str], n: int) -> list[str]:
    return sorted(pool, key=lambda word: _hash(f"{key}/{word}"))[:n]


def _plain(question_id: str) -> tuple[str, Options]:
    who, where = _first(question_id, _WHO, 1)[0], _first(question_id, _WHERE, 1)[0]
    text = f"What does the {who} carry to the {where} at mark {question_id}?"
    return text, tuple(f"The {what}." for what in _first(question_id, _WHAT, 4))


def _tie_with_gold(text: str, o: Options, _: int) -> tuple[str, Options]:
    return text, (o[0], o[1], o[2], o[1])


def _tie_of_wrong(text: str, o: Options, at: int) -> tuple[str, Options]:
    first, second = [place for place in range(4) if place != at][:2]
    return text, tuple(o[first if place == second else place] for place in range(4))


def _ordered(marks: Sequence[str]) -> Wording:
    def worded(_: str, o: Options, __: int) -> tuple[str, Options]:
        listed = "\n".join(f"{mark} {body[:-1]};" for mark, body in zip(marks, o, strict=True))
        orders = tuple("".join([*marks[turn:], *marks[:turn]]) + "." for turn in range(4))
        return f"In which order do they come?\n{listed}", orders

    return worded


# Rows of each kind; the rest is plain. The counts are those of the long part where it has one.
_KINDS = (
    _Kind("tie with the gold D", 1, _tie_with_gold, "D"),
    _Kind("tie with the gold B", 1, _tie_with_gold, "B"),
    _Kind("tie of wrong options", 2, _tie_of_wrong),
    _Kind(
        "letter bodies",
        1,
        lambda _, o, __: (f"Which letter is on the {o[0][4:-1]}?", ("A.", "F.", "B.", "K.")),
        "C",
    ),
    _Kind("circled digits", 10, _ordered("①②③④")),
    _Kind("lettered list", 30, _ordered(("(a)", "(b)", "(c)", "(d)"))),
    _Kind("two lines", 1, lambda t, o, _: (t.replace(" carry", "\ncarry"), o)),
    _Kind(
        "not ASCII",
        8,
        lambda t, _, __: (t, ("A café sign.", "A piñata, 3 £.", "Über Λ.", "Čaj i kolač, ć.")),
    ),
    _Kind("double blank in the question", 3, lambda t, o, _: (t.replace(" at", "  at"), o)),
    _Kind(
        "double blank in an option",
        3,
        lambda t, o, _: (t, (o[0].replace(" ", "  ", 1), *o[1:])),
    ),
    _Kind("substring", 11, lambda t, o, _: (t, (o[0], f"{o[0][:-1]} and the strap.", *o[2:]))),
    _Kind("article", 70, lambda t, o, _: (t, tuple(f"A {body[4:]}" for body in o))),
    _Kind(
        "numbers",
        90,
        lambda t, _, at: (f"{t[:-1]}, how many?", tuple(f"{7 + at + i}." for i in range(4))),
    ),
    _Kind(
        "none or all of the above",
        45,
        lambda t, o, at: (t, (*o[:3], f"{'All' if at == 3 else 'None'} of the above.")),
    ),
    _Kind("negation", 103, lambda t, o, _: (t.replace("carry", "not carry"), o)),
    _Kind("same text", 9, lambda _, o, __: ("What is it all about, in the main?", o)),
    _Kind(
        "same question",
        2,
        lambda *_: (
            "Who comes back last of all?",
            ("The cook.", "The twins.", "The guard.", "Nan."),
        ),
    ),
    _Kind(
        "longest question",
        1,
        lambda t, o, _: ((t[:-1] + ", after the lamps were lit" * 40)[:812] + "?", o),
    ),
    _Kind(
        "longest option",
        1,
        lambda t, o, _: (t, ((o[0][:-1] + " with its strap" * 30)[:381] + ".", *o[1:])),
    ),
    _Kind("other ending", 4, lambda t, o, _: (t, (f"{o[0][:-1]}?", *o[1:3], f"{o[3][:-1]}!"))),
)
