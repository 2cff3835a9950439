"""Reading the editor's six layouts."""

from __future__ import annotations

import pytest

from actors.twin.briefs import (
    Candidate,
    CaseLine,
    ComparedLine,
    DocumentBrief,
    MomentumBrief,
    NotesBrief,
    RankBrief,
    brief_of,
)
from actors.twin.layout import LayoutError
from tests.twin.conversations import editor_turns, skill_of
from tests.twin.requests import (
    compact_turns,
    document_turns,
    momentum_turns,
    prompt_text,
    rank_turns,
)

SKILL = skill_of("OCR Problems")
#: A document full of what could be taken for blocks.
TRICKY = (
    f"{SKILL}\nCandidates:\n1. append\nNotes to compact:\nCompared:\nDocument: system\n"
    "Choose: 9\nMomentum budget: 9 characters\nNotes at most: 9\nCase demo-009-9 [regressed]\n"
)
EDITS = (("append", "", 'Say "so".\n- Twice: \\n.', 3), ("delete", "- A line.", "", 1))
RANK = rank_turns(TRICKY, EDITS, 2)[0].text
NOTES = compact_turns(TRICKY, ["Keep 1. in mind.", "Case closed."], 1)[0].text
MOMENTUM = momentum_turns(TRICKY, [("demo-001-3", "regressed"), ("demo-002-3", "stable")])[0].text
SYSTEM = document_turns("system", [("demo-001-3", "high_conf_wrong")], rejected="- x")[0].text
TOOL = document_turns("view_node", [("demo-001-3", "failing"), ("demo-002-3", "good")])[0].text


def test_rank_brief() -> None:
    """Candidates with their numbers; what stands in the skill is none of the blocks."""
    brief = brief_of(RANK)
    assert isinstance(brief, RankBrief)
    assert (brief.skill, brief.task_type, brief.choose) == (TRICKY, "OCR Problems", 2)
    assert brief.candidates == (
        Candidate(1, "append", "", 'Say "so".\n- Twice: \\n.', 3),
        Candidate(2, "delete", "- A line.", "", 1),
    )


def test_notes_brief() -> None:
    """Notes as they are, numbers inside them too."""
    brief = brief_of(NOTES)
    assert isinstance(brief, NotesBrief)
    assert (brief.skill, brief.at_most) == (TRICKY, 1)
    assert brief.notes == ("Keep 1. in mind.", "Case closed.")


def test_momentum_brief() -> None:
    """What became of each question."""
    brief = brief_of(MOMENTUM)
    assert isinstance(brief, MomentumBrief)
    assert (brief.skill, brief.budget) == (TRICKY, 1500)
    assert brief.compared == (
        ComparedLine("demo-001-3", "regressed"),
        ComparedLine("demo-002-3", "stable"),
    )


def test_document_briefs() -> None:
    """System prompt and tool prompt: any habit is a case for an edit, a good call is none."""
    brief = brief_of(SYSTEM)
    assert isinstance(brief, DocumentBrief)
    assert (brief.name, brief.text, brief.budget) == ("system", prompt_text("system"), 2)
    assert brief.cases == (CaseLine("demo-001-3", defect=True),)
    assert brief.rejected.strip() == "- x"
    brief = brief_of(TOOL)
    assert isinstance(brief, DocumentBrief)
    assert (brief.name, brief.text) == ("view_node", prompt_text("view_node"))
    assert [case.defect for case in brief.cases] == [True, False]


@pytest.mark.parametrize(
    ("text", "block"),
    [
        (RANK, "<<<SKILL"),
        (RANK, "SKILL>>>"),
        (RANK, "\nChoose:"),
        (NOTES, "<<<SKILL"),
        (NOTES, "\nNotes at most:"),
        (MOMENTUM, "<<<SKILL"),
        (MOMENTUM, "\nMomentum budget:"),
        (SYSTEM, "<<<DOCUMENT"),
        (SYSTEM, "\nDocument:"),
        (SYSTEM, "\nEdit budget:"),
        (SYSTEM, "\nCases:"),
        (TOOL, "\nRejected before:"),
        (TOOL, "DOCUMENT>>>"),
    ],
)
def test_a_missing_block_is_named(text: str, block: str) -> None:
    """A request without one of its blocks is refused with that block's name."""
    # From the right: the skill holds look-alikes.
    before, mark, after = text.rpartition(block)
    assert mark
    with pytest.raises(LayoutError, match=block.strip().strip("<>")):
        brief_of(f"{before}\nOther{after}")


@pytest.mark.parametrize(
    ("text", "block"),
    [
        (RANK, "\nCandidates:"),
        (NOTES, "\nNotes to compact:"),
        (MOMENTUM, "\nCompared:"),
    ],
)
def test_without_its_own_block_a_request_is_one_about_a_skill(text: str, block: str) -> None:
    """And as such it lacks the edit budget."""
    before, _, after = text.rpartition(block)
    with pytest.raises(LayoutError, match="Edit budget"):
        brief_of(f"{before}\nOther{after}")


@pytest.mark.parametrize(
    ("text", "wrong", "said"),
    [
        (RANK, ("1. append", "2. append"), "line 1 of the block 'Candidates:'"),
        (RANK, ('"- A line." ->', '"- A line. ->'), "line 2 of the block 'Candidates:'"),
        (NOTES, ("2. Case", "3. Case"), "line 2 of the block 'Notes to compact:'"),
        (NOTES, ("1. Keep", "\n1. Keep"), "'Notes to compact:' is empty"),
        (MOMENTUM, ("[stable]", "[better]"), "'better' is no change"),
        (TOOL, ("[good]", "[early_submit]"), "'failing' or 'good'"),
        (SYSTEM, ("\nCases:", "\nDocument: view_node\n\nCases:"), "several layouts"),
    ],
)
def test_a_damaged_block_is_named(text: str, wrong: tuple[str, str], said: str) -> None:
    """Nothing is guessed."""
    before, mark, after = text.rpartition(wrong[0])
    assert mark
    with pytest.raises(LayoutError, match=said.replace("(", r"\(")):
        brief_of(f"{before}{wrong[1]}{after}")


def test_a_comparison_without_cases_is_refused() -> None:
    """There is nothing to learn from."""
    with pytest.raises(LayoutError, match="no case"):
        brief_of(momentum_turns(SKILL, [])[0].text)


def test_a_skill_layout_is_told_by_nothing_of_its_own() -> None:
    """Indented bodies and the skill may say what they want."""
    text = editor_turns(TRICKY, [("demo-001-3", "defect")], tag="\n  Compared:\n  Document: x")
    assert brief_of(text[0].text).__class__.__name__ == "EditorBrief"
