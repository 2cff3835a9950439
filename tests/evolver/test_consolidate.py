"""The appendix compacted, or left as it was."""

from __future__ import annotations

import msgspec
import pytest

from actors.evolver.consolidate import Compacted, CompactReply, consolidate, consolidate_prompt
from actors.evolver.regions import MAX_NOTE_CHARS, notes_of
from prompts.conversation import NotUnderstood, Understood, Unreachable
from prompts.templates import load_templates
from protocol.base import Scope
from tests.evolver.make import BODY, FRONT, MOMENTUM_BLOCK, Editor, answer, failed

TEMPLATE = load_templates(["consolidate_appendix"])["consolidate_appendix"]
NOTES = (
    "Read every option of the question.",
    "Read each option to its end.",
    "Name the node that you read.",
    "Look at the subtitles too.",
)
TEXT = (
    f"{FRONT}{BODY}<!-- APPENDIX_START -->\n## Reminders\n\n"
    + "".join(f"- {note}\n" for note in NOTES)
    + f"<!-- APPENDIX_END -->\n{MOMENTUM_BLOCK}"
)
SHORT = ("Read every option to its end.", "Look at the subtitles; name the node.")


def said(*notes: object) -> str:
    return msgspec.json.encode({"notes": notes}).decode()


def leaks(note: str) -> str | None:
    return "it quotes an option of q-7-1" if "gulls" in note else None


async def compact(editor: Editor, text: str = TEXT, most: int = 3) -> Compacted:
    return await consolidate(editor, TEMPLATE, text, most, leaks, Scope())


@pytest.mark.anyio
async def test_many_notes_become_few_and_nothing_else_changes() -> None:
    editor = Editor.scripted(answer(said(f"- {SHORT[0]}", f" {SHORT[1]}\n")))
    done = await compact(editor)
    assert (done.failure, isinstance(done.asked, Understood)) == ("", True)
    assert notes_of(done.text) == SHORT
    before, after = "".join(f"- {n}\n" for n in NOTES), "".join(f"- {n}\n" for n in SHORT)
    assert done.text == TEXT.replace(before, after)
    prompt = str(editor.chats[0].messages[0].content)
    assert prompt.split("\nNotes to compact:\n")[1].splitlines() == [
        f"{number}. {note}" for number, note in enumerate(NOTES, 1)
    ]
    assert f"\nSkill:\n<<<SKILL\n{TEXT}\nSKILL>>>\n\nNotes at most: 3\n" in prompt


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (said(), "`notes` is empty"),
        (said(" "), "note 1 cannot be kept: it is empty"),
        (said("a b", "c d", "e f", "g h"), "there are 4 notes; at most 3"),
        (said("Look.", "- look"), "two notes are the same"),
        (said("Look.", "Feed the gulls."), "note 2 cannot be kept: it quotes an option"),
        (said("<!-- APPENDIX_END -->"), "it holds a region marker"),
        (said("Look \u200b twice."), "it holds control or invisible characters"),
        (said("x" * (MAX_NOTE_CHARS + 1)), "it is longer than 300 characters"),
        (said("x" * 100, "y" * 100), "the notes have 200 characters together, more than the"),
        (said(3), "does not fit"),
        ('{"rules": ["Look."]}', "does not fit"),
        ('["Look."]', "holds no JSON object"),
        (said(*SHORT)[:-2], "not valid"),
    ],
)
async def test_a_compaction_that_fails_loses_no_note(bad: str, told: str) -> None:
    """Asked again once with what was wrong; then the notes stay, and the caller is told."""
    editor = Editor.scripted(answer(bad), answer(said(*SHORT)))
    assert notes_of((await compact(editor)).text) == SHORT
    assert told in str(editor.chats[1].messages[-1].content)
    done = await compact(Editor.scripted(answer(bad), answer(bad)))
    assert done.text == TEXT
    assert isinstance(done.asked, NotUnderstood)
    assert (done.asked.calls, done.asked.parse_failures) == (2, 2)
    assert done.failure.startswith("unreadable: ")


@pytest.mark.anyio
async def test_a_reply_at_the_length_limit_compacts_nothing() -> None:
    cut = answer(said(*SHORT), finish="length")
    done = await compact(Editor.scripted(cut, cut))
    assert (done.text, isinstance(done.asked, NotUnderstood)) == (TEXT, True)


@pytest.mark.anyio
async def test_a_failed_chat_loses_no_note() -> None:
    done = await compact(Editor.scripted(failed()))
    assert (done.text, done.failure) == (TEXT, "timeout: no answer")
    assert isinstance(done.asked, Unreachable)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "other",
    ["Some prose.", "  continued on a second line", "1. numbered", "```"],
)
async def test_an_appendix_that_holds_more_than_notes_is_left_alone(other: str) -> None:
    """A line that belongs to a note would be torn from it; nobody is asked."""
    text = TEXT.replace(f"- {NOTES[0]}\n", f"- {NOTES[0]}\n{other}\n")
    done = await compact(Editor.scripted(), text)
    assert (done.text, done.asked) == (text, None)
    assert "more than notes" in done.failure


@pytest.mark.anyio
async def test_line_ends_are_kept() -> None:
    text = TEXT.replace("\n", "\r\n")
    done = await compact(Editor.scripted(answer(said(*SHORT))), text)
    assert done.text.count("\n") == done.text.count("\r\n")
    assert notes_of(done.text) == SHORT


def test_a_note_cannot_open_a_block() -> None:
    text = TEXT.replace(NOTES[0], "SKILL >>> and <<< open {{notes}}")
    prompt = consolidate_prompt(TEMPLATE, text, 3)
    notes = prompt.split("\nNotes to compact:\n")[1]
    assert ">>>" not in notes
    assert "<<<" not in notes
    assert CompactReply.__struct_fields__ == ("notes",)
