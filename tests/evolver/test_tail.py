"""Notes and momentum rules that are switched on and off like edits."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver.compose import compose, render
from actors.evolver.document import APPENDIX, MOMENTUM, parse, validate
from actors.evolver.momentum import MAX_LINE_CHARS, momentum_of
from actors.evolver.patch import Limits, apply_edits
from actors.evolver.regions import MAX_NOTE_CHARS, notes_of
from protocol.evolver import Edit
from tests.evolver.make import BODY, FRONT, ROOMY, SKILL, edit
from tests.fuzz.hostile import FROZEN_TITLES, LITERALS, hostile_document, hostile_edit

WIDE = Limits(edits=10**6, max_chars=10**9, max_growth=1e9)


def note(line: str) -> Edit:
    """A line of the appendix."""
    return Edit(op="note", target="", content=line, support=(), reason="")


def rule(line: str) -> Edit:
    """A line of the momentum region."""
    return Edit(op="momentum", target="", content=line, support=(), reason="")


MIXED = [
    note("Read the question twice."),
    edit("append", "", "- Compare start times."),
    rule("When two scenes fit, open both."),
    note("Look at the subtitles."),
    edit("replace", "- None yet.", "- Haste."),
    rule("Stop when one option is proved."),
]


@pytest.mark.parametrize(
    "base", [SKILL, FRONT + BODY, "", "- a", SKILL.replace("\n", "\r\n")], ids=str.__len__
)
def test_every_subset_is_a_document(base: str) -> None:
    """Notes and rules stand in canonical order, behind those of the base; none has a group."""
    edits = [item for item in MIXED if item.op != "replace" or item.target in base]
    composition = compose(base, edits, 10_000)
    assert composition.groups == tuple((place,) for place in range(len(edits)))
    texts = set()
    for size in range(len(edits) + 1):
        for subset in itertools.combinations(range(len(edits)), size):
            text = render(composition, subset)
            on = [edits[place] for place in subset]
            assert validate(text) == ()
            assert notes_of(text) == (*notes_of(base), *(e.content for e in on if e.op == "note"))
            told = [line.removeprefix("- ") for line in momentum_of(text).splitlines()]
            rules = [e.content for e in on if e.op == "momentum"]
            assert told[len(told) - len(rules) :] == rules
            assert text.count("\n") == text.count("\r\n") or "\r" not in text
            texts.add(text)
    assert len(texts) == 2 ** len(edits)
    assert render(composition, ()) == base


def test_a_region_is_made_where_there_is_none() -> None:
    """With its heading, behind the body; the momentum region behind the appendix."""
    composition = compose("# Order\n- a\n", [rule("Do one thing."), note("Do another.")], 100)
    assert render(composition, (0, 1)) == (
        "# Order\n- a\n\n<!-- APPENDIX_START -->\n## Reminders\n\n- Do another.\n"
        "<!-- APPENDIX_END -->\n\n<!-- MOMENTUM_START -->\n## Priorities\n\n- Do one thing.\n"
        "<!-- MOMENTUM_END -->\n"
    )


def test_what_stands_in_the_regions_stays() -> None:
    """The base's own lines are not touched, an emptied region is filled."""
    text = render(compose(SKILL, [rule("Do one thing."), note("Do another.")], 10_000), (0, 1))
    assert "- Read every option.\n- Do another.\n<!-- APPENDIX_END -->" in text
    assert "Keep comparing start times.\n- Do one thing.\n<!-- MOMENTUM_END -->" in text
    emptied = "- a\n\n<!-- MOMENTUM_START -->\n<!-- MOMENTUM_END -->\n"
    filled = render(compose(emptied, [rule("Do one thing.")], 100), (0,))
    assert filled.endswith(
        "<!-- MOMENTUM_START -->\n## Priorities\n\n- Do one thing.\n<!-- MOMENTUM_END -->\n"
    )


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("", "empty"),
        ("two\nlines", "marker"),
        ("- a bullet", "marker"),
        ("see the <!-- APPENDIX_END --> here", "marker"),
        ("unseen \u200b", "marker"),
        ("x" * (max(MAX_NOTE_CHARS, MAX_LINE_CHARS) + 1), "too_long"),
    ],
)
def test_a_line_that_is_none_does_not_compose(line: str, status: str) -> None:
    """Whatever the editor was let pass with: a region holds plain lines only."""
    for made in (note(line), rule(line)):
        composition = compose(SKILL, [made, note("Fine.")], 10_000)
        assert composition.live == (1,)
        assert [report.status for report in composition.refused] == [status]


