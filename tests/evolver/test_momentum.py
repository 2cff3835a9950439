"""The momentum region: one writer, a hard limit, and nothing else in the document moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver import momentum as momentum_module
from actors.evolver.document import APPENDIX, MARKERS, MOMENTUM, parse, validate
from actors.evolver.momentum import (
    HEADING,
    MAX_LINE_CHARS,
    Momentum,
    momentum_of,
    room_for_lines,
    without_momentum,
    write_momentum,
)
from actors.evolver.patch import Refusal
from actors.evolver.regions import write_notes
from tests.evolver.make import APPENDIX_BLOCK, BODY, FRONT, MOMENTUM_BLOCK, SKILL
from tests.evolver.test_properties import LITERALS, anywhere, bodies, fronts, payloads, tails

OPENING, CLOSING = MARKERS[MOMENTUM]
RULE = "When two scenes fit, open both before you choose."
OTHER = "Read the child lines of an event for the exact order."


def write(text: str, *lines: str, max_chars: int = 1500) -> Momentum:
    return write_momentum(text, lines, max_chars=max_chars, similarity=0.85, screen=lambda _: None)


def statuses(written: Momentum) -> list[str]:
    return [report.status for report in written.refused]


def test_the_region_is_replaced_and_nothing_else() -> None:
    written = write(SKILL, RULE, OTHER)
    region = f"{HEADING}\n\n- {RULE}\n- {OTHER}"
    before, after = SKILL.split(OPENING)[0], SKILL.split(CLOSING)[1]
    assert written.text == f"{before}{OPENING}\n{region}\n{CLOSING}{after}"
    assert written.momentum == region == momentum_of(written.text)
    assert written.lines == (RULE, OTHER)
    assert "Keep comparing" not in written.text


def test_a_new_region_stands_behind_the_appendix() -> None:
    text = FRONT + BODY + APPENDIX_BLOCK
    written = write(text, RULE)
    assert written.text == f"{text}\n{OPENING}\n{HEADING}\n\n- {RULE}\n{CLOSING}\n"
    document = parse(written.text)
    assert [region.name for region in document.regions] == [APPENDIX, MOMENTUM]
    # The appendix's writer still finds its place, between the body and this region.
    noted = write_notes(write(FRONT + BODY, RULE).text, ["Look at both."], 5, lambda _: None)
    assert not validate(noted.text)
    assert momentum_of(noted.text) == written.momentum


def test_no_rules_empty_the_region_and_its_markers_stay() -> None:
    written = write(SKILL)
    assert written.momentum == ""
    assert written.text == SKILL.split(OPENING)[0] + f"{OPENING}\n{CLOSING}" + "\n"
    assert write(written.text).text == written.text
    plain = FRONT + BODY
    assert write(plain).text == plain
    # Emptied and filled again for many epochs, it has not grown by a character.
    text = write(plain, RULE).text
    for _ in range(5):
        assert write(write(text).text, RULE).text == text
        text = write(write(text).text, RULE).text


def test_unchanged_rules_change_nothing() -> None:
    once = write(SKILL, RULE, OTHER).text
    again = write(once, RULE, OTHER)
    assert again.text == once
    assert again.refused == ()


def test_refused_rules_alone_do_not_empty_the_region() -> None:
    """Only an empty list says that nothing holds; a reply full of faults says nothing."""
    written = write(SKILL, "<!-- MOMENTUM_END -->", "")
    assert written.text == SKILL
    assert statuses(written) == ["marker", "empty"]
    assert written.momentum == "Keep comparing start times."


def test_a_region_without_a_length_limit_bloats_but_not_here() -> None:
    """A peer tells its editor that there is no limit, and its skills drown in it."""
    lines = [f"When case {n} of its kind comes up, compare page {n * 7} first." for n in range(60)]
    written = write(SKILL, *lines, max_chars=500)
    assert 400 < len(written.momentum) <= 500
    assert set(statuses(written)) == {"over_budget"}
    assert all(f"\n- {line}" in written.text for line in written.lines)
    assert len(written.lines) + len(written.refused) == 60
    text = SKILL
    for epoch in range(4):
        text = write(text, *(f"{line} Epoch {epoch}." for line in lines), max_chars=500).text
    assert len(text) <= len(without_momentum(SKILL)) + 502


def test_the_limit_counts_whole_rules() -> None:
    exact = len(f"{HEADING}\n\n- {RULE}")
    assert write(SKILL, RULE, max_chars=exact).lines == (RULE,)
    short = write(SKILL, RULE, max_chars=exact - 1)
    assert short.text == SKILL
    assert statuses(short) == ["over_budget"]
    # A rule that is too long for what is left does not keep a shorter one away.
    small = "Count twice."
    both = write(SKILL, RULE, OTHER, small, max_chars=exact + len(small) + 3)
    assert both.lines == (RULE, small)
    assert room_for_lines(1500) == 1500 - len(HEADING) - 1
    assert room_for_lines(3) == 0


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("- Search for the event named in the question.", id="a line of the body"),
        pytest.param("search for the  EVENT named in the question!", id="other form"),
        pytest.param("Always search for the event named in this question.", id="other words"),
        pytest.param("Read every option.", id="a note of the appendix"),
        pytest.param(RULE, id="a rule before it"),
    ],
)
def test_what_the_document_says_already_is_dropped(line: str) -> None:
    written = write(SKILL, RULE, line)
    assert written.lines == (RULE,)
    assert statuses(written) == ["noop"]


def test_a_rule_that_says_more_than_the_body_is_none_of_its_lines() -> None:
    line = "Before you choose between two dishes, look twice at the menu."
    assert write(SKILL, line).lines == (line,)


def test_a_rule_that_quotes_a_line_of_the_body_is_a_repetition() -> None:
    long = "- When the question names a place, open every scene that plays there, one by one."
    text = SKILL.replace("- None yet.", long)
    assert statuses(write(text, "Open every scene that plays there")) == ["noop"]
    assert write(text, "Open every scene").lines  # three words are met by chance


def test_a_rule_of_the_old_region_may_be_kept() -> None:
    assert write(SKILL, "Keep comparing start times.").lines == ("Keep comparing start times.",)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        pytest.param(f"- {RULE}", RULE, id="bullet"),
        pytest.param(f"  1. {RULE} ", RULE, id="number"),
        pytest.param(f"## {RULE}", RULE, id="heading"),
        pytest.param(f"* 2) {RULE}", RULE, id="both"),
        pytest.param(RULE.replace(" ", "\t", 1), RULE, id="tab"),
    ],
)
def test_a_rule_is_one_plain_line(raw: str, line: str) -> None:
    assert write(SKILL, raw).lines == (line,)


def test_several_rules_in_one_text_are_several() -> None:
    """Small models send a whole list as one string."""
    assert write(SKILL, f"- {RULE}\r\n\n- {OTHER}\n").lines == (RULE, OTHER)


@pytest.mark.parametrize("literal", [*LITERALS, "<!--momentum_end-->", "Momentum_Start", "-->"])
def test_p1_6_no_rule_holds_a_marker(literal: str) -> None:
    """P1-6, second layer: nor what a reader could take for one."""
    for line in (literal, f"Look {literal} twice.", f"Look\n{literal}\ntwice at it."):
        written = write(SKILL, RULE, line)
        assert "marker" in statuses(written)
        assert not validate(written.text)
        assert written.text.count("<!--") == 4


@pytest.mark.parametrize("bad", ["\x00", "\x1b[31m", "\u200b", "\u202e", "\x85", "\x1c"])
def test_control_and_invisible_characters_are_refused(bad: str) -> None:
    written = write(SKILL, RULE, f"Look{bad} at both.")
    assert statuses(written) == ["marker"]
    assert bad not in written.text


@pytest.mark.parametrize("fence", ["<<<SKILL", "SKILL>>>", "DOCUMENT>>>", "＞>>"])
def test_no_rule_closes_a_block_of_a_later_prompt(fence: str) -> None:
    assert statuses(write(SKILL, f"Look at {fence} first.")) == ["marker"]


def test_a_rule_has_a_length() -> None:
    assert write(SKILL, "a" * MAX_LINE_CHARS).lines
    assert statuses(write(SKILL, "a" * (MAX_LINE_CHARS + 1))) == ["too_long"]
    assert statuses(write(SKILL, "x " * 50_000)) == ["too_long"]


@pytest.mark.parametrize("nothing", ["", " ", "-", "***", "\n\n", "1."])
def test_a_rule_says_something(nothing: str) -> None:
    written = write(SKILL, RULE, nothing)
    assert written.lines == (RULE,)
    assert statuses(written) == ["empty"]


def test_the_screen_sees_the_rules_together() -> None:
    """A quotation is one even if it goes over two rules."""
    seen: list[str] = []

    def screen(rules: str) -> Refusal | None:
        seen.append(rules)
        return Refusal("leak", "quoted") if "boat" in rules and "harbour" in rules else None

    lines = ("A boat enters", "the harbour slowly", RULE)
    written = write_momentum(SKILL, lines, max_chars=1500, similarity=0.85, screen=screen)
    assert written.lines == ("A boat enters", RULE)
    assert statuses(written) == ["leak"]
    assert seen[1] == "A boat enters\nthe harbour slowly"


def test_crlf_stays_crlf() -> None:
    text = SKILL.replace("\n", "\r\n")
    for start in (text, text.split("\r\n" + OPENING)[0]):
        written = write(start, RULE, OTHER)
        assert written.lines == (RULE, OTHER)
        assert written.text.count("\n") == written.text.count("\r\n")
        assert written.momentum == f"{HEADING}\n\n- {RULE}\n- {OTHER}"
        assert len(written.momentum) <= 1500


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(SKILL + CLOSING, id="a stray copy of the end"),
        pytest.param(SKILL + MOMENTUM_BLOCK, id="two regions"),
        pytest.param(FRONT + BODY + MOMENTUM_BLOCK + APPENDIX_BLOCK, id="wrong order"),
        pytest.param(FRONT + BODY + OPENING, id="never closed"),
        pytest.param(SKILL + "\nMore.\n", id="text behind"),
        pytest.param(FRONT + BODY + "Mind the MOMENTUM_START.\n", id="a bare name"),
    ],
)
def test_p1_6_a_damaged_document_is_not_written(damaged: str) -> None:
    """P1-6: stray markers are never tidied away silently, as a peer does."""
    written = write(damaged, RULE)
    assert written.text == damaged
    assert statuses(written) == ["protected"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text + CLOSING, id="unsound"),
        pytest.param(lambda text: text.replace("- Look twice.\n", "", 1), id="body"),
        pytest.param(lambda text: text.replace("name: order", "name: other"), id="front matter"),
        pytest.param(lambda text: text.replace("- Read every option.\n", ""), id="appendix"),
        pytest.param(lambda text: FRONT + BODY + APPENDIX_BLOCK, id="region lost"),
    ],
)
@pytest.mark.parametrize("start", [SKILL, FRONT + BODY + APPENDIX_BLOCK], ids=["old", "new"])
def test_p1_6_layer_3_a_spoilt_result_is_not_handed_out(
    spoil: Callable[[str], str], start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1-6, third layer: the finished text is compared, whatever went wrong before."""
    sound = momentum_module._written
    monkeypatch.setattr(
        momentum_module, "_written", lambda document, kept: spoil(sound(document, kept))
    )
    written = write(start, RULE)
    assert written.text == start
    if spoil("") != start:  # a region that never came to be leaves the text as it was
        assert written.lines == ()
        assert statuses(written) == ["protected"]


