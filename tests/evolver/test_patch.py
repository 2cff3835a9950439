"""Edits: every status, the three layers of P1-6, and the way back."""

from __future__ import annotations

import pytest

from actors.evolver.document import parse
from actors.evolver.patch import Limits, Patched, Refusal, apply_edits, growth_left, undo
from protocol.evolver import Edit, EditStatus, Op
from tests.evolver.make import APPENDIX_BLOCK, BODY, FRONT, MOMENTUM_BLOCK, ROOMY, SKILL, edit

OPS: tuple[Op, ...] = ("append", "insert_after", "replace", "delete")


def patch(
    *edits: Edit, text: str = SKILL, limits: Limits = ROOMY, frozen: tuple[str, ...] = ()
) -> Patched:
    return apply_edits(text, edits, limits, screen=lambda _: None, frozen_headings=frozen)


def statuses(patched: Patched) -> list[EditStatus]:
    return [report.status for report in patched.reports]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (edit("append", "", "- Compare start times."), "applied"),
        (edit("insert_after", "- Open the scene", "- Compare."), "applied"),
        (edit("replace", "- None yet.", "- Stop early."), "applied"),
        (edit("delete", "- None yet.", "ignored"), "applied"),
        (edit("replace", "- Not there.", "x"), "no_match"),
        (edit("insert_after", "- Not there.", "x"), "no_match"),
        (edit("delete", "- Look twice", ""), "ambiguous"),
        (edit("replace", "task_type: Order", "task_type: Count"), "protected"),
        (edit("insert_after", "- Read every option.", "- x"), "protected"),
        (edit("delete", "start times"), "protected"),
        (edit("append", "", "<!-- momentum_end -->"), "marker"),
        (edit("delete", "<!-- APPENDIX_START -->"), "marker"),
        (edit("append", "", " \n"), "empty"),
        (edit("insert_after", "- None yet.", ""), "empty"),
        (edit("replace", "- None yet.", "\n"), "empty"),
        (edit("replace", "", "x"), "empty"),
        (edit("delete", "\n\n"), "empty"),
        (edit("replace", "- None yet.", "- None yet."), "noop"),
        (edit("append", "", "- Look twice."), "noop"),
        (edit("append", "", "x" * 200_000), "too_long"),
        (edit("append", "", "```\nopen"), "protected"),
    ],
)
def test_every_status(change: Edit, status: EditStatus) -> None:
    patched = patch(change)
    assert statuses(patched) == [status]
    assert (patched.text != SKILL) == (status == "applied")
    assert undo(patched.text, patched.inverse) == SKILL


def test_status_frozen() -> None:
    changes = (
        edit("replace", "- None yet.", "- x"),
        edit("insert_after", "## Pitfalls", "- x"),
        edit("append", "", "- would join the frozen section"),
    )
    patched = patch(*changes, frozen=("Pitfalls",))
    assert [(report.status, report.detail.split()[1]) for report in patched.reports] == [
        ("frozen", "target"),  # by the span of the target
        ("frozen", "target"),
        ("frozen", "edit"),  # by what the finished text would be
    ]
    assert patched.text == SKILL
    heading = patch(edit("append", "", "## More\n- x"), frozen=("Checks",))
    assert statuses(heading) == ["applied"]


def test_status_leak_and_already_rejected_come_from_the_screen() -> None:
    refusals: list[EditStatus] = ["leak", "already_rejected"]
    for status in refusals:
        refusal = Refusal(status, "why")

        def screen(_: Edit, refusal: Refusal = refusal) -> Refusal:
            return refusal

        patched = apply_edits(SKILL, [edit("append", "", "- x")], ROOMY, screen=screen)
        assert statuses(patched) == [status]
        assert patched.reports[0].detail == "why"


def test_status_over_budget_counts_applied_edits_only() -> None:
    changes = [
        edit("replace", "- Not there.", "x"),
        edit("append", "", "- one"),
        edit("append", "", "- two"),
        edit("append", "", "- three"),
    ]
    patched = patch(*changes, limits=Limits(2, 10_000, 10.0))
    assert statuses(patched) == ["no_match", "applied", "applied", "over_budget"]