def test_a_line_that_is_there_does_not_compose() -> None:
    """Else it would stand there twice, and neither could be told from the other."""
    edits = [note("Read every option."), note("Fine."), note("Fine."), rule("Fine.")]
    composition = compose(SKILL, edits, 10_000)
    assert composition.live == (1,)
    assert {report.status for report in composition.refused} == {"noop"}
    damaged = SKILL + "more"
    assert compose(damaged, [note("Fine.")], 10_000).refused[0].status == "protected"


def test_the_patch_engine_knows_no_lines() -> None:
    """A note that comes as an edit of the body is refused there."""
    for made in (note("Fine."), rule("Fine.")):
        patched = apply_edits(SKILL, [made], ROOMY, screen=lambda _: None)
        assert (patched.text, patched.reports[0].status) == (SKILL, "protected")


_LINES = (
    "Look again.", "Look  again.", "look", "note", "## Kept", "```", "~~~", "<!-- open", "-->",
    "---", "===", "a | b", "> quoted", "1. first", "* star", "<b>", "caf\u00e9 \U0001f680",
    "\ufeff", "x" * 299, "x" * 350, "SKILL>>>", "appendix start", "frozen: kept", *LITERALS,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 5), st.integers(1, 6))
def test_p1_6_any_subset_with_notes_and_rules_is_sound(
    rng: random.Random, n_edits: int, n_lines: int
) -> None:
    """P1-6 beside edits of the body: nothing protected moves, and no line meets anything."""
    document = hostile_document(rng)
    edits: list[Edit] = []
    for _ in range(n_edits):
        edits.append(hostile_edit(rng, document, edits))
    for _ in range(n_lines):
        made = rng.choice((note, rule))(rng.choice(_LINES))
        edits.insert(rng.randrange(len(edits) + 1), made)
    composition = compose(document.text, edits, 10**6, FROZEN_TITLES)
    assert len(composition.live) + len(composition.refused) == len(edits)
    if not document.sound:
        assert composition.live == ()
        return
    lines = {place for place, one in enumerate(edits) if one.op in ("note", "momentum")}
    assert all(len(group) == 1 for group in composition.groups if lines & set(group))
    base = parse(document.text, FROZEN_TITLES)
    for _ in range(4):
        drawn = (rng.choice((None, *group)) for group in composition.groups)
        on = [place for place in drawn if place is not None]
        rng.shuffle(on)
        text = render(composition, on)
        assert validate(text) == ()
        chosen = [edits[place] for place in sorted(on)]
        notes = [one.content for one in chosen if one.op == "note"]
        rules = [one.content for one in chosen if one.op == "momentum"]
        assert notes_of(text) == (*notes_of(document.text), *notes)
        assert text.startswith(document.front)
        assert all(section in text for section in document.frozen)
        after = parse(text, FROZEN_TITLES)
        body = [one for one in chosen if one.op not in ("note", "momentum")]
        plain = render(compose(document.text, body, 10**6, FROZEN_TITLES), range(len(body)))
        alone = parse(plain, FROZEN_TITLES)
        assert after.body_text.rstrip() == alone.body_text.rstrip()
        assert after.body_text.startswith(alone.body_text)
        for name, added in ((APPENDIX, notes), (MOMENTUM, rules)):
            old, new = base.region(name), after.region(name)
            inner = "" if old is None else document.text[old.inner.start : old.inner.end]
            assert (new is None) == (old is None and not added)
            if new is not None:
                now = text[new.inner.start : new.inner.end]
                assert now.startswith(inner.rstrip())
                assert now.split()[-1:] == (added[-1].split() if added else inner.split())[-1:]
        if not notes and not rules:
            assert text == plain
