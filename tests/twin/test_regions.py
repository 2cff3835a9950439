"""The simulated editor as the writer of notes and momentum."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.twin.document import bullets
from actors.twin.editor import editor_reply
from actors.twin.layout import body_of
from actors.twin.regions import MomentumOut, NotesOut
from actors.twin.shares import Shares
from actors.twin.truth import class_accuracy, classify
from actors.twin.wire import Turn
from actors.twin.world import fold, holds
from tests.twin.conversations import SHARES, demo, entries_of, questions, skill_of
from tests.twin.requests import compact_turns, momentum_turns
from tests.twin.test_editor import COMPLAINT

TASK_TYPE = "Temporal Reasoning"
SKILL = skill_of(TASK_TYPE)
HELPFUL, USELESS, HARMFUL, BAD = (
    Shares(*(float(at == kind) for at in range(4))) for kind in range(4)
)
RULES = bullets(SKILL)
NOTES = [
    f"Do not skip this: {RULES[0]}",
    f"Do not skip this: {RULES[1]}",
    f"Keep in mind: {RULES[0]}",
    f"Do not skip this: {RULES[1]}",
    f"do not  skip this: {RULES[2]}",
]
COMPARED = [
    (entry.row.question_id, change)
    for entry, change in zip(
        [e for e in entries_of(TASK_TYPE) if e.planted.needs],
        ("regressed", "persistent", "improved", "stable"),
        strict=False,
    )
]


def said(turns: tuple[Turn, ...], shares: Shares, seed: int | None = None) -> str:
    return editor_reply(demo(), 7, shares, turns, seed, hostile=0.0).text


def notes(shares: Shares, most: int, given: list[str] = NOTES) -> tuple[str, ...]:
    raw = said(compact_turns(SKILL, given, most), shares)
    return msgspec.json.decode(raw, type=NotesOut).notes


def momentum(
    shares: Shares, skill: str = SKILL, *, chars: int = 1500, tag: str = ""
) -> tuple[str, ...]:
    raw = said(momentum_turns(skill, COMPARED, chars=chars, tag=tag), shares)
    return msgspec.json.decode(raw, type=MomentumOut).momentum


def with_momentum(*lines: str) -> str:
    """The skill with a region of these lines, as the project writes it."""
    inner = "".join(f"- {line}\n" for line in lines)
    region = f"<!-- MOMENTUM_START -->\n## Priorities\n\n{inner}<!-- MOMENTUM_END -->\n"
    return f"{SKILL.rstrip()}\n\n{region}"


# -- notes ------------------------------------------------------------------------------


def test_notes_of_the_same_rule_are_united() -> None:
    """The shorter of two wordings stays; nothing is lost."""
    united = notes(HELPFUL, 4)
    assert len(united) == 3
    assert [rule for rule in RULES[:3] if any(fold(rule) in fold(note) for note in united)]
    assert united[0] == NOTES[2]


@given(most=st.integers(1, 5), start=st.integers(0, 8), n=st.integers(1, 12))
def test_united_notes_keep_every_rule_and_are_never_longer(most: int, start: int, n: int) -> None:
    """However few there may be, and whether or not anything can be left out."""
    rules = [*RULES, *demo().fillers_of(TASK_TYPE)][start : start + n] or RULES[:1]
    given = [f"Do not skip this: {rule.removeprefix('- ')}" for rule in rules]
    united = notes(HELPFUL, most, given)
    assert 1 <= len(united) <= most
    assert sum(map(len, united)) <= sum(map(len, given))
    for rule in rules:
        bare = fold(rule.removeprefix("- ")).rstrip(".")
        assert any(bare in fold(note) for note in united)


def test_other_kinds_of_compaction() -> None:
    """Useless: the first ones as they are; harmful: a trap among them."""
    assert notes(USELESS, 2) == tuple(NOTES[:2])
    traps = demo().traps_of(TASK_TYPE)
    assert any(holds(note, trap.key) for note in notes(HARMFUL, 2) for trap in traps)
    assert len(notes(HARMFUL, 2)) == 2


def test_malformed_notes() -> None:
    """Broken off, prose, none or too many; after a complaint it is sound."""
    ways: Counter[str] = Counter()
    turns = compact_turns(SKILL, NOTES, 3)
    for seed in range(60):
        raw = said(turns, BAD, seed)
        try:
            found = msgspec.json.decode(raw, type=NotesOut).notes
        except msgspec.DecodeError:
            ways["prose" if "{" not in raw else "cut"] += 1
        else:
            ways["many" if found else "none"] += 1
            assert len(found) in (0, 10)
        again = said((*turns, Turn("assistant", raw), COMPLAINT), BAD, seed)
        assert 1 <= len(msgspec.json.decode(again, type=NotesOut).notes) <= 3
    assert set(ways) == {"prose", "cut", "many", "none"}


# -- momentum ---------------------------------------------------------------------------


def test_true_worth_of_momentum() -> None:
    """A lesson, a filler or a trap, said once in the region; never what the body says."""
    before = class_accuracy(demo().world, questions(), TASK_TYPE, SKILL)
    for shares, worth in ((HELPFUL, "helpful"), (USELESS, "useless"), (HARMFUL, "harmful")):
        for at in range(10):
            lines = momentum(shares, tag=str(at))
            assert 1 <= len(lines) <= 2
            assert not any(line.startswith("-") or "\n" in line for line in lines)
            assert not any(fold(line) in fold(body_of(SKILL)) for line in lines)
            text = with_momentum(*lines)
            gain = class_accuracy(demo().world, questions(), TASK_TYPE, text) - before
            assert classify(gain) == worth


def test_momentum_is_written_anew_from_the_old() -> None:
    """What stood there stays behind what is new, a trap only if the editor is none the wiser."""
    lesson, trap = demo().lessons_of(TASK_TYPE)[0].text[2:], demo().traps_of(TASK_TYPE)[0].text[2:]
    skill = with_momentum(trap, lesson)
    assert momentum(HELPFUL, skill)[-1] == lesson
    assert trap not in momentum(HELPFUL, skill)
    assert momentum(USELESS, skill)[-2:] == (trap, lesson)
    assert all(momentum(HELPFUL, skill).count(line) == 1 for line in momentum(HELPFUL, skill))


def test_momentum_keeps_to_its_budget() -> None:
    """Whole lines, the old ones go first; without room it is empty."""
    skill = with_momentum(*(line[2:] for line in demo().fillers_of(TASK_TYPE)[:6]))
    whole = momentum(HELPFUL, skill)
    short = momentum(HELPFUL, skill, chars=200)
    assert 0 < len(short) < len(whole)
    assert short[0] not in skill
    assert sum(len(line) + 3 for line in short) <= 200
    assert momentum(HELPFUL, skill, chars=1) == ()


def test_without_failures_nothing_is_added() -> None:
    """What works is left alone."""
    fine = [(name, "stable") for name, _ in COMPARED]
    raw = said(momentum_turns(SKILL, fine), HELPFUL)
    assert msgspec.json.decode(raw, type=MomentumOut).momentum == ()


def test_malformed_momentum() -> None:
    """Broken off, prose, one text in the place of a list; after a complaint it is sound."""
    ways: Counter[str] = Counter()
    turns = momentum_turns(SKILL, COMPARED)
    for seed in range(60):
        raw = said(turns, BAD, seed)
        whole = raw.endswith("}")
        ways["prose" if "{" not in raw else "text" if whole else "cut"] += 1
        again = said((*turns, Turn("assistant", raw), COMPLAINT), BAD, seed)
        assert msgspec.json.decode(again, type=MomentumOut).momentum
    assert set(ways) == {"prose", "text", "cut"}


@given(seed=st.integers(0, 2**31))
def test_replies_are_pure(seed: int) -> None:
    """Equal requests, equal replies."""
    for turns in (momentum_turns(SKILL, COMPARED), compact_turns(SKILL, NOTES, 2)):
        assert said(turns, SHARES, seed) == said(turns, SHARES, seed)