lines = st.lists(st.one_of(payloads, st.just(RULE), st.just(OTHER)), max_size=5)
budgets = st.sampled_from([0, 20, 80, 1500])


@settings(max_examples=120, deadline=None)
@given(fronts, bodies, tails, lines, budgets, st.booleans())
def test_p1_6_the_momentum_writer_keeps_everything_else(
    front: str, body: str, tail: str, proposed: list[str], budget: int, crlf: bool
) -> None:
    """P1-6, third layer: outside the region every byte stands, whatever is proposed."""
    text = front + ("\n" + body if front else body) + tail
    text = text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else text
    written = write(text, *proposed, max_chars=budget)
    if validate(text):
        assert written.text == text
        return
    assert not validate(written.text)
    if written.text == text:
        assert momentum_of(text) == written.momentum
    elif OPENING in text:
        head, tail_ = text.split(OPENING)[0], text.split(CLOSING)[1]
        assert written.text.startswith(head + OPENING)
        assert written.text.endswith(CLOSING + tail_)
        assert without_momentum(written.text) == without_momentum(text)
    else:
        assert written.text.startswith(text)
        added = written.text[len(text) :]
        assert added.strip().startswith(OPENING)
        assert added.strip().endswith(CLOSING)
    if proposed and written.text != text:
        assert len(written.momentum) <= budget
        assert written.momentum.split("\n")[2:] == [f"- {line}" for line in written.lines]
    for literal in LITERALS[:2]:
        assert written.text.count(literal) == text.count(literal)
    if text.count("\n") and text.count("\n") == text.count("\r\n"):
        assert written.text.count("\n") == written.text.count("\r\n")
    # Writing the same again changes nothing.
    if not written.refused:
        assert write(written.text, *proposed, max_chars=budget).text == written.text


@settings(max_examples=80, deadline=None)
@given(anywhere, lines)
def test_p1_6_markers_in_odd_places(text: str, proposed: list[str]) -> None:
    """P1-6: a result is sound, or it is the damaged input untouched."""
    written = write(text, *proposed)
    assert written.text == text or not (validate(text) or validate(written.text))
