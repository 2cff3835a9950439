"""The rejected ledger's memory, and several analysts' edits as one list."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver.merge import merge_edits
from actors.evolver.rejected import (
    Memory,
    edit_gist,
    edits_of,
    fingerprint,
    in_order,
    same_idea,
)
from protocol.evolver import Edit
from tests.evolver.make import edit, rejected

unhurried = settings(deadline=None)
ONE = edit("append", "", "- Compare start times.", "q1")


def test_fingerprints_forgive_case_space_and_the_final_stop() -> None:
    assert fingerprint(ONE) == fingerprint(edit("append", "ignored", "-  compare\nSTART times"))
    assert fingerprint(ONE) != fingerprint(edit("append", "", "- Compare end times."))
    assert fingerprint(edit("delete", "x", "a")) == fingerprint(edit("delete", "x", ""))
    assert fingerprint(edit("delete", "x")) != fingerprint(edit("delete", "y"))
    assert fingerprint(edit("replace", "a", "b")) != fingerprint(edit("insert_after", "a", "b"))


def test_rejected_rows_give_their_edits_back() -> None:
    two = edit("delete", "- x")
    row = rejected([ONE, two])
    assert edits_of(row) == (ONE, two)
    assert Memory.of([row], 1.0).edits.keys() == {fingerprint(ONE), fingerprint(two)}
    with pytest.raises(msgspec.DecodeError):
        Memory.of([msgspec.structs.replace(row, edits="[{")], 1.0)


def test_rows_come_in_the_order_of_the_run() -> None:
    rows = [rejected([], key) for key in ("e10/order/s1", "e2/order/s10", "e2/order/s9")]
    assert [row.run_key for row in in_order(rows)] == [
        "e2/order/s9",
        "e2/order/s10",
        "e10/order/s1",
    ]


def test_merging_unites_support_and_ranks_by_it() -> None:
    weak = edit("append", "", "- weak", "q1")
    strong = edit("append", "", "- strong", "q2", "q3")
    again = edit("append", "", "- STRONG", "q3", "q4", "made up")
    merged = merge_edits([weak, strong, ONE, again], {"q1", "q2", "q3", "q4"}, 0.85)
    assert [item.content for item in merged] == ["- strong", "- weak", "- Compare start times."]
    assert merged[0].support == ("q2", "q3", "q4")


def test_merging_is_idempotent_and_drops_invented_support() -> None:
    merged = merge_edits([edit("append", "", "- x", "nobody")], {"q1"}, 0.85)
    assert merged[0].support == ()
    assert merge_edits(merged, {"q1"}, 0.85) == merged
    assert merge_edits([], {"q1"}, 0.85) == ()


RULE = edit("append", "", "- Compare the start times of both events before you answer.")
REWORDED = edit(
    "append", "", "- Keep in mind: compare the start times of both events before you answer"
)


def refused(tried: Edit, *wins_and_losses: int, before: Edit = RULE) -> str | None:
    wins, losses = wins_and_losses
    row = msgspec.structs.replace(rejected([before], "e1/order/s3"), wins=wins, losses=losses)
    refusal = Memory.of([row], 0.85).refusal(tried)
    if refusal is None:
        return None
    assert "e1/order/s3" in refusal.detail
    return refusal.status


@pytest.mark.parametrize(
    ("wins", "losses", "status"),
    [(1, 4, "like_rejected"), (0, 0, "like_rejected"), (3, 3, "like_rejected"), (5, 4, None)],
)
def test_other_words_are_refused_unless_the_evidence_was_in_favour(
    wins: int, losses: int, status: str | None
) -> None:
    """GEPA's fault: a rejected idea came again and again; an unlucky one may."""
    assert refused(REWORDED, wins, losses) == status


