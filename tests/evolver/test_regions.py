"""The appendix writer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as few
from hypothesis import strategies as st

from actors.evolver.document import validate
from actors.evolver.regions import MAX_NOTE_CHARS, notes_of, replace_notes, write_notes
from tests.evolver.make import APPENDIX_BLOCK, BODY, FRONT, MOMENTUM_BLOCK, SKILL


def test_new_notes_go_behind_the_old_ones() -> None:
    noted = write_notes(SKILL, ["Check the   order\nagain.", "- * Look."], 9, lambda _: None)
    assert noted.added == ("Check the order again.", "Look.")
    assert noted.text == SKILL.replace(
        "- Read every option.\n", "- Read every option.\n- Check the order again.\n- Look.\n"
    )
    assert notes_of(noted.text) == ("Read every option.", "Check the order again.", "Look.")


def test_the_region_is_made_at_the_tail_in_order() -> None:
    plain = write_notes(FRONT + BODY, ["Look."], 9, lambda _: None)
    block = "<!-- APPENDIX_START -->\n## Reminders\n\n- Look.\n<!-- APPENDIX_END -->\n"
    assert plain.text == FRONT + BODY + block
    momentum = write_notes(FRONT + BODY + MOMENTUM_BLOCK, ["Look."], 9, lambda _: None)
    assert momentum.text.endswith(block + MOMENTUM_BLOCK)
    assert validate(momentum.text) == ()
    crlf = write_notes("x\r\n", ["Look."], 9, lambda _: None)
    assert crlf.text.count("\n") == crlf.text.count("\r\n") == 7


def test_an_empty_region_on_one_line() -> None:
    text = "x\n<!-- APPENDIX_START --><!-- APPENDIX_END -->"
    noted = write_notes(text, ["Look."], 9, lambda _: None)
    assert noted.text == "x\n<!-- APPENDIX_START -->\n- Look.\n<!-- APPENDIX_END -->"


def test_every_refusal_has_a_reason() -> None:
    notes = [
        "read every OPTION",
        " ",
        "x MOMENTUM_END",
        "y" * (MAX_NOTE_CHARS + 1),
        "see\u200b n",
        "leaks",
        "fits",
        "one too many",
    ]
    noted = write_notes(SKILL, notes, 2, lambda note: "leak" if note == "leaks" else None)
    assert noted.added == ("fits",)
    assert [refused.why for refused in noted.refused] == [
        "it is there already",
        "it is empty",
        "it holds a region marker",
        f"it is longer than {MAX_NOTE_CHARS} characters",
        "it holds control or invisible characters",
        "leak",
        "the appendix is full: 2 notes",
    ]


def test_p1_6_a_damaged_document_gets_no_notes() -> None:
    """P1-6: the appendix writer does not repair what it did not write."""
    text = "x\n<!-- APPENDIX_START -->\n"
    noted = write_notes(text, ["Look."], 9, lambda _: None)
    assert (noted.text, noted.added, len(noted.refused)) == (text, (), 1)


def test_nothing_new_leaves_the_text_alone() -> None:
    assert write_notes(SKILL, ["Read every option"], 9, lambda _: None).text == SKILL
    assert notes_of(BODY) == ()


def test_a_note_that_is_there_in_other_words_is_not_added() -> None:
    notes = ["Remember to read every option!", "Read no option.", "Please read no option"]
    noted = write_notes(SKILL, notes, 9, lambda _: None, similarity=0.85)
    assert noted.added == ("Read no option.",)
    assert [refused.why for refused in noted.refused] == ["it is there already"] * 2


def test_replacing_keeps_headings_and_everything_else() -> None:
    text = SKILL.replace("- Read every", "## Reminders\n\n- a\n* b\n\n- Read every")
    written = replace_notes(text, ["Look.", "See."])
    block = "<!-- APPENDIX_START -->\n## Reminders\n\n- Look.\n- See.\n<!-- APPENDIX_END -->\n"
    assert written == SKILL.replace(APPENDIX_BLOCK, block)


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        SKILL.replace("APPENDIX_END", "APPENDIX_STOP"),
        SKILL.replace("- Read every option.\n", "- Read every\n  option.\n"),
        SKILL.replace("- Read every option.\n", "Read every option.\n"),
    ],
    ids=["no appendix", "damaged", "a second line", "prose"],
)
def test_what_cannot_be_replaced_whole_is_left_alone(text: str) -> None:
    assert replace_notes(text, ["Look."]) is None
    assert replace_notes(SKILL, []) is None


lines = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
inners = st.lists(
    st.one_of(
        st.sampled_from(["- a", "* b c", "## Reminders", "", "prose", "  more", "```"]), lines
    ),
    max_size=6,
).map("\n".join)


@given(
    st.sampled_from([FRONT + BODY, BODY, "x"]),
    inners,
    st.sampled_from(["", "\n", f"\n{MOMENTUM_BLOCK}"]),
    st.lists(st.one_of(lines, st.sampled_from(["<!-- APPENDIX_END -->", "- a"])), max_size=4),
)
@few(max_examples=100, deadline=None)
def test_p1_6_replacing_changes_the_appendix_or_nothing(
    head: str, inner: str, tail: str, notes: list[str]
) -> None:
    """P1-6: whatever stands there and whatever is written."""
    start, end = "<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"
    text = f"{head}\n{start}\n{inner}\n{end}{tail}"
    written = replace_notes(text, notes)
    if written is None:
        return
    assert not validate(written)
    assert written.startswith(f"{head}\n{start}")
    assert written.endswith(f"{end}{tail}")
    assert notes_of(written) == tuple(notes)
    assert "prose" not in inner.split("\n")
    assert replace_notes(written, notes) == written
