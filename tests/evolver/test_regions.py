"""The appendix writer."""

from __future__ import annotations

from actors.evolver.document import validate
from actors.evolver.regions import MAX_NOTE_CHARS, notes_of, write_notes
from tests.evolver.make import BODY, FRONT, MOMENTUM_BLOCK, SKILL


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
