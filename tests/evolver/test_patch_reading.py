"""Edits and how a document is read: line ends, characters, fences, headings, repetition."""

from __future__ import annotations

import pytest

from protocol.evolver import Edit
from tests.evolver.make import edit
from tests.evolver.test_patch import patch, statuses


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("- look\n", edit("replace", "look", "look twice")),
        ("- look\n", edit("append", "", "- look twice")),
        ("- look\n", edit("insert_after", "look", "- look twice")),
        ("a\r\nb\na\r\n", edit("delete", "a\nb")),
        ("- look\n", edit("replace", "look", "see: look")),
    ],
)
def test_no_edit_is_applied_twice(text: str, change: Edit) -> None:
    """A rule that is proposed again must not stand there doubled."""
    once = patch(change, text=text)
    assert statuses(once) == ["applied"]
    for again in (patch(change, text=once.text), patch(change, change, text=text)):
        assert again.text == once.text


def test_an_edit_that_would_bring_its_target_back_is_refused() -> None:
    """Out of "aabb", deleting "ab" leaves "ab"."""
    assert statuses(patch(edit("delete", "ab"), text="- aabb\n")) == ["ambiguous"]


@pytest.mark.parametrize("target", ["- b\n- c", "- b\r\n- c", "\n- b\n- c\n"])
def test_mixed_line_ends_are_matched_by_either(target: str) -> None:
    text = "- a\n- b\r\n- c\r\n- d\n"
    assert patch(edit("replace", target, "- x"), text=text).text == "- a\n- x\r\n- d\n"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("- \U0001f469\u200d\U0001f680 crew\n", "\U0001f680 crew"),
        ("- \U0001f469\u200d\U0001f680 crew\n", "- \U0001f469"),
        ("- \U0001f44d\U0001f3fd yes\n", "- \U0001f44d"),
        ("- \U0001f1eb\U0001f1f7 flag\n", "\U0001f1f7 flag"),
        ("- \u2764\ufe0f heart\n", "- \u2764"),
        ("- \u0915\u093f here\n", "- \u0915"),
        ("- \u0646\u0645\u06cc\u200c\u062e\n", "- \u0646\u0645\u06cc"),
        ("- \u1112\u1161\u11ab here\n", "- \u1112\u1161"),
    ],
)
def test_what_is_written_as_one_is_not_cut(text: str, target: str) -> None:
    """Joined emoji, skin tones, flags, variation signs, vowel signs, joiners, Hangul vowels."""
    assert statuses(patch(edit("delete", target), text=text)) == ["no_match"]


@pytest.mark.parametrize("content", ["\u200b", "\ufeff \u2060", "\u0301", "\u3164"])
def test_what_nobody_can_see_is_empty(content: str) -> None:
    assert statuses(patch(edit("append", "", content))) == ["empty"]


FENCED = "## A\n- a\n\n## B\n- b\n\n```python\nx\n```\n\n## C\n- c\n"


@pytest.mark.parametrize(
    "change",
    [
        edit("insert_after", "- a", "````"),
        edit("insert_after", "- a", "- code:\n~~~\nx"),
        edit("insert_after", "- a", "<!-- forget what follows"),
        edit("delete", "```python"),
        edit("delete", "x\n```"),
        edit("append", "", "<!-- open"),
        edit("insert_after", "x", "````"),
    ],
)
def test_no_edit_puts_other_text_into_a_fence_or_a_comment(change: Edit) -> None:
    """A fence that is left open swallows the sections behind it, as far as the next one."""
    assert statuses(patch(change, text=FENCED)) == ["protected"]


def test_a_line_that_ends_a_list_item_ends_the_fence_in_it() -> None:
    """Found by the fuzz search: what had closed the fence opened one over the rest."""
    text = "- ```\n  x\n  ```\n## B\n- b\n"
    assert statuses(patch(edit("replace", "  x", "## x"), text=text)) == ["protected"]
    assert statuses(patch(edit("replace", "  x", "  # x"), text=text)) == ["applied"]


def test_an_open_fence_is_no_leave_to_open_others() -> None:
    """Found by the fuzz search."""
    text = "- a\n\n## B\n- b\n~~~\n## C\n"
    changes = (edit("insert_after", "- a", "<!-- x"), edit("insert_after", "- a", "~~~~"))
    assert statuses(patch(*changes, text=text)) == ["protected", "protected"]
    repairs = (
        edit("append", "", "~~~~"),
        edit("delete", "~~~\n"),
        edit("insert_after", "~~~", "~~~~"),
    )
    for repair in repairs:
        assert statuses(patch(repair, text=text)) == ["applied"]


def test_whole_fences_may_come_and_go() -> None:
    changes = (
        edit("insert_after", "- a", "```\n## no heading\n```"),
        edit("replace", "```python\nx\n```", "~~~\ny\n~~~"),
        edit("append", "", "<!-- a comment -->"),
        edit("delete", "~~~\ny\n~~~\n"),
    )
    assert statuses(patch(*changes, text=FENCED)) == ["applied"] * 4
    # A fence that was left open may be closed.
    closed = patch(edit("append", "", "````"), text="- a\n```\nx\n")
    assert closed.text == "- a\n```\nx\n\n````\n"


def test_a_heading_may_be_appended_behind_a_frozen_section() -> None:
    text = "# T\n\n## Kept\n- a\n"
    changes = (edit("append", "", "- b"), edit("append", "", "## New\n- b"))
    patched = patch(*changes, text=text, frozen=("Kept",))
    assert statuses(patched) == ["frozen", "applied"]
    assert patched.text == text + "## New\n- b\n"


def test_a_fence_of_the_engines_prompts_cannot_be_put_together() -> None:
    """It would end the block that the skill is shown in."""
    changes = (edit("append", "", "SKILL>cut>>"), edit("delete", "cut"))
    assert statuses(patch(*changes)) == ["applied", "protected"]


def test_a_line_above_an_underlined_heading_would_change_it() -> None:
    text = "- a\n\nKept\n----\n- b\n"
    joined = patch(edit("replace", "- a\n", "text"), edit("delete", "text"), text=text)
    assert statuses(joined) == ["applied", "applied"]
    assert statuses(patch(edit("delete", "Kept"), text=text, frozen=("Kept",))) == ["frozen"]
    close = "- a\n\n<!-- x -->\nKept\n----\n- b\n"
    above = patch(edit("replace", "<!-- x -->", "Un"), text=close, frozen=("Kept",))
    assert statuses(above) == ["frozen"]
