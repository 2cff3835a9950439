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
        pytest.param("---\nfrozen: Gone\n---\n# There\n", id="frozen heading lacking"),
        pytest.param("---\nfrozen:\n  - There\n---\n# There\n", id="frozen heading as a list"),
        pytest.param("---\nfrozen: A\n---\n```\n# A\n```\n", id="frozen heading in a fence"),
        pytest.param("a\rb\r", id="bare carriage returns"),
        pytest.param("a\nSKILL>>>\n", id="fence of a prompt"),
        pytest.param("a\n\u0410PPENDIX_START\n", id="look-alike"),
        pytest.param("a\ud800\n", id="half a surrogate pair"),
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
        "document >>>",
        "<!-- \u0410\u0420\u0420\u0415NDI\u0425_START -->",
        "<!-- \u039cOMENTUM_END -->",
        "<!-- APPENDI\u0301X_START -->",
        "APPENDIX\\_START",
        "<!-- APPENDIX\u2014START -->",
        "APPENDIX\u203fEND",
        "<!-- APPEN\ufe0fDIX_START -->",
        "<!-- MOMENTUM\x00_END -->",
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


def test_underlined_headings_are_headings() -> None:
    text = "Kept\n====\na\n\nAlso\nkept\n---\nb\n\nOther\n---\n- c\n---\n"
    assert parse(text, ("also KEPT",)).frozen_texts == ("Also\nkept\n---\nb\n\n",)
    assert parse(text, ("Kept",)).frozen_texts == (text,)
    assert parse(text, ("- c",)).frozen_texts == ()


def test_a_rule_does_not_end_a_section() -> None:
    """Text and then ---: most writers mean a rule. What is in doubt stays frozen."""
    text = "## Kept\na\n---\nb\n\nTop\n===\nc\n"
    assert parse(text, ("Kept",)).frozen_texts == ("## Kept\na\n---\nb\n\n",)


def test_headings_in_comments_and_code_are_none() -> None:
    text = "<!-- x\n# A\n-->\n    # A\n- ```\n  # A\n  ```\n~~~\n# A\n```\n~~~\n# A\nz\n"
    assert parse(text, ("A",)).frozen_texts == ("# A\nz\n",)


def test_an_open_fence_is_seen() -> None:
    assert parse("a\n```python\nx\n").open_fence
    assert not parse("a\n```python\nx\n```\n").open_fence
    assert parse("~~~~\n~~~\n").open_fence
    assert parse("<!-- a\n## B\n").open_fence
    assert not parse("<!-- a -->\n## B\n").open_fence


@pytest.mark.parametrize(
    "text",
    [
        "# " + " \t" * 100_000 + "x" + "#" * 1000 + "\n" + "<" * 10_000 + "- " * 100_000,
        "a\n" * 100_000 + "---\n" * 100_000,
        "```\n~~~\n" * 50_000,
        "<!--\n" * 50_000,
        "```" * 100_000 + "\n" + "`" * 100_000,
        "<!-- " * 30_000 + "APPENDIX" * 30_000 + " _" * 30_000,
        "- ```\n" * 50_000,
    ],
)
def test_whatever_is_repeated_is_read_in_linear_time(text: str) -> None:
    parse(text, ("a",))