@pytest.mark.parametrize(("wins", "losses"), [(1, 4), (9, 1)])
def test_the_same_edit_is_refused_whatever_the_evidence_was(wins: int, losses: int) -> None:
    assert refused(RULE, wins, losses) == "already_rejected"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RULE, edit("insert_after", "- Look twice.", RULE.content), True),
        (RULE, edit("replace", "- Look twice.", RULE.content), False),
        (edit("replace", "- a b c", "- x y"), edit("replace", "- A b C", "* X, y"), True),
        (edit("replace", "- a b c", "- x y"), edit("replace", "- d e f", "- x y"), False),
        (edit("delete", "- Look twice."), edit("delete", "- Look  twice"), True),
        (edit("delete", "- Look twice."), edit("delete", "- Look twice at it all."), False),
        (edit("delete", "- Look twice."), edit("append", "", "- Look twice."), False),
        (edit("append", "", "- Never open it."), edit("append", "", "- Always open it."), False),
    ],
)
def test_what_makes_two_edits_one_idea(one: Edit, other: Edit, same: bool) -> None:
    assert same_idea(edit_gist(one), edit_gist(other), 0.85) is same
    assert same_idea(edit_gist(other), edit_gist(one), 0.85) is same


def test_notes_rejected_alone_are_refused_with_the_candidate_named() -> None:
    alone = rejected([], "e1/order/s1", notes=["Read every option of the question."])
    beside = rejected([RULE], "e1/order/s2", notes=["Look at the subtitles."])
    memory = Memory.of([alone, beside], 0.85)
    assert memory.note_refusal("read every  option of the question") == (
        "the gate rejected it in e1/order/s1"
    )
    assert memory.note_refusal("Remember: read every option of that question!") == (
        "it says in other words what e1/order/s1 had"
    )
    assert memory.note_refusal("Look at the subtitles.") is None
    won = msgspec.structs.replace(alone, wins=3, losses=1)
    assert Memory.of([won], 0.85).note_refusal("Remember: read every option of a question") is None


def test_near_duplicates_of_one_place_are_united() -> None:
    two = edit("append", "", f"- Please {RULE.content[2:].lower()}", "q2")
    three = edit("append", "", "- Compare the end times of both events before you answer.", "q3")
    elsewhere = edit("insert_after", "- Look.", RULE.content, "q4")
    one = msgspec.structs.replace(RULE, support=("q1",))
    merged = merge_edits([one, two, three, elsewhere], {"q1", "q2", "q3", "q4"}, 0.85)
    assert [(item.op, item.content, item.support) for item in merged] == [
        ("append", RULE.content, ("q1", "q2")),
        ("append", three.content, ("q3",)),
        ("insert_after", RULE.content, ("q4",)),
    ]


words = st.lists(st.sampled_from(["look", "never", "open", "twice", "card"]), max_size=5)
edits = st.builds(
    lambda op, target, content, names: edit(op, target, " ".join(content), *names),
    st.sampled_from(["append", "insert_after", "replace", "delete"]),
    st.sampled_from(["- a", "- A.", "- b"]),
    words,
    st.lists(st.sampled_from(["q1", "q2", "q3", "made up"]), max_size=3),
)


@unhurried
@given(st.lists(edits, max_size=12))
def test_peer_defect_merging_ends_loses_no_edit_and_repeats_itself(many: list[Edit]) -> None:
    """SkillOpt's merge ran through 7.2 million levels: here is one pass, and a fixed point."""
    known = {"q1", "q2", "q3"}
    merged = merge_edits(many, known, 0.85)
    assert merge_edits(merged, known, 0.85) == merged
    assert {fingerprint(item) for item in merged} <= {fingerprint(item) for item in many}
    for item in many:
        home = [m for m in merged if m.op == item.op and _one_idea(m, item)]
        assert home, "every edit is there, or one that says the same"
    named = {name for item in many for name in item.support} & known
    assert {name for item in merged for name in item.support} == named


def _one_idea(one: Edit, other: Edit) -> bool:
    if fingerprint(one) == fingerprint(other):
        return True
    return same_idea(edit_gist(one), edit_gist(other), 0.85)
