"""The simulated editor as the one who ranks."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from actors.twin.editor import editor_reply
from actors.twin.ranking import RankOut
from actors.twin.shares import Shares
from actors.twin.wire import Turn
from tests.twin.conversations import SHARES, demo, skill_of
from tests.twin.requests import rank_turns
from tests.twin.test_editor import COMPLAINT

TASK_TYPE = "Counting Problem"
LESSONS = [lesson.text for lesson in demo().lessons_of(TASK_TYPE)]
FILLER = demo().fillers_of(TASK_TYPE)[0]
TRAP = demo().traps_of(TASK_TYPE)[0].text
#: 1 trap, 2 filler, 3 and 5 lessons, 4 takes a trap out that the skill holds.
OLD_TRAP = demo().traps_of(TASK_TYPE)[1].text
SKILL = f"{skill_of(TASK_TYPE)}{OLD_TRAP}\n"
EDITS = (
    ("append", "", TRAP, 1),
    ("append", "", FILLER, 5),
    ("insert_after", "## Steps", f"\n{LESSONS[1]}", 2),
    ("delete", OLD_TRAP, "", 1),
    ("append", "", LESSONS[0], 3),
)


def said(
    shares: Shares, choose: int = 3, skill: str = SKILL, *more: Turn, seed: int | None = None
) -> str:
    turns = (*rank_turns(skill, EDITS, choose), *more)
    return editor_reply(demo(), 7, shares, turns, seed, hostile=0.0).text


def selected(raw: str) -> tuple[int, ...]:
    return msgspec.json.decode(raw, type=RankOut).selected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (Shares(1.0, 0.0, 0.0, 0.0), (5, 3, 4)),
        (Shares(0.0, 1.0, 0.0, 0.0), (2, 5, 3)),
        (Shares(0.0, 0.0, 1.0, 0.0), (1, 2, 4)),
    ],
    ids=["by worth", "by support", "the worst first"],
)
def test_order(shares: Shares, expected: tuple[int, ...]) -> None:
    """Of each kind; at most as many as may be chosen."""
    assert selected(said(shares)) == expected
    assert selected(said(shares, choose=1)) == expected[:1]
    assert sorted(selected(said(shares, choose=9))) == [1, 2, 3, 4, 5]


def test_a_lesson_that_the_skill_holds_is_worth_nothing() -> None:
    """So the other one comes first."""
    told = f"{SKILL}{LESSONS[0]}\n"
    assert selected(said(Shares(1.0, 0.0, 0.0, 0.0), 2, told)) == (3, 4)


def test_malformed_replies_are_of_three_kinds() -> None:
    """Broken off, prose, numbers that nobody has; after a complaint it is sound."""
    ways: Counter[str] = Counter()
    bad = Shares(0.5, 0.0, 0.0, 0.5)
    for seed in range(60):
        raw = said(bad, seed=seed)
        try:
            numbers = selected(raw)
        except msgspec.DecodeError:
            ways["prose" if "{" not in raw else "cut"] += 1
        else:
            good = numbers == (5, 3, 4)
            ways["sound" if good else "numbers"] += 1
            assert good or max(numbers) == 6
        mended = said(bad, 3, SKILL, Turn("assistant", raw), COMPLAINT, seed=seed)
        assert selected(mended) == (5, 3, 4)
    assert min(ways[way] for way in ("prose", "cut", "numbers")) >= 3, ways


def test_the_order_is_mostly_sensible() -> None:
    """At the usual shares; and the same request has the same reply."""
    first = Counter(said(SHARES, seed=seed) for seed in range(200)).most_common(1)
    assert selected(first[0][0]) == (5, 3, 4)
    assert first[0][1] > 70
    assert said(SHARES, seed=3) == said(SHARES, seed=3)