def test_edits_see_the_running_text() -> None:
    patched = patch(
        edit("append", "", "- new rule"),
        edit("insert_after", "- new rule", "- newer rule"),
        edit("delete", "- new rule"),
    )
    # "- newer rule" does not hold "- new rule": the target stays unique.
    assert statuses(patched) == ["applied", "applied", "applied"]
    assert "- None yet.\n- newer rule\n" in patched.text
    assert undo(patched.text, patched.inverse) == SKILL


def test_where_things_go() -> None:
    assert "\n- None yet.\n- x\n\n<!-- APPENDIX" in patch(edit("append", "", "- x")).text
    assert "- None yet.\n\n## New\n\n<!--" in patch(edit("append", "", "## New")).text
    inserted = patch(edit("insert_after", "Open the", "- x\n- y\n")).text
    assert "- Open the scene that holds it.\n- x\n- y\n\n## Checks" in inserted
    assert "## Checks\n- Look twice at" in patch(edit("delete", "- Look twice.\n")).text
    deleted = patch(edit("delete", "- None yet."))
    assert "## Pitfalls\n\n<!-- APPENDIX" in deleted.text


@pytest.mark.parametrize("text", ["", "x", "x\n", FRONT, FRONT + "\n", FRONT + BODY.rstrip()])
def test_append_to_bare_documents(text: str) -> None:
    patched = patch(edit("append", "", "- rule"), text=text)
    assert statuses(patched) == ["applied"]
    assert patched.text.startswith(text.rstrip())
    assert patched.text.endswith("- rule\n")
    assert undo(patched.text, patched.inverse) == text


def test_a_marker_on_the_line_of_the_body_keeps_a_line_of_its_own() -> None:
    text = "- a<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->"
    for change in (edit("append", "", "- b"), edit("insert_after", "- a", "- b")):
        assert patch(change, text=text).text == (
            "- a\n- b\n<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->"
        )


def test_crlf_documents_stay_crlf() -> None:
    text = SKILL.replace("\n", "\r\n")
    patched = patch(
        edit("replace", "## Steps\n- Search for", "## Steps\n- First, search for"),
        edit("insert_after", "- None yet.", "- x\n- y"),
        edit("append", "", "- z"),
        edit("delete", "- Look twice.\n- Look twice at the subtitles."),
        text=text,
    )
    assert statuses(patched) == ["applied"] * 4
    assert patched.text.count("\n") == patched.text.count("\r\n")
    assert undo(patched.text, patched.inverse) == text


def test_a_crlf_document_keeps_its_line_ends_when_everything_is_replaced() -> None:
    patched = patch(edit("delete", "- a"), edit("append", "", "- b\n- c"), text="- a\r\n")
    assert patched.text == "- b\r\n- c\r\n"


def test_combining_characters_are_not_cut() -> None:
    text = "- cafe\u0301 scene\n"
    assert statuses(patch(edit("replace", "- cafe", "- bar"), text=text)) == ["no_match"]
    assert statuses(patch(edit("delete", "\u0301 scene"), text=text)) == ["no_match"]
    assert statuses(patch(edit("replace", "cafe\u0301", "bar"), text=text)) == ["applied"]
    # Composed and decomposed are different texts: nothing is guessed.
    assert statuses(patch(edit("replace", "caf\u00e9", "bar"), text=text)) == ["no_match"]


def test_overlapping_matches_are_ambiguous() -> None:
    assert statuses(patch(edit("delete", "aa"), text="- aaa\n")) == ["ambiguous"]


def test_a_match_in_the_appendix_does_not_make_a_body_match_ambiguous() -> None:
    text = f"- Read every option.\n{APPENDIX_BLOCK}"
    patched = patch(edit("replace", "- Read every option.", "- Read all."), text=text)
    assert patched.text == f"- Read all.\n{APPENDIX_BLOCK}"


