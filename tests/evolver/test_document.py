"""Taking a skill file apart, and saying what is wrong with it."""

from __future__ import annotations

import pytest

from actors.evolver.document import MARKERS, holds_marker, parse, validate
from tests.evolver.make import APPENDIX_BLOCK, BODY, FRONT, MOMENTUM_BLOCK, SKILL

OPENING, CLOSING = MARKERS["appendix"]
M_OPENING, M_CLOSING = MARKERS["momentum"]


def test_parts_make_up_the_whole() -> None:
    document = parse(SKILL)
    assert document.front == FRONT
    assert document.body_text == BODY
    assert document.tail == APPENDIX_BLOCK + MOMENTUM_BLOCK
    assert document.front + document.body_text + document.tail == SKILL
    assert [region.name for region in document.regions] == ["appendix", "momentum"]
    assert document.problems == ()


def test_crlf_and_byte_order_mark_survive() -> None:
    text = "\ufeff" + SKILL.replace("\n", "\r\n")
    document = parse(text)
    assert document.newline == "\r\n"
    assert document.front == "\ufeff" + FRONT.replace("\n", "\r\n")
    assert document.front + document.body_text + document.tail == text


def test_a_document_needs_no_front_matter() -> None:
    document = parse("# Title\n\n---\nname: no front matter\n---\n")
    assert document.front == ""
    assert document.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"a\n{OPENING}\n- x\n", id="not closed"),
        pytest.param(f"a\n- x\n{CLOSING}\n", id="not opened"),
        pytest.param(f"a\n{CLOSING}\n{OPENING}\n", id="wrong order"),
        pytest.param(f"a\n{OPENING}\n{CLOSING}\n{OPENING}\n{CLOSING}\n", id="two pairs"),
        pytest.param(f"a\n{M_OPENING}\n{M_CLOSING}\n{OPENING}\n{CLOSING}\n", id="momentum first"),
        pytest.param(f"a\n{OPENING}\n{M_OPENING}\n{CLOSING}\n{M_CLOSING}\n", id="crossed"),
        pytest.param(f"a\n{OPENING}\n{M_OPENING}\n{M_CLOSING}\n{CLOSING}\n", id="nested"),
        pytest.param(f"a\n{OPENING}\n{CLOSING}\nmore\n", id="text behind"),
        pytest.param(f"a\n{OPENING}\n{CLOSING}\nmore\n{M_OPENING}\n{M_CLOSING}\n", id="between"),
        pytest.param("a\n<!-- appendix_start -->\n", id="lower case"),
        pytest.param(f"a\n{OPENING}\n{CLOSING}\n<!--APPENDIX_END-->\n", id="misspelt third"),
        pytest.param("---\nname: x\n", id="front matter open"),
        pytest.param(f"---\nx: {OPENING}\n---\na\n{CLOSING}\n", id="region from front matter"),
    ],
)
def test_p1_6_layer_3_damaged_markers_are_named(text: str) -> None:
    """P1-6: paired, ordered, at most one pair each, at the tail."""
    assert validate(text)


@pytest.mark.parametrize(
    "text",
    [
        *(marker for pair in MARKERS.values() for marker in pair),
        "<!-- appendix_start -->",
        "<!--APPENDIX_START-->",
        "<!--  Momentum_End  -->",
        "< !-- MOMENTUM START -->",
        "<!--- APPENDIX-END --->",
        "say APPENDIX_START here",
        "MOMENTUM _ END",
        "<!-- APPEN\u200bDIX_START -->",
        "<!-- ＡＰＰＥＮＤＩＸ＿ＳＴＡＲＴ -->",
        "before SKILL>>> after",
        "<<<TRAJECTORY",
    ],
)
def test_p1_6_layer_2_marker_variants(text: str) -> None:
    """P1-6: any literal, whatever its case and spacing."""
    assert holds_marker(f"- one\n{text}\n- two")


@pytest.mark.parametrize("text", ["the momentum starts here", "see the appendix", "<!-- note -->"])
def test_plain_words_are_no_markers(text: str) -> None:
    assert not holds_marker(text)


def test_frozen_sections_end_at_the_next_heading_of_their_level() -> None:
    text = (
        "# A\n## Output format ##\nx\n### Deeper\ny\n```\n## not a heading\n```\n## Next\nz\n"
        "## Tree\nlast\n"
    )
    document = parse(text, ("output  FORMAT", "tree"))
    assert document.frozen_texts == (
        "## Output format ##\nx\n### Deeper\ny\n```\n## not a heading\n```\n",
        "## Tree\nlast\n",
    )


def test_the_front_matter_lists_frozen_headings() -> None:
    document = parse("---\nname: x\nfrozen: Output format; Tree\r\n---\n# Tree\nx\n# Other\n")
    assert document.frozen_texts == ("# Tree\nx\n",)


def test_an_open_fence_is_seen() -> None:
    assert parse("a\n```python\nx\n").open_fence
    assert not parse("a\n```python\nx\n```\n").open_fence
    assert parse("~~~~\n~~~\n").open_fence


def test_long_blank_lines_are_read_in_linear_time() -> None:
    parse("# " + " \t" * 100_000 + "x" + "#" * 1000 + "\n" + "<" * 10_000 + "- " * 100_000)