@pytest.mark.parametrize("op", OPS[1:])
@pytest.mark.parametrize(
    "target",
    [BODY[-14:] + "<!-- APP", "yet.\n\n<!-- ", "option.\n", "---\n# Order", "Order\n---"],
)
def test_p1_6_layer_1_any_part_of_the_span(op: Op, target: str) -> None:
    """P1-6 layer 1: a target that begins outside and ends inside is refused, insert-after too."""
    patched = patch(edit(op, target, "- x"))
    assert statuses(patched) == ["protected"]
    assert patched.text == SKILL


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "marker", ["<!-- APPENDIX_START -->", "<!--momentum_end-->", "APPENDIX_END"]
)
def test_p1_6_layer_2_injection(op: Op, marker: str) -> None:
    """P1-6 layer 2: a marker in target or payload, even of a delete that ignores its payload."""
    assert statuses(patch(edit(op, "- None yet.", f"- x {marker}"))) == ["marker"]
    assert statuses(patch(edit(op, f"- None yet.\n{marker}", "- x"))) == ["marker"]


@pytest.mark.parametrize(
    "changes",
    [
        [edit("append", "", "x MOMENTUM"), edit("insert_after", "x MOMENTUM", "_START -->")],
        [edit("append", "", "APPEN\nDIX_END"), edit("replace", "APPEN\nDIX", "APPENDIX")],
        [edit("append", "", "<!-- APPENDIXcut_END -->"), edit("delete", "cut")],
    ],
)
def test_p1_6_layer_3_a_marker_put_together_from_parts(changes: list[Edit]) -> None:
    """P1-6 layer 3: each edit is harmless, the finished text would hold a marker."""
    patched = patch(*changes)
    assert statuses(patched) == ["applied", "protected"]
    assert parse(patched.text).problems == ()
    assert patched.text.endswith(APPENDIX_BLOCK + MOMENTUM_BLOCK)


@pytest.mark.parametrize("text", ["a\n<!-- APPENDIX_START -->\n", "---\nname: x\na\n"])
def test_p1_6_layer_3_a_damaged_document_is_not_edited(text: str) -> None:
    """P1-6 layer 3."""
    patched = patch(edit("append", "", "- x"), edit("delete", "a"), text=text)
    assert statuses(patched) == ["protected", "protected"]
    assert patched.text == text


def test_the_front_matter_cannot_be_made_or_moved() -> None:
    assert statuses(patch(edit("replace", "x", "---\na: b\n---"), text="x\n")) == ["protected"]
    assert statuses(patch(edit("delete", "\n# Order\n"))) == ["applied"]
    assert patch(edit("delete", "\n# Order\n")).text.startswith(FRONT + "\n")


def test_peer_defect_1_a_target_that_ends_in_a_region() -> None:
    """A replace that starts before a region and ends inside took the momentum text with it."""
    target = "- None yet.\n\n<!-- APPENDIX_START -->\n- Read every option.\n<!-- APPENDIX_END -->"
    patched = patch(edit("replace", target, "- x"), edit("delete", target))
    assert statuses(patched) == ["marker", "marker"]
    assert patched.text == SKILL


def test_peer_defect_2_nothing_is_guessed() -> None:
    """Ambiguous: the first hit; replace without content: a delete; empty append: applied;
    missing anchor: an append."""
    patched = patch(
        edit("replace", "- Look twice", "- x"),
        edit("replace", "- None yet.", ""),
        edit("append", "", ""),
        edit("insert_after", "- Missing anchor.", "- x"),
    )
    assert statuses(patched) == ["ambiguous", "empty", "empty", "no_match"]
    assert patched.text == SKILL


def test_growth_is_bounded_over_the_whole_step() -> None:
    text = "- " + "a" * 98
    limits = Limits(edits=9, max_chars=1000, max_growth=0.5)
    assert growth_left(parse(text), limits) == 50
    patched = patch(
        edit("append", "", "- " + "b" * 30),
        edit("append", "", "- " + "c" * 30),
        edit("append", "", "- d"),
        text=text,
        limits=limits,
    )
    assert statuses(patched) == ["applied", "too_long", "applied"]


def test_a_document_beyond_the_limit_may_shrink() -> None:
    limits = Limits(edits=9, max_chars=10, max_growth=0.5)
    patched = patch(
        edit("append", "", "- x"),
        edit("delete", "- one rule"),
        text="- one rule\n- another rule\n",
        limits=limits,
    )
    assert statuses(patched) == ["too_long", "applied"]
    assert growth_left(parse(""), limits) == 10


def test_undo_refuses_another_text() -> None:
    patched = patch(edit("append", "", "- x"))
    with pytest.raises(ValueError, match="not at"):
        undo(SKILL, patched.inverse)
